// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// elsewhere are the verbs that the session has not: they need an encrypted group, and docs/encryption.md shows them; or they wait for
// kubelets, and a lab test of their own has them (TestPasswordsAreReplacedAcrossAFailover).
// That of certificates depends on the day, and docs/tls.md shows it. An upgrade takes a second version of the operator: docs/upgrades.md has its verbs.
// A restart replaces every pod of the group, which takes minutes: docs/updates.md has it.
// A site that is kept fenced leaves the session's group without a candidate: a lab test of its own has it, and docs/failover.md says what it does.
// The group of the session has no application: docs/install.md has what replaces its password.
// The group of the session has no cache store, and no profile for backups: docs/disaster.md has those verbs.
var elsewhere = map[string]bool{"rotate-passwords": true, "rotate": true, "keyring": true, "recover-keyring": true, "adopt": true, "cache": true, "backup": true, "restore": true, "certificates": true, "upgrade": true, "restart": true, "fence": true, "app-password": true, "account": true}

// TestSessionHasEveryVerb: the page that a lab test runs has every verb, and the plugin takes each of its commands.
func TestSessionHasEveryVerb(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubectl-mfg-session.md"))
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		command, typed := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		at := strings.Index(command, "kubectl mfg ")
		if !typed || at < 0 {
			continue
		}
		command, _, _ = strings.Cut(command[at:], " && ")
		verb := strings.Fields(command)[2]
		ran[verb] = true
		if verb != "__complete" {
			checkCommand(t, command)
		}
	}
	for _, c := range newApp(cli.Environment{IOStreams: discarded()}).root().Commands() {
		if name := c.Name(); name != "help" && !c.Hidden && !ran[name] && !elsewhere[name] {
			t.Errorf("verb %s is not in the session", name)
		}
	}
}
