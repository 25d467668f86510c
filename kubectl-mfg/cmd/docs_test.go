// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// page is the plugin's page in the documentation.
var page = filepath.Join("..", "..", "docs", "kubectl-mfg.md")

// TestDocumentation: every command on the page is one that the plugin takes, every verb is on it, and the exit codes are
// those of the help.
func TestDocumentation(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text, commands, inside := string(raw), 0, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside && line != "":
			commands++
			if !strings.HasPrefix(line, "kubectl mfg ") {
				t.Errorf("a console block holds something else: %s", line)
			}
			checkCommand(t, line)
		}
	}
	if commands < 15 {
		t.Errorf("only %d commands on the page", commands)
	}
	for _, c := range newApp(cli.Environment{IOStreams: discarded()}).root().Commands() {
		if c.Name() != "help" && !c.Hidden && !strings.Contains(text, "`"+c.Name()+"`") {
			t.Errorf("verb %s is not on the page", c.Name())
		}
	}
	for code, line := range strings.Split(cli.ExitCodes, "\n")[1:] {
		words := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), fmt.Sprint(code)))
		row := fmt.Sprintf("| %d | %s |", code, words)
		if !strings.Contains(strings.ReplaceAll(text, "`", ""), row) {
			t.Errorf("the page lacks %q", row)
		}
	}
}

// TestPagesCommands: the commands of the pages are those that the plugin takes, with the variables that the pages set.
func TestPagesCommands(t *testing.T) {
	quoted := regexp.MustCompile(`"(\$[^" ]*)"`)
	variables := strings.NewReplacer("$SITE", "frankfurt", "$HOME", "/home/dba", "$KEEP", "keep", "$NS", "shop", "$GROUP", "orders", "$PROFILE", "nightly", "$IDENTITY", "mfg-backup-identity", " || true", "")
	for name, least := range map[string]int{
		"backups.md": 8, "disaster.md": 6, "point-in-time.md": 8, "alerts.md": 1, "cache.md": 1, "dashboard.md": 4, "encryption.md": 3, "install.md": 4,
		"keyring-runbook.md": 3, "migrate.md": 1, "quickstart.md": 6, "tls.md": 2, "updates.md": 2, "upgrades.md": 6,
	} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		commands, inside := 0, false
		for line := range strings.Lines(string(raw)) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "```"):
				inside = line == "```console" || line == "```sh"
			case inside && strings.HasPrefix(line, "kubectl mfg "):
				commands++
				checkCommand(t, variables.Replace(quoted.ReplaceAllString(line, "$1")))
			}
		}
		if commands < least {
			t.Errorf("%s has %d commands of the plugin", name, commands)
		}
	}
}
