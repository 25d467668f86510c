// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
)

// wholeEscrow is a group with all its keyrings, one of them with an older version, and pods that have them mounted.
func wholeEscrow(t *testing.T) *escrowAPI {
	t.Helper()
	f := newEscrowAPI(t)
	f.store(keyrings.Secret(f.group(), *f.site(), []byte(keyMaterial)))
	old := *f.site()
	old.KeyringVersion, old.KeyringSecret = 2, v1alpha1.KeyringSecret("orders", "frankfurt", 2)
	old.KeyringDigest = wire.KeyringDigest([]byte("older"))
	f.store(keyrings.Secret(f.group(), old, []byte("older")))
	f.operate()
	f.pods = nil
	for _, st := range f.group().Status.EncryptionAtRest.Sites {
		f.pods = append(f.pods, f.podOf(st.Name, "mysql-orders-"+st.Name+"-0", st.KeyringSecret, corev1.PodRunning))
	}
	f.group().Status.EncryptionAtRest.Sealed = true
	return f
}

// troubledEscrow is one in which nothing fits.
func troubledEscrow(t *testing.T) *escrowAPI {
	t.Helper()
	f := wholeEscrow(t)
	sites := f.group().Status.EncryptionAtRest.Sites
	delete(f.secrets, lostSecret)
	f.operate()
	f.secrets["mysql-orders-frankfurt-keyring-v2"].Data[v1alpha1.KeyringKey] = []byte("changed")
	f.secrets[sites[0].KeyringSecret].Data[v1alpha1.KeyringKey] = []byte("changed")
	madrid := f.secrets[sites[2].KeyringSecret]
	madrid.Labels, madrid.Immutable, madrid.OwnerReferences = nil, nil, nil
	f.pods[2] = f.podOf("madrid", "mysql-orders-madrid-0", "mysql-orders-madrid-keyring-v3", corev1.PodRunning)
	f.group().Status.EncryptionAtRest.Sealed = false
	return f
}

// TestKeyring compares each answer.
func TestKeyring(t *testing.T) {
	tests := map[string]struct {
		args  string
		world func(*testing.T) *escrowAPI
		width int
		code  int
	}{
		"list.txt":            {"list orders -n shop", wholeEscrow, 80, cli.ExitHealthy},
		"list-wide.txt":       {"list orders -n shop -o wide", wholeEscrow, 0, cli.ExitHealthy},
		"list.json":           {"list orders -n shop -o json", wholeEscrow, 0, cli.ExitHealthy},
		"list.yaml":           {"list orders -n shop -o yaml", wholeEscrow, 0, cli.ExitHealthy},
		"list-missing.txt":    {"list orders -n shop", newEscrowAPI, 80, cli.ExitDegraded},
		"verify.txt":          {"verify orders -n shop", wholeEscrow, 80, cli.ExitHealthy},
		"verify-wide.txt":     {"verify orders -n shop -o wide", wholeEscrow, 0, cli.ExitHealthy},
		"verify.json":         {"verify orders -n shop -o json", wholeEscrow, 0, cli.ExitHealthy},
		"verify-trouble.txt":  {"verify orders -n shop", troubledEscrow, 100, cli.ExitDegraded},
		"verify-trouble.json": {"verify orders -n shop -o json", troubledEscrow, 0, cli.ExitDegraded},
		"verify.jsonpath":     {`verify orders -n shop -o jsonpath={.findings[?(@.level=="FAIL")].remedy}`, troubledEscrow, 0, cli.ExitDegraded},
	}
	for file, tc := range tests {
		t.Run(file, func(t *testing.T) {
			f := tc.world(t)
			before := f.state(t)
			got := f.recovers(t, runOptions{width: tc.width, env: map[string]string{"NO_COLOR": "1"}}, append([]string{"keyring"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || got.errOut != "" {
				t.Errorf("exit code %d, want %d; stderr %q", got.code, tc.code, got.errOut)
			}
			golden(t, filepath.Join("testdata", "keyring", file), got.out)
			if strings.HasPrefix(tc.args, "list") && f.contents > 0 {
				t.Errorf("the content of %d Secrets was read: a list needs none", f.contents)
			}
			for _, line := range strings.Split(got.out, "\n") {
				if strings.HasSuffix(line, " ") {
					t.Errorf("line ends in a blank: %q", line)
				}
			}
			checkUntouched(t, f, []byte(before))
		})
	}
}

// TestKeyringEdges: what a verb cannot answer, it says, and with what to do next.
func TestKeyringEdges(t *testing.T) {
	tests := map[string]struct {
		args   string
		change func(*escrowAPI)
		code   int
		out    string
		errOut string
	}{
		"NotEncrypted":  {"verify orders", func(f *escrowAPI) { f.group().Spec.EncryptionAtRest = nil }, cli.ExitError, "", "is not encrypted"},
		"NoRightToList": {"list orders", func(f *escrowAPI) { f.denied = []string{"get secrets"} }, cli.ExitError, "", "kubectl auth can-i list secrets -n shop"},
		"NoRightToRead": {"verify orders", func(f *escrowAPI) { f.denied = []string{"get secrets"} }, cli.ExitError, "", "kubectl auth can-i list secrets -n shop"},
		"NoRightToPods": {"verify orders", func(f *escrowAPI) { f.denied = []string{"list pods"} }, cli.ExitHealthy, "cannot be seen", ""},
		"NotLabelled":   {"list orders", func(f *escrowAPI) { f.secrets[lostSecret].Labels = nil }, cli.ExitHealthy, "v3       Current", ""},
		"NewGroup":      {"verify orders", func(f *escrowAPI) { f.group().Status.EncryptionAtRest = nil; clear(f.secrets) }, cli.ExitHealthy, "knows no keyring of it yet", ""},
		"GivenUp":       {"verify orders", func(f *escrowAPI) { f.secrets[lostSecret].Labels[v1alpha1.LabelAllowDeletion] = "true" }, cli.ExitDegraded, "lacks: protection", ""},
		"BeingDeleted":  {"verify orders", func(f *escrowAPI) { f.secrets[lostSecret].DeletionTimestamp = &metav1.Time{Time: noon} }, cli.ExitDegraded, "is being deleted", ""},
		"SiteLeft":      {"verify orders", func(f *escrowAPI) { f.group().Spec.Sites = f.group().Spec.Sites[:2] }, cli.ExitHealthy, "the site left the group", ""},
		"UnderWay":      {"verify orders", func(f *escrowAPI) { f.site().Phase, f.site().Work = v1alpha1.KeyringUnsealed, v1alpha1.KeyringRotation }, cli.ExitHealthy, "Unsealed for a rotation", ""},
		"EscrowLate": {"verify orders", func(f *escrowAPI) {
			f.site().Phase, f.site().Work, f.site().Message = v1alpha1.KeyringFailed, v1alpha1.KeyringRotation, "refused"
		}, cli.ExitDegraded, "Failed: refused", ""},
		"NoSuchGroup":    {"list nope", nil, cli.ExitError, "", "kubectl mfg status -A"},
		"NoGroup":        {"verify", nil, cli.ExitUsage, "", "GROUP is missing"},
		"NoSuchVerb":     {"rehash orders", nil, cli.ExitUsage, "", "there are list and verify"},
		"BadColour":      {"list orders --color blue", nil, cli.ExitUsage, "", "--color must be one of"},
		"HelpWithoutAny": {"", nil, cli.ExitHealthy, "kubectl mfg keyring verify orders", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := wholeEscrow(t)
			f.idle = true
			if tc.change != nil {
				tc.change(f)
			}
			got := f.recovers(t, runOptions{}, append([]string{"keyring", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || !strings.Contains(got.out, tc.out) || !strings.Contains(got.errOut, tc.errOut) {
				t.Errorf("exit code %d, want %d\n%s%s", got.code, tc.code, got.out, got.errOut)
			}
		})
	}
}

// TestKeyringTeaches: the verbs below keyring have examples that the plugin takes.
func TestKeyringTeaches(t *testing.T) {
	verbs := newApp(cli.Environment{IOStreams: discarded()}).keyringCommand().Commands()
	if len(verbs) != 2 {
		t.Errorf("%d verbs", len(verbs))
	}
	for _, c := range verbs {
		if !strings.Contains(c.Example, "kubectl mfg keyring "+c.Name()) {
			t.Errorf("%s does not teach", c.Name())
		}
		for line := range strings.Lines(c.Example) {
			checkCommand(t, strings.TrimSpace(line))
		}
	}
}
