// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

func loadHealthy(t *testing.T) *fakeAPI {
	t.Helper()
	return load(t, filepath.Join("testdata", "status", "healthy"))
}

func microTime(after time.Duration) *metav1.MicroTime {
	at := metav1.NewMicroTime(noon.Add(after))
	return &at
}

// answerMove plays the operator: a planned failover of the first group that ends in a phase.
func answerMove(f *fakeAPI, phase v1alpha1.PlannedPhase, reason v1alpha1.Reason, message string) {
	g := &f.groups[0]
	to := g.Annotations[v1alpha1.AnnotationPlannedFailover]
	pause := int64(412)
	p := &v1alpha1.PlannedFailoverStatus{From: g.Status.ActiveSite, To: to, Cause: "Requested", Phase: phase, Reason: reason, Message: message,
		StartedAt: microTime(time.Duration(len(f.patched)) * time.Hour), FinishedAt: microTime(time.Second), Answered: true}
	if phase == v1alpha1.PlannedSucceeded {
		p.WritePauseMillis = &pause
		g.Status.Epoch++
		g.Status.Failovers = append([]v1alpha1.FailoverRecord{{Epoch: g.Status.Epoch, Kind: v1alpha1.FailoverPlanned, From: p.From, To: to, LossExact: true, WritePauseMillis: &pause}}, g.Status.Failovers...)
		g.Status.ActiveSite = to
		live := &f.live.Groups[0]
		live.Epoch, live.ActiveSite = g.Status.Epoch, to
		for i := range live.Sites {
			s := &live.Sites[i]
			s.Writable = s.Name == to
			s.State, s.Fence = "Replica", "read-only"
			if s.Writable {
				s.State, s.Fence = "Primary", "open"
			}
		}
	}
	g.Status.PlannedFailover = p
	outcome := map[v1alpha1.PlannedPhase]v1alpha1.RequestOutcome{v1alpha1.PlannedSucceeded: v1alpha1.RequestDone, v1alpha1.PlannedRefused: v1alpha1.RequestRefused}[phase]
	f.answer(v1alpha1.RequestPlannedFailover, cmp.Or(outcome, v1alpha1.RequestFailed), string(reason), message)
}

// asked is true once an annotation is on the first group.
func asked(f *fakeAPI, key string) bool { _, is := f.groups[0].Annotations[key]; return is }

// TestFailover walks through every outcome of a planned failover.
func TestFailover(t *testing.T) {
	succeed := func(f *fakeAPI) {
		if asked(f, v1alpha1.AnnotationPlannedFailover) {
			answerMove(f, v1alpha1.PlannedSucceeded, "Opened", "frankfurt is active")
		}
	}
	end := func(phase v1alpha1.PlannedPhase, reason v1alpha1.Reason, message string) func(*fakeAPI) {
		return func(f *fakeAPI) {
			if asked(f, v1alpha1.AnnotationPlannedFailover) {
				answerMove(f, phase, reason, message)
			}
		}
	}
	tests := map[string]struct {
		reason  string
		args    string
		stdin   string
		change  func(*fakeAPI)
		tick    func(*fakeAPI)
		code    int
		patches int
		out     []string // stdout
		errOut  []string
	}{
		"Succeeds": {reason: "the pause that was measured is told", args: "--to frankfurt", stdin: "y\n", tick: succeed, code: cli.ExitHealthy, patches: 1,
			out: []string{"frankfurt is active under epoch 8", "412ms", "Lost: 0 transactions"}, errOut: []string{"Planned failover of orders", "Undo", "[y/N]", "asked the operator"}},
		"Yes":          {args: "--to frankfurt --yes", tick: succeed, patches: 1, out: []string{"frankfurt is active"}},
		"NotConfirmed": {args: "--to frankfurt", stdin: "n\n", code: cli.ExitUsage, errOut: []string{"nothing was changed"}},
		"EmptyIsNo":    {args: "--to frankfurt", stdin: "\n", code: cli.ExitUsage, errOut: []string{"nothing was changed"}},
		"NoTerminal":   {reason: "a script must say --yes", args: "--to frankfurt", code: cli.ExitUsage, errOut: []string{"no --yes", "nothing was changed"}},
		"DryRunClient": {args: "--to frankfurt --dry-run=client", out: []string{"Would     set annotation mysql-mfg.io/planned-failover=frankfurt", "nothing was sent", "Now       paris is active"}},
		"DryRunBare":   {args: "--to frankfurt --dry-run", out: []string{"nothing was sent"}},
		"DryRunServer": {args: "--to frankfurt --dry-run=server", patches: 1, out: []string{"the API server would take it"}},
		"NoWait":       {args: "--to frankfurt --yes --wait=false", patches: 1, out: []string{"asked for", "kubectl mfg status orders"}},
		"Conflict": {reason: "the operator writes its status at any time; what was agreed on is looked at again", args: "--to frankfurt --yes",
			change: func(f *fakeAPI) { f.conflicts = 3 }, tick: succeed, patches: 1, out: []string{"frankfurt is active"}},
		"Refused": {args: "--to frankfurt --yes", tick: end(v1alpha1.PlannedRefused, "TargetLags", "nothing was changed: frankfurt lags"), code: cli.ExitRefused, patches: 1,
			errOut: []string{"refused (TargetLags): nothing was changed: frankfurt lags"}},
		"Reverted": {args: "--to frankfurt --yes", tick: end(v1alpha1.PlannedReverted, "PauseTimeout", "paris is opened again"), code: cli.ExitRefused, patches: 1,
			errOut: []string{"reverted (PauseTimeout): paris is opened again"}},
		"TimedOut": {reason: "only the waiting ends", args: "--to frankfurt --yes --timeout 3s", code: cli.ExitTimeout, patches: 1,
			errOut: []string{"no outcome within 3s", "the request stays in force", "kubectl mfg status orders"}},
		"UnknownSite": {args: "--to rome --yes", code: cli.ExitRefused, errOut: []string{"no site \"rome\"", "paris, frankfurt, madrid"}},
		"Active":      {args: "--to paris --yes", code: cli.ExitRefused, errOut: []string{"paris is active already"}},
		"DROnly":      {args: "--to madrid --yes", code: cli.ExitRefused, errOut: []string{"madrid is dr-only", "kubectl edit mfg"}},
		"Observe": {args: "--to frankfurt --yes", change: func(f *fakeAPI) { f.groups[0].Spec.Failover.Mode = v1alpha1.FailoverObserve }, code: cli.ExitRefused,
			errOut: []string{"mode is Observe", "kubectl patch mfg"}},
		"Pending": {reason: "two requests at a time would be answered by one outcome", args: "--to frankfurt --yes", code: cli.ExitRefused, errOut: []string{"a new copy of a site was requested", "-w"},
			change: func(f *fakeAPI) {
				f.groups[0].Annotations = map[string]string{v1alpha1.AnnotationRecloneSite: "madrid"}
			}},
		"UnderWay": {args: "--to frankfurt --yes", code: cli.ExitRefused, errOut: []string{"a planned failover to frankfurt is under way (Moving)"},
			change: func(f *fakeAPI) {
				f.groups[0].Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{To: "frankfurt", Phase: v1alpha1.PlannedMoving}
			}},
		"Changing": {args: "--to frankfurt --yes", code: cli.ExitRefused, errOut: []string{"the role is moving to paris (Fencing)"},
			change: func(f *fakeAPI) {
				f.groups[0].Status.Transition = &v1alpha1.Transition{To: "paris", Step: v1alpha1.TransitionFencing}
			}},
		"Preflight": {reason: "the operator's own preflight is told before anything is asked for", args: "--to frankfurt --yes", code: cli.ExitRefused,
			errOut: []string{"refused (Paused): paused until noon", "kubectl mfg resume orders -n shop"},
			change: func(f *fakeAPI) {
				f.explanation = &wire.Explanation{Candidates: []wire.ExplainedCandidate{{Site: "frankfurt", PlannedBlockedBy: "Paused", PlannedMessage: "paused until noon",
					PlannedRemedies: []wire.Remedy{{Text: "to go on", Command: "kubectl mfg resume orders -n shop"}}}}}
			}},
		"OperatorDown": {reason: "a request that nobody reads would be carried out when nobody expects it any more", args: "--to frankfurt --yes",
			change: func(f *fakeAPI) { f.live = nil }, code: cli.ExitRefused, errOut: []string{"no pod is ready", "kubectl get pods -n mfg-system"}},
		"OperatorUnasked": {reason: "read and patch on the custom resource are enough", args: "--to frankfurt --yes",
			change: func(f *fakeAPI) { f.answers[livePath] = status(403, metav1.StatusReasonForbidden, "no") },
			tick: func(f *fakeAPI) {
				if asked(f, v1alpha1.AnnotationPlannedFailover) {
					f.live.Groups[0].Epoch = 8
					answerMove(f, v1alpha1.PlannedSucceeded, "Opened", "")
				}
			}, patches: 1, out: []string{"frankfurt is active under epoch 8"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			if tc.change != nil {
				tc.change(f)
			}
			o := runOptions{stdin: tc.stdin, tick: func(int) {
				if tc.tick != nil {
					tc.tick(f)
				}
			}}
			got := run(t, f, o, append([]string{"failover", "orders", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || len(f.patched) != tc.patches {
				t.Errorf("%s: exit code %d, want %d; %d patches, want %d; stderr:\n%s", tc.reason, got.code, tc.code, len(f.patched), tc.patches, got.errOut)
			}
			for _, want := range tc.out {
				if !strings.Contains(got.out, want) {
					t.Errorf("stdout lacks %q:\n%s", want, got.out)
				}
			}
			for _, want := range tc.errOut {
				if !strings.Contains(got.errOut, want) {
					t.Errorf("stderr lacks %q:\n%s", want, got.errOut)
				}
			}
			if tc.code != cli.ExitHealthy && got.out != "" {
				t.Errorf("stdout holds something although it failed: %q", got.out)
			}
		})
	}
}

// TestFailoverInterrupted: Ctrl-C ends only the waiting, and says so.
func TestFailoverInterrupted(t *testing.T) {
	f := loadHealthy(t)
	ctx, cancel := context.WithCancel(t.Context())
	got := run(t, f, runOptions{ctx: ctx, tick: func(int) { cancel() }}, "failover", "orders", "-n", "shop", "--to", "frankfurt", "--yes")
	if got.code != cli.ExitTimeout || !strings.Contains(got.errOut, "only the waiting ended") || !asked(f, v1alpha1.AnnotationPlannedFailover) {
		t.Errorf("%+v", got)
	}
}

// TestFailoverReport: one typed answer for scripts, also of a refusal.
func TestFailoverReport(t *testing.T) {
	for name, phase := range map[string]v1alpha1.PlannedPhase{"succeeded": v1alpha1.PlannedSucceeded, "reverted": v1alpha1.PlannedReverted} {
		f := loadHealthy(t)
		o := runOptions{tick: func(int) {
			if asked(f, v1alpha1.AnnotationPlannedFailover) {
				answerMove(f, phase, "Because", "words")
			}
		}}
		got := run(t, f, o, "failover", "orders", "-n", "shop", "--to", "frankfurt", "--yes", "-o", "json")
		golden(t, filepath.Join("testdata", "verbs", "failover-"+name+".json"), got.out)
		if want := map[string]int{"succeeded": cli.ExitHealthy, "reverted": cli.ExitRefused}[name]; got.code != want {
			t.Errorf("%s: exit code %d, want %d", name, got.code, want)
		}
	}
	f := loadHealthy(t)
	got := run(t, f, runOptions{width: 100}, "failover", "orders", "-n", "shop", "--to", "frankfurt", "--dry-run=client")
	golden(t, filepath.Join("testdata", "verbs", "failover-plan.txt"), got.out)
}

// TestOutcomeOfAnother: the status speaks of another planned failover already, so the operator's word on ours counts.
func TestOutcomeOfAnother(t *testing.T) {
	f := loadHealthy(t)
	o := runOptions{tick: func(int) {
		if asked(f, v1alpha1.AnnotationPlannedFailover) {
			answerMove(f, v1alpha1.PlannedRefused, "Busy", "words")
			f.groups[0].Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{To: "madrid", Cause: "SiteLeaving", Phase: v1alpha1.PlannedMoving, StartedAt: microTime(2)}
		}
	}}
	got := run(t, f, o, "failover", "orders", "-n", "shop", "--to", "frankfurt", "--yes")
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "refused (Busy): words\n") {
		t.Errorf("%+v", got)
	}
}

func TestAbort(t *testing.T) {
	f := loadHealthy(t)
	if got := run(t, f, runOptions{}, "failover", "orders", "-n", "shop", "--abort", "--yes"); got.code != cli.ExitRefused || len(f.patched) != 0 {
		t.Errorf("nothing to give up: %+v", got)
	}
	for name, tc := range map[string]struct {
		phase v1alpha1.PlannedPhase
		code  int
	}{"InTime": {v1alpha1.PlannedAborted, cli.ExitHealthy}, "TooLate": {v1alpha1.PlannedSucceeded, cli.ExitRefused}} {
		f := loadHealthy(t)
		g := &f.groups[0]
		g.Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "paris", To: "frankfurt", Phase: v1alpha1.PlannedMoving}
		o := runOptions{tick: func(int) {
			if asked(f, v1alpha1.AnnotationAbortFailover) {
				delete(g.Annotations, v1alpha1.AnnotationAbortFailover)
				g.Status.PlannedFailover.Phase = tc.phase
			}
		}}
		if got := run(t, f, o, "failover", "orders", "-n", "shop", "--abort", "--yes"); got.code != tc.code || len(f.patched) != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// lost makes the active site of the healthy group disappear.
func lost(f *fakeAPI) {
	s := &f.live.Groups[0].Sites[0]
	s.Reachable, s.Writable, s.State, s.Fence = false, false, "Unreachable", "unknown"
}

func TestAcceptDataLoss(t *testing.T) {
	done := func(f *fakeAPI) {
		g := &f.groups[0]
		if asked(f, v1alpha1.AnnotationForceFailover) {
			f.answer(v1alpha1.RequestForceFailover, v1alpha1.RequestDone, v1alpha1.AnswerCompleted, "frankfurt is active under epoch 8")
			g.Status.ActiveSite, g.Status.Epoch = "frankfurt", 8
			g.Status.Failovers = []v1alpha1.FailoverRecord{{Epoch: 8, Kind: v1alpha1.FailoverForced, From: "paris", To: "frankfurt", LostTransactions: 3}}
		}
	}
	tests := map[string]struct {
		args, stdin string
		change      func(*fakeAPI)
		tick        func(*fakeAPI)
		code        int
		patches     int
		want        []string
	}{
		"Done":       {"", "orders\n", lost, done, cli.ExitHealthy, 1, []string{"ACCEPTS DATA LOSS", "Type the name of the group", "frankfurt is active under epoch 8", "at least 3 transactions"}},
		"OtherName":  {"", "order\n", lost, nil, cli.ExitUsage, 0, []string{"not confirmed"}},
		"JustYes":    {"", "y\n", lost, nil, cli.ExitUsage, 0, []string{"nothing was changed"}},
		"NoTerminal": {"", "", lost, nil, cli.ExitUsage, 0, []string{"no --yes"}},
		"ActiveOpen": {"--yes", "", nil, nil, cli.ExitRefused, 0, []string{"paris accepts writes", "kubectl mfg failover orders -n shop --to frankfurt"}},
		"ActiveStalled": {"--yes", "", func(f *fakeAPI) {
			f.groups[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: wire.WriteDiskStalled, Message: "x"}}
		}, done, cli.ExitHealthy, 1, []string{"frankfurt is active under epoch 8"}},
		"ActiveFull": {"--yes", "", func(f *fakeAPI) {
			f.groups[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: wire.WriteDiskFull, Message: "x"}}
		}, nil, cli.ExitRefused, 0, []string{"paris accepts writes"}},
		"TargetGone": {"--yes", "", func(f *fakeAPI) { lost(f); f.live.Groups[0].Sites[1].Reachable = false }, nil, cli.ExitRefused, 0, []string{"frankfurt does not answer"}},
		"OtherOrder": {"--yes", "", func(f *fakeAPI) {
			lost(f)
			f.groups[0].Annotations = map[string]string{v1alpha1.AnnotationForceFailover: "rome"}
		}, nil, cli.ExitRefused, 0, []string{"already ordered rome"}},
		"WhileMoving": {"--yes", "", func(f *fakeAPI) { lost(f); f.groups[0].Status.Transition = &v1alpha1.Transition{To: "madrid"} }, done, cli.ExitHealthy, 1, []string{"frankfurt is active"}},
		"OtherIsActive": {"--yes", "", lost, func(f *fakeAPI) {
			if asked(f, v1alpha1.AnnotationForceFailover) {
				done(f)
				f.groups[0].Status.ActiveSite = "madrid"
			}
		}, cli.ExitRefused, 1, []string{"refused (Overtaken): frankfurt is active under epoch 8; by now it is madrid", "to move the role without loss: kubectl mfg failover orders -n shop --to frankfurt"}},
		"ActiveSite": {"--to paris --dry-run=client", "", func(f *fakeAPI) { lost(f); f.live.Groups[0].Sites[0].Reachable = true }, nil, cli.ExitHealthy, 0,
			[]string{"accept-data-loss-failover=paris", "paris accepts writes again"}},
		"DryRun": {"--dry-run=client", "", lost, nil, cli.ExitHealthy, 0, []string{"accept-data-loss-failover=frankfurt", "nothing was sent"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			if tc.change != nil {
				tc.change(f)
			}
			o := runOptions{stdin: tc.stdin, tick: func(int) {
				if tc.tick != nil {
					tc.tick(f)
				}
			}}
			args := append([]string{"failover", "orders", "-n", "shop", "--to", "frankfurt", "--accept-data-loss"}, strings.Fields(tc.args)...)
			got := run(t, f, o, args...)
			if got.code != tc.code || len(f.patched) != tc.patches {
				t.Errorf("exit code %d, want %d; %d patches: %+v", got.code, tc.code, len(f.patched), got)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.out+got.errOut, want) {
					t.Errorf("lacks %q:\n%s%s", want, got.out, got.errOut)
				}
			}
		})
	}
}

func TestPauseAndResume(t *testing.T) {
	f := loadHealthy(t)
	g := &f.groups[0]
	follow := func(int) {
		state := metav1.ConditionFalse
		if asked(f, v1alpha1.AnnotationPauseUntil) {
			state = metav1.ConditionTrue
		}
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPaused, Status: state, Reason: "x"}}
	}
	// The operator's clock is an hour ahead of this machine's: the pause ends by it.
	f.live.IssuedAt = noon.Add(time.Hour)
	got := run(t, f, runOptions{tick: follow}, "pause", "orders", "-n", "shop", "--for", "30m", "--yes")
	if got.code != cli.ExitHealthy || !strings.Contains(got.out, "paused until 2026-11-03T13:30:00Z") {
		t.Errorf("%+v", got)
	}
	if got := run(t, f, runOptions{tick: follow}, "resume", "orders", "-n", "shop", "--yes"); got.code != cli.ExitHealthy || asked(f, v1alpha1.AnnotationPauseUntil) {
		t.Errorf("%+v", got)
	}
	if got := run(t, f, runOptions{}, "resume", "orders", "-n", "shop"); got.code != cli.ExitHealthy || !strings.Contains(got.out, "nothing was changed") || len(f.patched) != 2 {
		t.Errorf("%+v", got)
	}
	g.Status.Transition = &v1alpha1.Transition{To: "frankfurt", Step: v1alpha1.TransitionFencing}
	if got := run(t, f, runOptions{tick: follow}, "pause", "orders", "-n", "shop", "--for", "30m", "--yes"); got.code != cli.ExitHealthy {
		t.Errorf("a pause while the role moves is for the time after it: %+v", got)
	}
	for _, args := range []string{"pause orders", "pause orders --for 0.5s", "pause orders --for 200h", "pause --for 1m", "pause orders --for 1m --timeout 0"} {
		if got := run(t, f, runOptions{}, strings.Fields(args)...); got.code != cli.ExitUsage {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestPatchIsGuarded: what is sent names the version that was read, so that nobody's change is overwritten.
func TestPatchIsGuarded(t *testing.T) {
	f := loadHealthy(t)
	f.groups[0].ResourceVersion = "7"
	f.conflicts = request.PatchTries
	got := run(t, f, runOptions{}, "failover", "orders", "-n", "shop", "--to", "frankfurt", "--yes", "--wait=false")
	if got.code != cli.ExitError || len(f.patched) != 0 || !strings.Contains(got.errOut, "modified") {
		t.Errorf("a conflict that stays is an error: %+v", got)
	}
}

// TestRequestReportIsTyped: the kind and version are in every answer.
func TestRequestReportIsTyped(t *testing.T) {
	f := loadHealthy(t)
	got := run(t, f, runOptions{}, "resume", "orders", "-n", "shop", "-o", "json")
	var rep request.Report
	if err := json.Unmarshal([]byte(got.out), &rep); err != nil || rep.Kind != "MfgRequestReport" || rep.APIVersion == "" || rep.Outcome != cli.OutcomeDone {
		t.Errorf("%v %+v", err, rep)
	}
}
