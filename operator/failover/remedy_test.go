// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// orders is a group at rest that has a name.
func orders() Snapshot {
	s := factstest.AtRest()
	s.Group = Group{Namespace: "shop", Name: "orders"}
	return s
}

const again = "kubectl mfg failover orders -n shop --to b"

// TestARefusedMoveComesWithWhatToDo: each refusal of a planned failover has commands that name the group, the same in an explanation and
// in status.
func TestARefusedMoveComesWithWhatToDo(t *testing.T) {
	pods := "-n shop -l " + v1alpha1.MySQLPods("orders", "b")
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		to     string
		why    Reason
		want   []string
	}{
		"there is no such site": {func(*Snapshot) {}, "x", v1alpha1.ReasonUnknownSite, []string{"kubectl mfg status orders -n shop"}},
		"mode Observe": {func(s *Snapshot) { s.Policy.Mode = v1alpha1.FailoverObserve }, "b", v1alpha1.ReasonModeObserve,
			[]string{`kubectl patch mfg orders -n shop --type merge -p '{"spec":{"failover":{"mode":"Manual"}}}'`}},
		"paused":           {func(s *Snapshot) { s.Policy.PausedUntil = s.Now.Add(time.Hour) }, "b", v1alpha1.ReasonPaused, []string{"kubectl mfg resume orders -n shop"}},
		"b is not fit":     {func(s *Snapshot) { s.Sites[1].Role = v1alpha1.DROnly }, "b", v1alpha1.ReasonNotFit, []string{"kubectl describe pods " + pods}},
		"b is about to go": {func(s *Snapshot) { s.Sites[1].Leaving = "drained" }, "b", v1alpha1.ReasonNotFit, []string{"kubectl describe pods " + pods}},
		"b's volume goes": {func(s *Snapshot) { s.Sites[1].Pod.VolumeGoes = true }, "b", v1alpha1.ReasonVolumeTerminating,
			[]string{"kubectl delete pods " + pods, "kubectl mfg status orders -n shop -w", again}},
		"only its pod has its keyring": {func(s *Snapshot) { s.Sites[1].EscrowMissing = true }, "b", v1alpha1.ReasonNotFit,
			[]string{"kubectl mfg recover-keyring orders b -n shop", again}},
		"a is silent":        {func(s *Snapshot) { s.Sites[0].Sidecar.Answered = false }, "b", v1alpha1.ReasonNotHealthy, []string{"kubectl mfg explain orders -n shop"}},
		"b does not receive": {func(s *Snapshot) { s.Sites[1].MySQL.IORunning = false }, "b", v1alpha1.ReasonNotReplicating, []string{"kubectl describe pods " + pods}},
		"c accepts writes": {func(s *Snapshot) { s.Sites[2].MySQL.SuperReadOnly, s.Sites[2].MySQL.ReadOnly = false, false }, "b", v1alpha1.ReasonForeignWriter,
			[]string{"kubectl mfg explain orders -n shop"}},
		"c is being cloned": {func(s *Snapshot) { s.Sites[2].Busy = WorkClone }, "b", v1alpha1.ReasonCloneInProgress, []string{"kubectl mfg status orders -n shop -w", again}},
		"b is being cloned": {func(s *Snapshot) { s.Sites[1].Busy = WorkClone }, "b", v1alpha1.ReasonCloneInProgress, []string{"kubectl mfg status orders -n shop -w", again}},
		"nothing":           {func(*Snapshot) {}, "b", "", nil},
	} {
		s := orders()
		tc.change(&s)
		got := promotion.Preflight(s, Memory{}, s.Sites[0], tc.to)
		if diff := cmp.Diff(tc.want, commandsOf(got.Remedies)); diff != "" || got.Reason != tc.why {
			t.Errorf("%s: %s: %s", name, got.Reason, diff)
		}
		for _, c := range Explain(s, Memory{}, Decide(s, Memory{})).Candidates {
			if c.Site == tc.to && !cmp.Equal(c.PlannedRemedies, got.Remedies) {
				t.Errorf("%s: explained: %v", name, c.PlannedRemedies)
			}
		}
		if tc.why == "" {
			continue
		}
		s.Policy.PlannedTo = tc.to
		p := waiting(s, Decision{Status: s.Status}, s.Sites[0], Planned{From: "a", To: tc.to, Cause: v1alpha1.ReasonRequested, StartedAt: s.Now}).Status.Planned
		if p.Reason != tc.why || !cmp.Equal(p.Remedies, got.Remedies) {
			t.Errorf("%s: in status: %s: %v", name, p.Reason, p.Remedies)
		}
	}
}

// TestAMoveThatEndsComesWithWhatToDo: who asked for it reads in status what to do next. The operator tries its own moves again.
func TestAMoveThatEndsComesWithWhatToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		why    Reason
		want   []string
	}{
		"it is given up": {func(s *Snapshot) { s.Policy.AbortPlanned = true }, v1alpha1.ReasonAborted, []string{again}},
		"it takes too long": {func(s *Snapshot) { s.Status.Transition.StartedAt = s.Now.Add(-time.Hour) }, v1alpha1.ReasonPauseTimeout,
			[]string{"kubectl mfg events orders -n shop --since 10m", again}},
		"its target is lost": {func(s *Snapshot) { s.Sites[1].Role = v1alpha1.DROnly }, v1alpha1.ReasonTargetLost,
			[]string{"kubectl describe pods -n shop -l " + v1alpha1.MySQLPods("orders", "b")}},
	} {
		for cause, told := range map[Reason]bool{v1alpha1.ReasonRequested: true, v1alpha1.ReasonSiteLeaving: false} {
			s := factstest.Under(v1alpha1.FailoverPlanned)
			s.Group, s.Policy.PlannedPauseTimeout = Group{Namespace: "shop", Name: "orders"}, 5*time.Second
			s.Status.Planned = &Planned{From: "a", To: "b", Cause: cause, Phase: v1alpha1.PlannedMoving, StartedAt: s.Now}
			tc.change(&s)
			p := moving(s, Decision{Status: s.Status}).Status.Planned
			want := tc.want
			if !told {
				want = nil
			}
			if diff := cmp.Diff(want, commandsOf(p.Remedies)); diff != "" || p.Reason != tc.why {
				t.Errorf("%s, %s: %s: %s", name, cause, p.Reason, diff)
			}
		}
	}
	s := orders()
	s.Policy.PlannedTo = "a"
	d := waiting(s, Decision{Status: s.Status}, s.Sites[0], Planned{From: "a", To: "a", Cause: v1alpha1.ReasonRequested, StartedAt: s.Now})
	if got := commandsOf(d.Status.Planned.Remedies); !slices.Equal(got, []string{"kubectl mfg status orders -n shop"}) {
		t.Errorf("active already: %v", got)
	}
}

// TestCommandsNameTheGroup: without a name, as nobody has one outside of tests, a command has a word for it.
func TestCommandsNameTheGroup(t *testing.T) {
	for want, got := range map[string]string{
		"kubectl mfg explain GROUP":                            Group{}.Command("explain", "", ""),
		"kubectl mfg mysql GROUP b -e 'x'":                     Group{}.Command("mysql", "b", "-e 'x'"),
		"kubectl mfg explain orders -n shop":                   Group{Namespace: "shop", Name: "orders"}.Command("explain", "", ""),
		"kubectl mfg failover orders -n shop --to b":           remedy.MoveTo(Group{Namespace: "shop", Name: "orders"}, "b"),
		"kubectl mfg recover-keyring orders b -n shop":         remedy.RestoreEscrow(Group{Namespace: "shop", Name: "orders"}, "b").Command,
		"kubectl mfg failover GROUP --to b --accept-data-loss": remedy.ForceTo(Group{}, "b"),
		"to go on: kubectl mfg resume GROUP":                   remedy.New("to go on", Group{}.Command("resume", "", "")).String(),
		"wait":                                                 remedy.Advice("wait").String(),
		"wait; or order it: kubectl mfg failover GROUP --to b": wire.InWords([]Remedy{remedy.Advice("wait"), remedy.New("or order it", remedy.MoveTo(Group{}, "b"))}),
		"kubectl mfg resume GROUP":                             Remedy{Command: Group{}.Command("resume", "", "")}.String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNoCommandHidesInWords: what is to be copied stands alone, in every remedy of every explanation.
func TestNoCommandHidesInWords(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		"at rest":       func(*Snapshot) {},
		"paused":        func(s *Snapshot) { s.Policy.PausedUntil = s.Now.Add(time.Hour) },
		"by hand":       func(s *Snapshot) { s.Policy.Mode = v1alpha1.FailoverManual },
		"nobody is fit": func(s *Snapshot) { s.Sites[1].Role, s.Sites[2].EscrowMissing = v1alpha1.DROnly, true },
		"a is gone":     func(s *Snapshot) { s.Sites[0].Sidecar, s.Sites[0].MySQL = Sidecar{}, MySQL{} },
		"everybody is gone": func(s *Snapshot) {
			for i := range s.Sites {
				s.Sites[i].Sidecar, s.Sites[i].MySQL = Sidecar{}, MySQL{}
			}
		},
	} {
		s := orders()
		change(&s)
		for _, r := range Explain(s, Memory{}, Decide(s, Memory{})).Rules {
			if r.Remedy != wire.InWords(r.Remedies) {
				t.Errorf("%s: %s: %q is not %v", name, r.Name, r.Remedy, r.Remedies)
			}
			for _, one := range r.Remedies {
				if strings.Contains(one.Text, "kubectl ") || one.Command != "" && !strings.HasPrefix(one.Command, "kubectl ") {
					t.Errorf("%s: %s: %+v", name, r.Name, one)
				}
			}
		}
	}
}

func commandsOf(all []Remedy) (commands []string) {
	for _, r := range all {
		if r.Command != "" {
			commands = append(commands, r.Command)
		}
	}
	return commands
}
