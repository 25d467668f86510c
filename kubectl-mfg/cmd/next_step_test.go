// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNextStep: whatever reason the operator can give for a planned failover that did not come about has a next step, and
// what it names is a command line that the plugin, or kubectl, takes.
func TestNextStep(t *testing.T) {
	read := func(file string) string {
		raw, err := os.ReadFile(filepath.Join("..", "..", "operator", "failover", file))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	values := map[string]string{}
	for _, m := range regexp.MustCompile(`(Reason\w+)\s+Reason = "(\w+)"`).FindAllStringSubmatch(read("decision.go"), -1) {
		values[m[1]] = m[2]
	}
	// Those that only say how far it is, or lead to the general page.
	general := map[string]bool{"ReasonNotHealthy": true, "ReasonForeignWriter": true, "ReasonNoCandidate": true, "ReasonAwaitingFence": true, "ReasonDraining": true, "ReasonMissingTransactions": true, "ReasonReverted": true}
	seen := 0
	op := failoverOp{request: request{Namespace: "shop", Group: "orders"}, To: "frankfurt"}
	for _, name := range regexp.MustCompile(`\bReason[A-Z]\w+`).FindAllString(read("planned.go"), -1) {
		reason, known := values[name]
		if !known {
			t.Errorf("%s is no constant of decision.go", name)
			continue
		}
		seen++
		next := op.nextStep(reason)
		if own := next != op.nextStep("anything"); own == general[name] {
			t.Errorf("%s (%s): its next step is %q", name, reason, next)
		}
		if !strings.Contains(next, "orders") || !strings.Contains(next, "kubectl ") {
			t.Errorf("%s: %q names no command", name, next)
		}
		for _, line := range regexp.MustCompile(`kubectl mfg [^;]+`).FindAllString(next, -1) {
			checkCommand(t, strings.TrimSpace(line))
		}
	}
	if moving := op.nextStep("RoleIsMoving"); moving == op.nextStep("anything") {
		t.Errorf("while the role moves: %q", moving)
	}
	if seen < 20 {
		t.Errorf("only %d reasons were found", seen)
	}
}
