// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// TestNextStep: whatever reason the operator can give for a planned failover that did not come about has a next step, and
// what it names is a command line that the plugin, or kubectl, takes.
func TestNextStep(t *testing.T) {
	read := func(folder, file string) string {
		raw, err := os.ReadFile(filepath.Join("..", "..", folder, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	values := map[string]string{}
	for _, m := range regexp.MustCompile(`(Reason\w+)\s+Reason = "(\w+)"`).FindAllStringSubmatch(read("api/v1alpha1", "reasons_failover.go"), -1) {
		values[m[1]] = m[2]
	}
	// Those that only say how far it is, or lead to the general page.
	general := map[string]bool{"ReasonNotHealthy": true, "ReasonForeignWriter": true, "ReasonNoFitCandidate": true, "ReasonAwaitingFenceProof": true, "ReasonDrainingRelayLog": true,
		"ReasonMissingTransactions": true, "ReasonPlannedReverted": true, "ReasonRequested": true, "ReasonSiteLeaving": true, "ReasonOrderedUpdate": true}
	seen := 0
	op := failoverOp{request: request{Namespace: "shop", Group: "orders"}, To: "frankfurt"}
	for _, name := range regexp.MustCompile(`\bReason[A-Z]\w+`).FindAllString(read("operator/failover", "planned.go"), -1) {
		reason, known := values[name]
		if !known {
			t.Errorf("%s is no constant of reasons_failover.go", name)
			continue
		}
		seen++
		next := op.nextStep(v1alpha1.Reason(reason), "")
		if own := next != op.nextStep("anything", ""); own == general[name] {
			t.Errorf("%s (%s): its next step is %q", name, reason, next)
		}
		if !strings.Contains(next, "orders") || !strings.Contains(next, "kubectl ") {
			t.Errorf("%s: %q names no command", name, next)
		}
		for _, line := range regexp.MustCompile(`kubectl mfg [^;]+`).FindAllString(next, -1) {
			checkCommand(t, strings.TrimSpace(line))
		}
	}
	if moving := op.nextStep("RoleIsMoving", ""); moving == op.nextStep("anything", "") {
		t.Errorf("while the role moves: %q", moving)
	}
	if seen < 20 {
		t.Errorf("only %d reasons were found", seen)
	}
}

// TestNextStepWithoutEscrow: a site that is unfit only for want of its escrow Secret has a pod that runs well; what helps is to bring the
// Secret back. No output names the group by a placeholder.
func TestNextStepWithoutEscrow(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "..", "operator", "failover", "escrow.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), escrowGone) {
		t.Errorf("the operator does not say %q any more", escrowGone)
	}
	const step = "kubectl mfg recover-keyring orders frankfurt -n shop"
	said := "frankfurt: the escrow Secret of its keyring is gone, and only its pod has the keyring still; restore it first: kubectl mfg recover-keyring GROUP frankfurt"
	explained := func(f *fakeAPI) {
		f.live.Groups[0].Message = said
		f.explanation = &wire.Explanation{
			Rules:      []wire.ExplainedRule{{Name: "Candidate", Input: said, Verdict: wire.RuleAgainst, Remedy: said}},
			Candidates: []wire.ExplainedCandidate{{Site: "frankfurt", Unfit: said, Because: said, PlannedBlockedBy: "NotFit", PlannedMessage: said}},
		}
	}
	answered := func(f *fakeAPI) {
		if asked(f, v1alpha1.AnnotationPlannedFailover) {
			answerMove(f, v1alpha1.PlannedRefused, "NotFit", said)
		}
	}
	for name, tc := range map[string]struct {
		args   string
		change func(*fakeAPI)
		tick   func(*fakeAPI)
		next   bool
	}{
		"Preflight": {"failover orders -n shop --to frankfurt --yes", explained, nil, true},
		"Refused":   {"failover orders -n shop --to frankfurt --yes", nil, answered, true},
		"JSON":      {"failover orders -n shop --to frankfurt --yes -o json", explained, nil, true},
		"Drill":     {"drill orders -n shop --to frankfurt --yes", explained, nil, true},
		"Explain":   {"explain orders -n shop", explained, nil, false},
		"AsYAML":    {"explain orders -n shop -o yaml", explained, nil, false},
		"Status":    {"status orders -n shop -o yaml", explained, nil, false},
	} {
		f := loadHealthy(t)
		if tc.change != nil {
			tc.change(f)
		}
		got := run(t, f, runOptions{tick: func(int) {
			if tc.tick != nil {
				tc.tick(f)
			}
		}}, strings.Fields(tc.args)...)
		all := got.out + got.errOut
		if strings.Contains(all, "GROUP") || !strings.Contains(all, "recover-keyring orders") {
			t.Errorf("%s: the group is not named: %s", name, all)
		}
		if tc.next && (got.code != exitRefused || !strings.Contains(all, step) || strings.Contains(all, "describe pods")) {
			t.Errorf("%s: exit code %d, and no next step: %s", name, got.code, all)
		}
	}
	checkCommand(t, step)
}
