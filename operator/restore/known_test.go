// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

func last(exit int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, Message: message, Reason: "Error"}}
}

// I25: which of the containers of a pod is which, and what each has done.
func TestWhatAPodHasDoneI25(t *testing.T) {
	if PodOf(nil, "x") != nil {
		t.Error("no pod is one")
	}
	p := PodOf(&corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{
		{Name: v1alpha1.ContainerBootstrap, State: ended(3, "broken")}, {Name: v1alpha1.ContainerLoad, State: ended(0, loaded)}, {Name: "install", State: ended(0, "")},
	}}}, "")
	if !p.Load.Succeeded || p.Bootstrap.Succeeded || p.Bootstrap.Failed != "broken" || p.Bootstrap.Exit != 3 {
		t.Errorf("I25: another container passes for one of the restore: %+v", p)
	}
	for name, tc := range map[string]struct {
		state, before corev1.ContainerState
		failed        string
		exit          int32
		succeeded     bool
		failedAt      time.Duration
	}{
		"it ended well":                      {state: ended(0, loaded), succeeded: true},
		"it ended well, and well before":     {state: ended(0, loaded), before: ended(0, "x"), succeeded: true},
		"it ended well, after it had failed": {state: ended(0, loaded), before: last(1, "x"), failed: "x", exit: 1, succeeded: true},
		"it failed twice":                    {state: last(2, "now"), before: last(1, "before"), failed: "now", exit: 2},
		"it failed a minute ago":             {state: ended(2, "now"), before: last(1, "before"), failed: "now", exit: 2, failedAt: time.Minute},
		"it had failed a minute ago":         {state: waiting(""), before: ended(2, "x"), failed: "x", exit: 2, failedAt: time.Minute},
		"it left no message":                 {state: last(2, ""), failed: "it left no message: Error", exit: 2},
		"it runs, and had ended well":        {state: running(time.Second), before: ended(0, "x")},
	} {
		c := containerOf(corev1.ContainerStatus{State: tc.state, LastTerminationState: tc.before})
		if c.Failed != tc.failed || c.Exit != tc.exit || c.Succeeded != tc.succeeded || c.failedAt.IsZero() != (tc.failedAt == 0) ||
			tc.failedAt != 0 && !c.failedAt.Equal(now.Add(-tc.failedAt)) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for name, tc := range map[string]struct {
		message string
		ok      bool
	}{
		"the program succeeded": {loaded, true}, "it says no such thing": {`{"reason":"LoadFailed","seconds":1}`, false},
		"not its words": {"no JSON", false}, "success, and senseless": {`{"reason":"Succeeded","seconds":-1}`, false},
	} {
		if r, ok := (Container{message: tc.message}).result(); ok != tc.ok {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// I25: the data is loaded again only if this pod was to have it, does not, and says that it is gone.
func TestWhenWhatWasLoadedIsLostI25(t *testing.T) {
	gone := wire.MarkRestoreLost + ": x"
	for name, tc := range map[string]struct {
		pod  *Pod
		want bool
	}{
		"it is gone":            {&Pod{Load: Container{Succeeded: true}, Bootstrap: Container{Failed: gone}}, true},
		"it is loaded again":    {&Pod{Load: Container{Running: true}, Bootstrap: Container{Failed: gone}}, false},
		"the same second":       {&Pod{Load: Container{Succeeded: true, Until: now}, Bootstrap: Container{Failed: gone, failedAt: now}}, true},
		"it was said before":    {&Pod{Load: Container{Succeeded: true, Until: now}, Bootstrap: Container{Failed: gone, failedAt: now.Add(-time.Second)}}, false},
		"it was taken since":    {&Pod{Load: Container{Succeeded: true}, Bootstrap: Container{Failed: gone, Succeeded: true}}, false},
		"it fails for another":  {&Pod{Load: Container{Succeeded: true}, Bootstrap: Container{Failed: "x"}}, false},
		"nothing has failed it": {&Pod{Load: Container{Succeeded: true}}, false},
	} {
		if got := tc.pod.DataLost(); got != tc.want {
			t.Errorf("I25: %s: lost %t", name, got)
		}
		d := Decide(Look{Now: now, Group: group(completed(0)), Image: true, Location: place, Pod: tc.pod})
		if d.Replace != tc.want {
			t.Errorf("I25: %s: the pod is replaced %t", name, d.Replace)
		}
	}
	if d := Decide(Look{Now: now, Group: group(completed(0)), Image: true, Location: place}); d.Replace {
		t.Error("I25: there is no pod, and it is replaced")
	}
}

// What a container left is told on one line, and no more of it than people read.
func TestWhatAContainerLeftIsShort(t *testing.T) {
	for text, want := range map[string]string{
		"a\n\tb  c": "a b c", "a\xffb": "a?b", strings.Repeat("x", shortMax): strings.Repeat("x", shortMax),
		strings.Repeat("x", shortMax+1):          strings.Repeat("x", shortMax) + "...",
		strings.Repeat("x", shortMax-1) + "é...": strings.Repeat("x", shortMax-1) + "...",
	} {
		if got := short(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	for name, tc := range map[string]struct {
		message string
		exit    int32
		reason  v1alpha1.Reason
		text    string
	}{
		"the program says what to do": {`{"reason":"WrongIdentity","message":"give another","seconds":1}`, 14, v1alpha1.ReasonWrongIdentity, "give another"},
		"the operator does":           {`{"reason":"LoadFailed","message":"no","seconds":1}`, 14, v1alpha1.ReasonLoadFailed, "no; look at the log of the container load"},
		"senseless":                   {`{"reason":"LoadFailed","message":"no","seconds":-1}`, 14, v1alpha1.ReasonRestoreFailed, "the container load ended, and what it left does not say why; look at the log of the container load"},
		"killed, with a word":         {`{"reason":"WrongIdentity","message":"give another","seconds":1}`, killedForMemory, v1alpha1.ReasonWrongIdentity, "give another"},
	} {
		if reason, text := failure(tc.message, tc.exit); reason != tc.reason || text != tc.text {
			t.Errorf("%s: %s %q", name, reason, text)
		}
	}
}

// before is a group of which status says that a is given the backup, and more.
func before(change func(*v1alpha1.RestoreStatus, *v1alpha1.MysqlFailoverGroup)) *v1alpha1.MysqlFailoverGroup {
	return group(func(g *v1alpha1.MysqlFailoverGroup) { begun(g); change(g.Status.Restore, g) })
}

// I25: what is remembered of a restore stays, and what another try takes back goes.
func TestWhatIsRememberedOfARestoreI25(t *testing.T) {
	done := metav1.NewTime(now.Add(-time.Minute))
	taken := group(func(g *v1alpha1.MysqlFailoverGroup) { completed(0)(g); g.Spec.InitFromBackup = nil })
	if d := Decide(Look{Now: now, Group: taken}); d.Status != nil || d.Condition.Reason != "" || d.Pending {
		t.Errorf("I25: a restore that was taken back is told: %+v", d)
	}
	// One that has been open goes on saying by what it began, and of one that was never restored nothing is said.
	taken.Status.Epoch = 4
	if d := Decide(Look{Now: now, Group: taken}); d.Status == nil || d.Condition.Reason != v1alpha1.ReasonRestoreCompleted || d.Pending {
		t.Errorf("I25: a group that was open has forgotten what it began with: %+v", d)
	}
	if d := Decide(Look{Now: now, Group: group(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Epoch = 3 })}); d.Status != nil || d.Pending || d.Replace {
		t.Errorf("I25: a group that was never restored: %+v", d)
	}
	look := func(g *v1alpha1.MysqlFailoverGroup, p *Pod) *v1alpha1.RestoreStatus {
		return Decide(Look{Now: now, Group: g, Image: true, Location: place, Pod: p}).Status
	}
	// Another point is asked for: nothing is done any more. The backup is the one that was found to be the newest.
	g := before(func(st *v1alpha1.RestoreStatus, _ *v1alpha1.MysqlFailoverGroup) {
		st.Phase, st.FinishedAt, st.Backup, st.Target, st.Progress = v1alpha1.RestoreCompleted, &done, "monday", "until transaction u:1", 100
	})
	if st := look(g, nil); st.FinishedAt != nil || st.Backup != "monday" || st.Target != "" || st.Progress != 0 || st.Phase != v1alpha1.RestorePending {
		t.Errorf("I25: begun again: %+v", st)
	}
	// The first site left: another gets its place, and the time counts from when it was begun.
	g = before(func(st *v1alpha1.RestoreStatus, g *v1alpha1.MysqlFailoverGroup) {
		st.Progress, g.Spec.Sites[1].Role = 99, v1alpha1.DROnly
	})
	if st := look(g, nil); st.Site != "b" || !st.StartedAt.Time.Equal(now.Add(-time.Hour)) || st.Progress != 0 {
		t.Errorf("I25: another site: %+v", st)
	}
	g = before(func(st *v1alpha1.RestoreStatus, _ *v1alpha1.MysqlFailoverGroup) { st.StartedAt = nil })
	if st := look(g, pod(ended(0, loaded), none, ended(0, ""))); st.StartedAt == nil || !st.StartedAt.Time.Equal(now) || st.Phase != v1alpha1.RestorePending {
		t.Errorf("I25: of a restore that was never begun: %+v", st)
	}
	// The one that was chosen stays chosen, also if it is not the first.
	g = before(func(st *v1alpha1.RestoreStatus, _ *v1alpha1.MysqlFailoverGroup) { st.Site = "b" })
	if d := Decide(Look{Now: now, Group: g, Image: true, Location: place}); d.Site != "b" || d.MayRun("a") {
		t.Errorf("I25: site %s is given what b was chosen for", d.Site)
	}
}

// I25: how far it is at each step; what failed has to be done again.
func TestHowFarARestoreIsI25(t *testing.T) {
	for name, tc := range map[string]struct {
		pod      *Pod
		phase    v1alpha1.RestorePhase
		progress int32
		message  string
	}{
		"loading": {pod(running(time.Second), none, none), v1alpha1.RestoreLoading, 7, "the newest backup from " + place + " is being loaded onto site a"},
		"loaded again, and taken before": {pod(running(time.Second), none, ended(0, "")), v1alpha1.RestoreLoading, 7,
			"the newest backup from " + place + " is being loaded onto site a"},
		"loaded again, and not taken before": {pod(running(time.Second), none, ended(1, "x")), v1alpha1.RestoreLoading, 7,
			"the newest backup from " + place + " is being loaded onto site a"},
		"loaded": {pod(ended(0, loaded), none, none), v1alpha1.RestoreLoading, 99, "the newest backup is on the volume of site a, which starts with it"},
		"failed": {pod(last(14, `{"reason":"WrongIdentity","message":"no","seconds":1}`), none, none), v1alpha1.RestoreFailed, 0, "no; nothing opens, and it is tried again"},
		"starts": {pod(waiting(""), none, none), v1alpha1.RestorePending, 0, "the pod of site a, which loads the newest backup from " + place + ", starts"},
	} {
		g := before(func(st *v1alpha1.RestoreStatus, _ *v1alpha1.MysqlFailoverGroup) { st.Progress = 7 })
		d := Decide(Look{Now: now, Group: g, Image: true, Location: place, Pod: tc.pod})
		if c := d.Condition; c.Status != metav1.ConditionFalse || c.Reason != d.Status.Reason || c.Message != tc.message {
			t.Errorf("I25: %s: %+v", name, c)
		}
		st := d.Status
		if st.Phase != tc.phase || int32(st.Progress) != tc.progress || st.Message != tc.message {
			t.Errorf("I25: %s: %s, %d%%, %q", name, st.Phase, st.Progress, st.Message)
		}
	}
}

// What a completed restore says is what this one did, and what is not known is not made up.
func TestWhatACompletedRestoreDid(t *testing.T) {
	reached := metav1.NewMicroTime(now.Add(-2 * time.Hour))
	said := func(message string, until time.Time) *v1alpha1.RestoreStatus {
		g := before(func(st *v1alpha1.RestoreStatus, _ *v1alpha1.MysqlFailoverGroup) {
			st.Backup, st.Method, st.GTIDExecuted, st.Replayed, st.ReplayedTo = "monday", v1alpha1.BackupLogical, "u:1-5", 2, &reached
		})
		p := pod(ended(0, message), none, ended(0, ""))
		p.Load.Until = until
		return Decide(Look{Now: now, Group: g, Image: true, Location: place, Pod: p}).Status
	}
	st := said(`{"reason":"Succeeded","method":"Guessed","gtidExecuted":"u:1-9","seconds":1}`, now.Add(-time.Minute))
	if st.Backup != "monday" || st.Method != v1alpha1.BackupLogical || st.GTIDExecuted != "u:1-9" || st.ReplayedTo != nil || !st.FinishedAt.Time.Equal(now.Add(-time.Minute)) {
		t.Errorf("%+v", st)
	}
	if st.Message != "site a has the data of backup monday from "+place {
		t.Errorf("%q, and no archive was asked for", st.Message)
	}
	if st := said("no JSON", now.Add(-time.Minute)); st.GTIDExecuted != "u:1-5" || st.ReplayedTo == nil || st.Method != v1alpha1.BackupLogical {
		t.Errorf("it left nothing, and what was known is gone: %+v", st)
	}
	// A clock that goes back, or a pod that does not say when: it ended when that was seen.
	for _, until := range []time.Time{{}, now.Add(-time.Hour), now.Add(-2 * time.Hour)} {
		if st := said(loaded, until); !st.FinishedAt.Time.Equal(now) {
			t.Errorf("ended at %s, before it began: %s", until, st.FinishedAt)
		}
	}
	d := Decision{Status: &v1alpha1.RestoreStatus{}}.complete(Look{Now: now, Pod: pod(ended(0, loaded), none, ended(0, ""))})
	if !d.Status.FinishedAt.Time.Equal(now) {
		t.Errorf("begun nobody knows when, ended at %s", d.Status.FinishedAt)
	}
	if Seconds(nil, now) != 0 || Seconds(&v1alpha1.RestoreStatus{}, now) != 0 || Seconds(&v1alpha1.RestoreStatus{StartedAt: &metav1.Time{Time: now.Add(-time.Minute)}}, now) != 60 {
		t.Error("how long it took, or takes")
	}
}
