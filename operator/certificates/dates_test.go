// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/internal/chain"
	"github.com/mysql-mfg/mfg/operator/certs"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// party is somebody with a key, who signs others or shows a certificate.
type party struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// signed makes one that is good from a day on for so many; by nil it signs itself.
func signed(t *testing.T, by *party, authority bool, from time.Time, days int) *party {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "c" + from.String() + time.Now().String()},
		NotBefore: from, NotAfter: from.Add(time.Duration(days) * day), BasicConstraintsValid: true, IsCA: authority,
	}
	if by == nil {
		by = &party{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &party{c, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func secretOf(chain, authorities []byte) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{certs.KeyServer: chain, certs.KeyBundle: authorities}}
}

func join(all ...*party) []byte {
	var out []byte
	for _, p := range all {
		out = append(out, p.pem...)
	}
	return out
}

// TestUntilWhenACertificateIsGood is what people and alerts are told of a Secret that somebody else fills.
func TestUntilWhenACertificateIsGood(t *testing.T) {
	root, other := signed(t, nil, true, now.Add(-100*day), 1000), signed(t, nil, true, now.Add(-100*day), 5000)
	between := signed(t, root, true, now.Add(-50*day), 80)
	leaf, below := signed(t, root, false, now.Add(-10*day), 90), signed(t, between, false, now.Add(-10*day), 20)
	old := signed(t, root, false, now.Add(-110*day), 200) // older than its authority, as after that was made again
	for name, tc := range map[string]struct {
		secret    *corev1.Secret
		ends      time.Time
		authority time.Time
	}{
		"a certificate":                      {secretOf(join(leaf), join(root)), leaf.cert.NotAfter, root.cert.NotAfter},
		"with other authorities beside":      {secretOf(join(leaf), join(other, root)), leaf.cert.NotAfter, root.cert.NotAfter},
		"by one between, which ends first":   {secretOf(join(below, between), join(root)), below.cert.NotAfter, between.cert.NotAfter},
		"older than its authority":           {secretOf(join(old), join(root)), old.cert.NotAfter, root.cert.NotAfter},
		"one between is missing":             {secretOf(join(below), join(root)), below.cert.NotAfter, time.Time{}},
		"by nobody who is there":             {secretOf(join(leaf), join(other)), leaf.cert.NotAfter, time.Time{}},
		"no authority":                       {secretOf(join(leaf), nil), leaf.cert.NotAfter, time.Time{}},
		"rubbish before it":                  {secretOf(append([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), leaf.pem...), join(root)), leaf.cert.NotAfter, root.cert.NotAfter},
		"no certificate":                     {secretOf([]byte("x"), join(root)), time.Time{}, time.Time{}},
		"more than anybody would read of it": {secretOf(join(leaf), append([]byte(strings.Repeat(string(other.pem), chain.MostRead)), root.pem...)), leaf.cert.NotAfter, time.Time{}},
	} {
		d := DatesOf(tc.secret, certs.Decision{})
		if !d.ServerEnds.Equal(tc.ends) || !d.AuthorityEnds.Equal(tc.authority) || !d.ServerRenews.IsZero() || !d.AuthorityRenews.IsZero() {
			t.Errorf("%s: %+v", name, d)
		}
		if s := d.Status(); (s == nil) != tc.ends.IsZero() || s != nil && (!s.NotAfter.Time.Equal(tc.ends) || (s.AuthorityNotAfter == nil) != tc.authority.IsZero() || s.Renewal != nil) {
			t.Errorf("%s: status %+v", name, s)
		}
	}
	made := certs.Decision{ServerRenews: now, AuthorityRenews: now.Add(day), AuthorityEnds: now.Add(2 * day)}
	d := DatesOf(secretOf(join(leaf), join(root)), made)
	if s := d.Status(); !s.Renewal.Time.Equal(now) || !s.AuthorityRenewal.Time.Equal(now.Add(day)) || !s.AuthorityNotAfter.Time.Equal(now.Add(2*day)) {
		t.Errorf("what the operator makes: %+v", s)
	}
}

// TestWhatEndsSoonIsSaid, unless the operator renews it.
func TestWhatEndsSoonIsSaid(t *testing.T) {
	at := func(begins, ends int) (time.Time, time.Time) {
		return now.Add(time.Duration(begins) * day), now.Add(time.Duration(ends) * day)
	}
	key := types.NamespacedName{Namespace: "shop", Name: "soon"}
	for name, tc := range map[string]struct {
		server, authority [2]int
		renews            bool
		want              string
	}{
		"far away":                 {[2]int{-10, 80}, [2]int{-10, 800}, false, ""},
		"13 days are left":         {[2]int{-300, 13}, [2]int{-10, 800}, false, "the certificate ends at 2026-12-08T12:00:00Z"},
		"15 days are left":         {[2]int{-300, 15}, [2]int{-10, 800}, false, ""},
		"a short one has a sixth":  {[2]int{-10, 3}, [2]int{-10, 800}, false, ""},
		"less than a sixth":        {[2]int{-25, 2}, [2]int{-10, 800}, false, "the certificate ends"},
		"it has ended":             {[2]int{-90, -1}, [2]int{-10, 800}, false, "the certificate ends"},
		"the authority":            {[2]int{-10, 80}, [2]int{-900, 13}, false, "the authority in ca.crt that signed the certificate ends"},
		"the operator renews both": {[2]int{-300, 13}, [2]int{-900, 13}, true, ""},
	} {
		var d Dates
		d.ServerBegins, d.ServerEnds = at(tc.server[0], tc.server[1])
		d.AuthorityBegins, d.AuthorityEnds = at(tc.authority[0], tc.authority[1])
		if tc.renews {
			d.ServerRenews, d.AuthorityRenews = now, now
		}
		Show(key, d)
		if told, said := noticed(key), d.Soon(now) != ""; told != said {
			t.Errorf("%s: the condition says so: %t, the alert: %t", name, said, told)
		}
		if got := d.Soon(now); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := (Dates{}).Soon(now); got != "" {
		t.Errorf("of what is not known nothing is said: %q", got)
	}
}

// noticed is what the alert MysqlFailoverGroupCertificateEndsSoon makes of the series.
func noticed(key types.NamespacedName) bool {
	for _, of := range []string{ofServer, ofAuthority} {
		if at := testutil.ToFloat64(metricNotice.WithLabelValues(key.Namespace, key.Name, of)); at != 0 && float64(now.Unix()) > at {
			return true
		}
	}
	return false
}

// TestTheEscrowListenersNotice: one that a person made has a notice by the same rule, and one for a week is not late for half of it.
func TestTheEscrowListenersNotice(t *testing.T) {
	for days, want := range map[int]time.Duration{90: 14 * day, 6: day} {
		c := signed(t, nil, false, now, days).cert
		ShowEscrow(c)
		if got := testutil.ToFloat64(metricEscrowNotice.WithLabelValues()); got != float64(c.NotAfter.Add(-want).Unix()) {
			t.Errorf("of %d days: %v, want %s before %s", days, got, want, c.NotAfter)
		}
	}
}

// TestSeriesOfWhatIsNotKnownGoAway: 0 would be a certificate that ended in 1970, and wake somebody.
func TestSeriesOfWhatIsNotKnownGoAway(t *testing.T) {
	key := types.NamespacedName{Namespace: "shop", Name: "dates"}
	Show(key, Dates{ServerEnds: now, AuthorityEnds: now, ServerRenews: now, AuthorityRenews: now})
	if n := seriesOf(t, key.Name); n != 4 {
		t.Fatalf("%d series, want 4", n)
	}
	Show(key, Dates{ServerEnds: now})
	if n := seriesOf(t, key.Name); n != 2 {
		t.Errorf("%d series, want 2", n)
	}
}

// seriesOf counts the series of a group.
func seriesOf(t *testing.T, group string) int {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(metricExpiry, metricRenewal, metricNotice)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == group {
					n++
				}
			}
		}
	}
	return n
}
