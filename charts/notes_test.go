// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// notes are what helm says to a person who installs the chart of a group.
func notes(t *testing.T, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	out, complaint := run(t, "install", "orders", groupChart, "--dry-run=client", "--namespace", "shop", "--values", file)
	if complaint != "" {
		t.Fatal(complaint)
	}
	_, said, is := strings.Cut(out, "\nNOTES:\n")
	if !is {
		t.Fatalf("helm says nothing:\n%s", out)
	}
	return said
}

// TestNotesNameNoSiteAsTheActiveOne: which one it is the operator decides, and it moves. A site for disasters alone is never one.
func TestNotesNameNoSiteAsTheActiveOne(t *testing.T) {
	said := notes(t, `sites: [{name: far, role: dr-only}, {name: east, role: primary-candidate}, {name: west, role: primary-candidate, priority: 10}]`)
	for _, name := range []string{"mysql-orders-far", "mysql-orders-east", "mysql-orders-west", "planned-failover=far", "planned-failover=east", "planned-failover=west"} {
		if strings.Contains(said, name) {
			t.Errorf("%s is said of the active site, or of another:\n%s", name, said)
		}
	}
	for _, want := range []string{
		v1alpha1.LabelGroup + "=orders," + v1alpha1.LabelRole + "=" + v1alpha1.RolePrimary + ") -c mysql", "another one of east west:", v1alpha1.AnnotationPlannedFailover + "=SITE",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing:\n%s", want, said)
		}
	}
}
