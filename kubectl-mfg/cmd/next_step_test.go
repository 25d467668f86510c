// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// TestNextStep: what the operator says to do next is told as it stands, whatever the reason; without a word of it, where to look.
func TestNextStep(t *testing.T) {
	const general = "see every rule: kubectl mfg explain orders -n shop"
	if got := request.NextStep("shop", "orders", nil); got != general {
		t.Errorf("%q", got)
	}
	checkCommand(t, "kubectl mfg explain orders -n shop")
	for name, tc := range map[string]struct {
		remedies []v1alpha1.Remedy
		want     string
	}{
		"AsItSays": {[]v1alpha1.Remedy{{Text: "bring its keyring back", Command: "kubectl mfg recover-keyring orders frankfurt -n shop"}, {Text: "then wait"}},
			"bring its keyring back: kubectl mfg recover-keyring orders frankfurt -n shop; then wait"},
		"OlderOperator": {nil, general},
	} {
		f := loadHealthy(t)
		got := run(t, f, runOptions{tick: func(int) {
			if asked(f, v1alpha1.AnnotationPlannedFailover) {
				answerMove(f, v1alpha1.PlannedRefused, "OfANewerVersion", "words")
				f.groups[0].Status.PlannedFailover.Remedies = tc.remedies
			}
		}}, strings.Fields("failover orders -n shop --to frankfurt --yes -o json")...)
		if got.code != cli.ExitRefused || !strings.Contains(got.out, `"next": "`+tc.want+`"`) {
			t.Errorf("%s: exit code %d: %s", name, got.code, got.out)
		}
	}
}

// TestNextStepWithoutEscrow: a site that is unfit only for want of its escrow Secret has a pod that runs well; what helps is to bring the
// Secret back, and every output says so as the operator does.
func TestNextStepWithoutEscrow(t *testing.T) {
	const step = "kubectl mfg recover-keyring orders frankfurt -n shop"
	const said = "frankfurt: the escrow Secret of its keyring is gone, and only its pod has the keyring still; bring it back: " + step
	remedies := []wire.Remedy{{Text: "bring it back", Command: step}}
	explained := func(f *fakeAPI) {
		f.live.Groups[0].Message = said
		f.explanation = &wire.Explanation{
			Rules:      []wire.ExplainedRule{{Name: "Candidate", Input: said, Verdict: wire.RuleAgainst, Remedies: remedies}},
			Candidates: []wire.ExplainedCandidate{{Site: "frankfurt", Unfit: said, Because: said, PlannedBlockedBy: "NotFit", PlannedMessage: said, PlannedRemedies: remedies}},
		}
	}
	answered := func(f *fakeAPI) {
		if asked(f, v1alpha1.AnnotationPlannedFailover) {
			answerMove(f, v1alpha1.PlannedRefused, "NotFit", said)
			f.groups[0].Status.PlannedFailover.Remedies = []v1alpha1.Remedy{{Text: "bring it back", Command: step}}
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
		all := strings.Join(strings.Fields(got.out+got.errOut), " ")
		if !strings.Contains(all, step) {
			t.Errorf("%s: what to do is not told: %s", name, all)
		}
		if tc.next && (got.code != cli.ExitRefused || !strings.Contains(all, step) || strings.Contains(all, "describe pods")) {
			t.Errorf("%s: exit code %d, and no next step: %s", name, got.code, all)
		}
	}
	checkCommand(t, step)
}
