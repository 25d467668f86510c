// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A group and a site select the pods of MySQL and those of the cache alike. A command that this project prints or documents for one of them
// names which, or whoever follows it reads the wrong log, or ends the wrong pod.
func TestCommandsAboutPodsNameTheirKind(t *testing.T) {
	found := 0
	for _, root := range []string{"README.md", "docs", "charts", "operator", "kubectl-mfg", "tui"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i, line := range strings.Split(string(raw), "\n") {
				which := unnamedPods(path, line)
				found += which.commands
				if which.bad != "" {
					t.Errorf("%s:%d selects pods of MySQL and of caches alike: %s", path, i+1, which.bad)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 10 {
		t.Errorf("only %d such commands were found: the search is broken", found)
	}
}

// command is one for pods by label, as text; built is one that a program puts together.
var (
	command = regexp.MustCompile(`kubectl[^` + "`" + `|&;"]*\b(pods?|logs)\b[^` + "`" + `|&;"]*failover-group=[^ ` + "`" + `"]*`)
	built   = regexp.MustCompile(`"[^"]*kubectl[^"]*-l [^"]*".*LabelGroup`)
)

type selection struct {
	commands int
	bad      string
}

func unnamedPods(path, line string) (out selection) {
	for _, text := range command.FindAllString(line, -1) {
		out.commands++
		if !strings.Contains(text, "app.kubernetes.io/name=") && !cutOff(path) {
			out.bad = text
		}
	}
	if strings.HasSuffix(path, ".go") && built.MatchString(line) && !strings.Contains(line, "secret") {
		if out.commands++; !strings.Contains(line, "LabelName") {
			out.bad = strings.TrimSpace(line)
		}
	}
	return out
}

// cutOff is true for pictures of a screen that is not wide enough for a whole command.
func cutOff(path string) bool {
	return strings.HasSuffix(path, ".golden") || strings.Contains(path, "screen-")
}

func TestTheSearchForCommandsFindsThem(t *testing.T) {
	for line, bad := range map[string]bool{
		"`kubectl describe pods -n shop -l mysql-mfg.io/failover-group=orders`":                                                true,
		"kubectl logs -c sidecar -n shop -l mysql-mfg.io/failover-group=orders,mysql-mfg.io/site=paris":                        true,
		"kubectl get pods -l app.kubernetes.io/name=cache,mysql-mfg.io/failover-group=orders":                                  false,
		"kubectl get pods -l mysql-mfg.io/failover-group=orders,app.kubernetes.io/name=mysql":                                  false,
		"`kubectl delete pvc,secret -l mysql-mfg.io/failover-group=orders`, and the pods":                                      false,
		`fmt.Sprintf("kubectl logs -n %s -l %s=%s", ns, v1alpha1.LabelGroup, g)`:                                               true,
		`fmt.Sprintf("kubectl logs -n %s -l %s=%s,%s=%s", ns, v1alpha1.LabelGroup, g, v1alpha1.LabelName, v1alpha1.NameCache)`: false,
		`fmt.Sprintf("kubectl -n %s label secret -l %s=%s", ns, v1alpha1.LabelGroup, g)`:                                       false,
	} {
		if got := unnamedPods("x.go", line).bad != ""; got != bad {
			t.Errorf("%t for %s", got, line)
		}
	}
}
