// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// Encryption at rest is one line where nobody made a certificate, neither the group's nor that of the escrow endpoint: the operator makes both.
func TestEncryptionInOneLine(t *testing.T) {
	upgrade := func(ctx context.Context, escrow map[string]any) error {
		values, err := lab.OperatorValues()
		if err != nil {
			return err
		}
		values["auxiliary"] = map[string]any{"escrowTLS": escrow}
		if _, err := lab.Helm(ctx, values, "upgrade", stage.OperatorRelease, lab.Chart("mfg"), "--namespace", stage.OperatorNamespace, "--timeout", "2m"); err != nil {
			return err
		}
		return lab.AwaitOperator(ctx, bringUp)
	}
	t.Cleanup(func() {
		if err := lab.InstallOperator(context.Background()); err != nil {
			t.Errorf("give the operator its certificate back: %v", err)
		}
	})
	if err := upgrade(t.Context(), map[string]any{"enabled": true}); err != nil {
		t.Fatal(err)
	}
	g := fresh(t, "suite-oneline", "oneline", lab.Namespace)
	spec := stage.EncryptedSpec("oneline")
	spec.TLS = &v1alpha1.TLSSpec{}
	g = ownGroup(t, g, spec)
	if _, err := g.Await(t.Context(), 3*bringUp, "the group to be whole and sealed", func(group *v1alpha1.MysqlFailoverGroup) error {
		return errors.Join(notSealed(group), stage.NotUpdated(group))
	}); err != nil {
		t.Fatal(err)
	}
	if ca, err := g.ReadMadeAuthorities(t.Context()); err != nil || strings.Count(string(ca), "BEGIN CERTIFICATE") != 1 {
		t.Errorf("ca.crt: %v\n%s", err, ca)
	}
	plugin(t, "doctor", g.Name, "-n", g.Namespace).says(t, "the operator makes it, and gives the sites its authority with their token")
	for _, site := range stage.Sites {
		if got := query(t, g, site, "SELECT COUNT(*) FROM performance_schema.keyring_component_status WHERE STATUS_KEY = 'Component_status' AND STATUS_VALUE = 'Active'"); got != "1" {
			t.Errorf("%s: %s active keyrings", site, got)
		}
	}
}
