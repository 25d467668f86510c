// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestDrill: there and back, judged, in every format; a drill that cannot be judged does not pass.
func TestDrill(t *testing.T) {
	well := func(f *fakeAPI) { f.groups[0].Status.Forecast = &v1alpha1.Forecast{Site: "frankfurt"} }
	both := func(f *fakeAPI) {
		if asked(f, v1alpha1.AnnotationPlannedFailover) {
			answerMove(f, v1alpha1.PlannedSucceeded, "Opened", "")
		}
	}
	onlyThere := func(f *fakeAPI) {
		if asked(f, v1alpha1.AnnotationPlannedFailover) && len(f.patched) == 1 {
			answerMove(f, v1alpha1.PlannedSucceeded, "Opened", "")
		} else if asked(f, v1alpha1.AnnotationPlannedFailover) {
			answerMove(f, v1alpha1.PlannedReverted, "PauseTimeout", "frankfurt is opened again")
		}
	}
	tests := map[string]struct {
		args   string
		tick   func(*fakeAPI)
		change func(*fakeAPI)
		code   int
		moves  int
		golden string
	}{
		"Passed":   {"--yes --canary=false", both, well, cli.ExitHealthy, 2, "drill-passed.txt"},
		"JSON":     {"--yes --canary=false -o json", both, well, cli.ExitHealthy, 2, "drill-passed.json"},
		"JUnit":    {"--yes --canary=false -o junit --target 400ms", both, well, cli.ExitDegraded, 2, "drill-slow.xml"},
		"NotBack":  {"--yes --canary=false", onlyThere, well, cli.ExitRefused, 2, "drill-not-back.txt"},
		"DryRun":   {"--dry-run=client", nil, well, cli.ExitHealthy, 0, "drill-plan.txt"},
		"Unwell":   {"--yes --canary=false", nil, func(f *fakeAPI) { well(f); lost(f) }, cli.ExitRefused, 0, ""},
		"Nobody":   {"--yes --canary=false", nil, func(f *fakeAPI) { f.groups[0].Status.Forecast = &v1alpha1.Forecast{} }, cli.ExitRefused, 0, ""},
		"NotSaid":  {"--yes --canary=false", nil, func(*fakeAPI) {}, cli.ExitRefused, 0, ""},
		"NoAnswer": {"", nil, well, cli.ExitUsage, 0, ""},
		"Server":   {"--dry-run=server", nil, well, cli.ExitUsage, 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			tc.change(f)
			o := runOptions{tick: func(int) {
				if tc.tick != nil {
					tc.tick(f)
				}
			}}
			got := run(t, f, o, append([]string{"drill", "orders", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || len(f.patched) != tc.moves {
				t.Errorf("exit code %d, want %d; %d moves, want %d; stderr:\n%s", got.code, tc.code, len(f.patched), tc.moves, got.errOut)
			}
			if says := map[string]string{"Unwell": "a drill is for a group that is well", "Nobody": "no site would take over", "NotSaid": "has not said yet"}[name]; !strings.Contains(got.errOut, says) {
				t.Errorf("lacks %q: %+v", says, got)
			}
			if tc.golden != "" {
				golden(t, filepath.Join("testdata", "verbs", tc.golden), got.out)
			}
		})
	}
}

// TestDrillThatMetAnOutage: the role moved between the two moves. What comes after it is no way back, and the drill does not pass.
func TestDrillThatMetAnOutage(t *testing.T) {
	f := loadHealthy(t)
	f.groups[0].Status.Forecast = &v1alpha1.Forecast{Site: "frankfurt"}
	moved := false
	got := run(t, f, runOptions{tick: func(int) {
		if !moved && asked(f, v1alpha1.AnnotationPlannedFailover) {
			answerMove(f, v1alpha1.PlannedSucceeded, "Opened", "")
			moved = true
		} else if moved && f.groups[0].Status.ActiveSite == "frankfurt" {
			failsOver(f, "madrid")
			f.groups[0].Spec.Sites[2].Role = v1alpha1.PrimaryCandidate
		}
	}}, strings.Fields("drill orders -n shop --yes --canary=false --stay 5s")...)
	if got.code != cli.ExitRefused || len(f.patched) != 1 || !strings.Contains(got.errOut, "the role moved during the drill: madrid is active under epoch") {
		t.Errorf("%+v, asked %v", got, f.patched)
	}
}

// TestDrillNotBegun: who asked for a report gets one also of a drill that was refused.
func TestDrillNotBegun(t *testing.T) {
	f := loadHealthy(t)
	f.groups[0].Status.Forecast = &v1alpha1.Forecast{Site: "frankfurt"}
	f.explanation = &wire.Explanation{Candidates: []wire.ExplainedCandidate{{Site: "frankfurt", PlannedBlockedBy: "Paused", PlannedMessage: "paused until noon",
		PlannedRemedies: []wire.Remedy{{Text: "to go on", Command: "kubectl mfg resume orders -n shop"}}}}}
	for format, want := range map[string][]string{
		"json":  {`"passed": false`, `"outcome": "Refused"`, `"reason": "Paused"`, `"message": "paused until noon"`, `"next": "to go on: kubectl mfg resume orders -n shop"`, `"legs": []`},
		"junit": {`tests="1" failures="1"`, `<failure message="Refused (Paused): paused until noon">`},
	} {
		got := run(t, f, runOptions{}, strings.Fields("drill orders -n shop --yes -o "+format)...)
		for _, w := range want {
			if got.code != cli.ExitRefused || !strings.Contains(got.out, w) || !strings.Contains(got.errOut, "error: refused (Paused)") {
				t.Errorf("%s lacks %q: %+v", format, w, got)
			}
		}
	}
	if got := run(t, f, runOptions{}, strings.Fields("drill orders -n shop --yes")...); got.code != cli.ExitRefused || got.out != "" {
		t.Errorf("%+v", got)
	}
}

// TestAMissedAnswerRefusesNoOrder: the operator waits for the target.
func TestAMissedAnswerRefusesNoOrder(t *testing.T) {
	f := loadHealthy(t)
	f.explanation = &wire.Explanation{Candidates: []wire.ExplainedCandidate{{Site: "frankfurt", PlannedBlockedBy: "TargetSilent", PlannedMessage: "frankfurt: its sidecar does not answer"}}}
	o := runOptions{tick: func(int) {
		if asked(f, v1alpha1.AnnotationPlannedFailover) {
			answerMove(f, v1alpha1.PlannedSucceeded, "Opened", "")
		}
	}}
	if got := run(t, f, o, strings.Fields("failover orders -n shop --to frankfurt --yes")...); got.code != cli.ExitHealthy || len(f.patched) != 1 {
		t.Errorf("%d moves: %+v", len(f.patched), got)
	}
}

// TestDrillOfANewGroup: a group is whole a moment before the operator says which site would take over. The drill waits for that.
func TestDrillOfANewGroup(t *testing.T) {
	f := loadHealthy(t)
	waits := 0
	o := runOptions{tick: func(int) {
		switch waits++; {
		case waits == 2:
			f.groups[0].Status.Forecast = &v1alpha1.Forecast{}
		case waits == 4:
			f.groups[0].Status.Forecast = &v1alpha1.Forecast{Site: "frankfurt"}
		case asked(f, v1alpha1.AnnotationPlannedFailover):
			answerMove(f, v1alpha1.PlannedSucceeded, "Opened", "")
		}
	}}
	if got := run(t, f, o, strings.Fields("drill orders -n shop --yes --canary=false")...); got.code != cli.ExitHealthy || len(f.patched) != 2 ||
		!strings.Contains(got.errOut, "waiting up to 15s until a site would take over") {
		t.Errorf("%d moves: %+v", len(f.patched), got)
	}
}
