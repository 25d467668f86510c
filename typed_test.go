// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notTyped are the blocks of commands that no test types as they stand, by page and first command, with why. TestPagesCommands has the plugin read
// each command of every page.
var notTyped = map[string]string{
	"docs/install.md: REGISTRY=registry.example.org/db":                                                                      "needs Docker and a registry; the lab builds the same images from the same programs",
	"docs/install.md: kubectl create namespace mfg-system":                                                                   "the tests of the charts render the same, and a lab test installs it with helm",
	"docs/install.md: helm upgrade mfg charts/mfg --namespace mfg-system":                                                    "needs a second release: operator tests hand groups over",
	"docs/install.md: kubectl -n mfg-system get secret mfg-authority-$(kubectl":                                              "needs a second release",
	"docs/install.md: kubectl -n shop annotate mfg orders mysql-mfg.io/operated-by=mfg-blue":                                 "needs a second release",
	"docs/install.md: kubectl -n shop exec -it deploy/mysql-orders-paris":                                                    "asks for a password on a terminal",
	"docs/quickstart.md: kind create cluster --config kind.yaml":                                                             "needs kind, and the page says so",
	"docs/backups.md: kubectl create secret generic mfg-backup-s3":                                                           "typed from docs/quickstart.md and docs/disaster.md",
	"docs/backups.md: kubectl mfg backup create orders -n shop":                                                              "typed from docs/quickstart.md and docs/disaster.md",
	"docs/backups.md: kubectl mfg restore orders-2 --from orders -n shop --backup":                                           "a lab test restores the newest backup into the same namespace; make test-archive-lab into another",
	"docs/encryption.md: helm upgrade mfg charts/mfg":                                                                        "typed with existingSecret, from the same page",
	"docs/encryption.md: NS=shop GROUP=orders SITE=frankfurt":                                                                "sets variables for the blocks below",
	"docs/encryption.md: kubectl -n $NS annotate mfg $GROUP --overwrite \"mysql-mfg.io/rotate-keyring=*\"":                   "make test-encryption rotates all sites in another way",
	"docs/updates.md: kubectl mfg restart orders -n shop":                                                                    "replaces every pod, which takes minutes; a lab test restarts one site",
	"docs/tls.md: kubectl -n shop patch mysqlfailovergroup orders --type merge -p '{\"spec\":{\"tls\":{\"secretName\"":       "a lab test takes the same steps",
	"docs/tls.md: kubectl -n shop patch mysqlfailovergroup orders --type merge -p '{\"spec\":{\"tls\":{\"plainConnections\"": "a lab test takes the same steps",
	"docs/disaster.md: NS=shop GROUP=orders PROFILE=nightly":                                                                 "sets variables for the blocks below",
	"docs/disaster.md: CREDENTIALS=mfg-backup-s3":                                                                            "sets variables for the blocks below",
	"docs/disaster.md: kubectl mfg backup list \"$GROUP\"":                                                                   "typed from other pages",
	"docs/disaster.md: kubectl -n \"$NS\" delete mysqlfailovergroup":                                                         "deletes what the page has restored beside; lab tests delete groups and namespaces in their own words",
	"docs/dashboard.md: kubectl mfg dashboard -n shop":                                                                       "runs until q is pressed: lab tests do that for one group",
	"docs/monitoring.md: kubectl logs -n mfg-system deploy/mfg-operator":                                                     "needs jq",
}

// whole are pages whose commands need groups in many states. Tests give the same orders in their own words: TestPluginSession and the tests beside
// it for the verbs of the plugin, TestAnyMomentBack for points in time.
var whole = map[string]bool{"docs/kubectl-mfg.md": true, "docs/point-in-time.md": true}

var block = regexp.MustCompile("(?ms)(?:^ *<!-- runbook: ([^\n]*) -->\n)?^ *```(?:console|sh)\n(.*?)^ *```")

// TestEveryCommandIsTyped: a block of commands on a page for users is typed by a lab test, which knows it by its marker, or is listed above.
func TestEveryCommandIsTyped(t *testing.T) {
	suites := ""
	files, err := filepath.Glob("e2e/suites/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		suites += string(raw)
	}
	all := pages(t)
	typed, used := 0, map[string]bool{}
	for _, page := range forUsers {
		if whole[page] || page == "README.md" { // README's are those of the quickstart: TestQuickstartCommands
			continue
		}
		for _, m := range block.FindAllStringSubmatch(all[page], -1) {
			name, commands := m[1], strings.TrimSpace(m[2])
			if name != "" {
				typed++
				if !strings.Contains(suites, `"`+name+`"`) {
					t.Errorf("%s: no lab test types the commands %q", page, name)
				}
				continue
			}
			if why := reasonFor(page, commands, used); why == "" {
				t.Errorf("%s: no test types these commands: give them a marker and type them in a lab test, or say above why not\n%s", page, commands)
			}
		}
	}
	for listed := range notTyped {
		if !used[listed] {
			t.Errorf("%q is listed, and on no page", listed)
		}
	}
	if typed < 40 {
		t.Errorf("only %d blocks with a marker were found: the search is broken", typed)
	}
}

func reasonFor(page, commands string, used map[string]bool) string {
	for listed, why := range notTyped {
		if strings.HasPrefix(page+": "+commands, listed) {
			used[listed] = true
			return why
		}
	}
	return ""
}
