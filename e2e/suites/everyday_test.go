// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// word is one command of a page that needs nothing but a group, with what it prints.
type word struct{ page, name, prints string }

// everyday are the commands of the pages that people type while nothing is wrong.
var everyday = []word{
	{"install.md", "authority of the group", ""},
	{"install.md", "allow a certificate", "annotated"},
	{"install.md", "another authority", "Renew the certificate authority of orders"},
	{"tls.md", "phase", ""},
	{"tls.md", "certificates", "Renew the certificate of orders"},
	{"upgrades.md", "pin a group", "orders"},
	{"upgrades.md", "status", "Upgrade"},
	{"upgrades.md", "no further turn", ""},
	{"upgrades.md", "go on after a stop", ""},
	{"upgrades.md", "without the plugin", "mfg-operator-upgrade"},
	{"security.md", "accept data loss", "created"},
	{"monitoring.md", "tracing", "has been upgraded"},
}

// everydayCommands types them for the group of docs/install.md.
func everydayCommands(t *testing.T, g *stage.Group) {
	t.Helper()
	// The Secret that a page allows a group to use.
	if err := lab.PutSecret(t.Context(), g.Namespace, pageWord.ReplaceAllString("shop-wildcard-tls", ownNamespace), map[string][]byte{"tls.crt": nil}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	for _, w := range everyday {
		commands := pageWord.ReplaceAllString(commandsOf(t, w.page, w.name), ownNamespace)
		if out := onLab(t, w.name, strings.ReplaceAll(commands, "> ca.crt", "> "+file)); !strings.Contains(out, w.prints) {
			t.Errorf("the commands %q of docs/%s do not print %q", w.name, w.page, w.prints)
		}
	}
	if pem, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(pem), "-----BEGIN CERTIFICATE-----") {
		t.Errorf("ca.crt holds %q: %v", pem, err)
	}
}
