// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// word is one command of a page that needs nothing but a group, with what it prints.
type word struct{ page, name, prints string }

// everyday are the commands of the pages that people type while nothing is wrong.
var everyday = []word{
	{"install.md", "authority of the group", ""},
	{"install.md", "allow a certificate", "annotated"},
	{"tls.md", "phase", "Required"},
	{"tls.md", "certificates", "Renew the certificate of orders"},
	{"upgrades.md", "pin a group", "it is not pinned any more"},
	{"upgrades.md", "status", "Upgrade"},
	{"upgrades.md", "no further turn", "turns begin again"},
	{"upgrades.md", "go on after a stop", "upgrades are neither paused nor stopped"},
	{"upgrades.md", "without the plugin", "mfg-operator-upgrade"},
	{"security.md", "accept data loss", "created"},
}

// onceRenewed are those that the plugin refuses while the operator owes an answer. The last one restarts the operator.
var onceRenewed = []word{
	{"install.md", "another authority", "Renew the certificate authority of orders"},
	{"monitoring.md", "tracing", "has been upgraded"},
}

// everydayCommands types them for the group of docs/install.md.
func everydayCommands(t *testing.T, g *stage.Group) {
	t.Helper()
	// The Secret that a page allows a group to use.
	if err := lab.PutSecret(t.Context(), g.Namespace, pageWord.ReplaceAllString("shop-wildcard-tls", ownNamespace), map[string][]byte{"tls.crt": nil}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a pause would hold every other group of the lab
		if !t.Failed() {
			return
		}
		cmd := exec.Command("kubectl", "mfg", "upgrade", "resume", "--yes")
		cmd.Env = append(lab.Lab.Environ(), withPlugin())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("end the pause of upgrades: %v\n%s", err, out)
		}
	})
	file := filepath.Join(t.TempDir(), "ca.crt")
	typeAll := func(all []word) {
		for _, w := range all {
			commands := pageWord.ReplaceAllString(commandsOf(t, w.page, w.name), ownNamespace)
			if out := onLab(t, w.name, strings.ReplaceAll(commands, "> ca.crt", "> "+file)); !strings.Contains(out, w.prints) {
				t.Errorf("the commands %q of docs/%s do not print %q", w.name, w.page, w.prints)
			}
		}
	}
	typeAll(everyday)
	renewed(t, g)
	typeAll(onceRenewed)
	if pem, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(pem), "-----BEGIN CERTIFICATE-----") {
		t.Errorf("ca.crt holds %q: %v", pem, err)
	}
}

// renewed waits until the operator has answered the request for another certificate: until then the plugin refuses the next.
func renewed(t *testing.T, g *stage.Group) {
	t.Helper()
	if _, err := g.Await(t.Context(), 2*time.Minute, "the certificate to be renewed", func(group *v1alpha1.MysqlFailoverGroup) error {
		if order, there := group.Annotations[v1alpha1.AnnotationRotateCertificate]; there {
			return fmt.Errorf("the request %q has no answer", order)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
