// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/render"
)

// TestWhatIsVerifiedInEachStep: nothing before every site has the certificate, everything from then on. Clones take no file while some
// donor may have none.
func TestWhatIsVerifiedInEachStep(t *testing.T) {
	a := access.New(reader(accounts()), reader(newAuthority(t).secret(t)))
	full := &mysql.CloneFiles{CA: render.TLSDir + "/ca.crt", Cert: render.TLSDir + "/tls.crt", Key: render.TLSDir + "/tls.key"}
	for _, tc := range []struct {
		phase    v1alpha1.TLSPhase
		verified bool
		files    *mysql.CloneFiles
	}{
		{v1alpha1.TLSPlain, false, nil}, {v1alpha1.TLSCertificates, false, &mysql.CloneFiles{}}, {v1alpha1.TLSChannels, true, full},
		{v1alpha1.TLSClients, true, full}, {v1alpha1.TLSRequired, true, full}, {"", true, full},
	} {
		g := group(true)
		g.Status.TLS = &v1alpha1.TLSStatus{Phase: tc.phase}
		target, err := a.Site(t.Context(), g, "paris", "10.1.2.3")
		if err != nil || (target.TLS != nil) != tc.verified {
			t.Errorf("%q: target %+v, %v", tc.phase, target.TLS, err)
		}
		source, err := a.Replication(t.Context(), g, "paris")
		if err != nil || source.TLS != tc.verified || (source.CA != "") != tc.verified {
			t.Errorf("%q: source %t %q, %v", tc.phase, source.TLS, source.CA, err)
		}
		donor, err := a.Donor(t.Context(), g, "paris")
		if err != nil || donor.RequireTLS != tc.verified || !cmp.Equal(donor.Files, tc.files) {
			t.Errorf("%q: donor %t %+v, %v", tc.phase, donor.RequireTLS, donor.Files, err)
		}
	}
}
