// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const place = "s3://backups/shop/orders"

func group(change func(*v1alpha1.MysqlFailoverGroup)) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}, Spec: v1alpha1.MysqlFailoverGroupSpec{
		Backup: &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{{Name: "nightly", Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups"}}}}},
		Sites: []v1alpha1.Site{
			{Name: "c", Role: v1alpha1.DROnly}, {Name: "a", Role: v1alpha1.PrimaryCandidate}, {Name: "b", Role: v1alpha1.PrimaryCandidate},
		},
		InitFromBackup: &v1alpha1.InitFromBackupSpec{Profile: "nightly"},
	}}
	if change != nil {
		change(g)
	}
	return g
}

// begun is a group of which status says that a is given the backup.
func begun(g *v1alpha1.MysqlFailoverGroup) {
	g.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestorePending, Site: "a", StartedAt: &metav1.Time{Time: now.Add(-time.Hour)}}
}

func running(since time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-since))}}
}

func ended(exit int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, Message: message, FinishedAt: metav1.NewTime(now.Add(-time.Minute))}}
}

func waiting(why string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why}}
}

func pod(load, before, bootstrap corev1.ContainerState) *Pod {
	return PodOf(&corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{
		{Name: "install", State: ended(0, "")}, {Name: v1alpha1.ContainerLoad, State: load, LastTerminationState: before},
		{Name: v1alpha1.ContainerBootstrap, State: bootstrap},
	}}}, "")
}

var none corev1.ContainerState

const loaded = `{"reason":"Succeeded","backup":"orders-nightly-1","method":"Physical","gtidExecuted":"u:1-9","seconds":30}`

const replayed = `{"reason":"Succeeded","backup":"orders-nightly-1","method":"Logical","gtidExecuted":"u:1-12","replayed":3,"replayedTo":"2026-01-01T11:00:00.123456Z","seconds":30}`

// toPoint has a be given a backup and what was archived after it.
func toPoint(g *v1alpha1.MysqlFailoverGroup) {
	begun(g)
	g.Spec.InitFromBackup.PointInTime = &v1alpha1.PointInTime{GTID: "u:12"}
}

// Status says which point was reached, to the microsecond, and of one that was asked for since then nothing is taken for done.
func TestThePointThatWasReached(t *testing.T) {
	g := group(toPoint)
	d := Decide(Look{Now: now, Group: g, Image: true, Location: place, Proven: v1alpha1.Proven{PITR: true}, Pod: pod(ended(0, replayed), none, ended(0, ""))})
	st := d.Status
	if st.Target != "until transaction u:12" || st.Replayed != 3 || st.ReplayedTo == nil || st.ReplayedTo.UTC().Format(time.RFC3339Nano) != "2026-01-01T11:00:00.123456Z" || st.GTIDExecuted != "u:1-12" {
		t.Errorf("%+v", st)
	}
	g.Status.Restore = st
	if g.AwaitsRestore() || g.RestoredSite() != "a" {
		t.Error("what was reached is waited for")
	}
	g.Spec.InitFromBackup.PointInTime = &v1alpha1.PointInTime{GTID: "u:13"}
	if !g.AwaitsRestore() || g.RestoredSite() != "" {
		t.Error("another point is taken for the one that is asked for")
	}
}

// Of data that may be alive the message names first what harms nothing: a tired reader does what comes first.
func TestTheHarmlessChoiceComesFirst(t *testing.T) {
	g := group(nil)
	said := Decide(Look{Now: now, Group: g, Image: true, Location: g.RestoreLocation(), Old: []string{"volume claim mysql-orders-b-data"}}).Status.Message
	keep, destroy := strings.Index(said, "remove initFromBackup"), strings.Index(said, "delete")
	if keep < 0 || destroy < keep {
		t.Errorf("it says %q", said)
	}
}

// I25: which site may have a pod, and what is said, at each step.
func TestDecideI25(t *testing.T) {
	wrong := `{"reason":"WrongIdentity","message":"open x: WrongIdentity: give the age identity","seconds":1}`
	for name, tc := range map[string]struct {
		group  func(*v1alpha1.MysqlFailoverGroup)
		look   func(*Look)
		phase  v1alpha1.RestorePhase
		reason v1alpha1.Reason
		// site may have a pod, and the others too if all is set.
		site    string
		all     bool
		replace bool
		says    string
	}{
		"begins empty": {group: func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.InitFromBackup = nil }, all: true},
		"taken back":   {group: func(g *v1alpha1.MysqlFailoverGroup) { begun(g); g.Spec.InitFromBackup = nil }, all: true},
		"seen first: nothing is made before that is durable": {phase: v1alpha1.RestorePending, reason: v1alpha1.ReasonRestorePending, says: "site a"},
		"a volume is older than the group": {look: func(l *Look) { l.Old = []string{"volume claim mysql-orders-b-data"} }, phase: v1alpha1.RestoreFailed,
			reason: v1alpha1.ReasonRestoreVolumeNotNew, says: "mysql-orders-b-data"},
		"the operator has no image": {look: func(l *Look) { l.Image = false }, phase: v1alpha1.RestoreFailed, reason: v1alpha1.ReasonRestoreImageMissing, says: "--backup-image"},
		"the profile is not there":  {look: func(l *Look) { l.Location = "" }, phase: v1alpha1.RestoreFailed, reason: v1alpha1.ReasonBackupProfileMissing, says: "profile"},
		"no candidate": {group: func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:1] }, phase: v1alpha1.RestoreFailed,
			reason: v1alpha1.ReasonRestoreNoSite, says: "primary-candidate"},
		"a point in time": {group: func(g *v1alpha1.MysqlFailoverGroup) {
			begun(g)
			g.Spec.InitFromBackup.PointInTime = &v1alpha1.PointInTime{GTID: "u:1"}
		},
			look: func(l *Look) { l.Pod = pod(ended(0, loaded), none, ended(0, "")) }, phase: v1alpha1.RestoreFailed, reason: v1alpha1.ReasonNotBuilt, says: "pointInTime"},
		"a point in time, proven": {group: toPoint, look: func(l *Look) {
			l.Proven, l.Pod = v1alpha1.Proven{PITR: true}, pod(running(time.Second), none, none)
		},
			phase: v1alpha1.RestoreLoading, reason: v1alpha1.ReasonRestoreLoading, site: "a", says: "the newest backup before that point with the archive of binary logs until transaction u:12"},
		"a point in time that is not archived": {group: toPoint, look: func(l *Look) {
			l.Proven, l.Pod = v1alpha1.Proven{PITR: true}, pod(waiting(""), ended(14, `{"reason":"TargetNotArchived","message":"the archive ends at u:11","seconds":1}`), none)
		},
			phase: v1alpha1.RestoreFailed, reason: v1alpha1.ReasonTargetNotArchived, site: "a", says: "kubectl mfg backup timeline"},
		"a point in time in a gap": {group: toPoint, look: func(l *Look) {
			l.Proven, l.Pod = v1alpha1.Proven{PITR: true}, pod(waiting(""), ended(14, `{"reason":"TargetInGap","message":"u:10 is missing","seconds":1}`), none)
		},
			phase: v1alpha1.RestoreFailed, reason: v1alpha1.ReasonTargetInGap, site: "a", says: "u:10 is missing; choose a point before the gap"},
		"a point in time that is reached": {group: toPoint, look: func(l *Look) {
			l.Proven, l.Pod = v1alpha1.Proven{PITR: true}, pod(ended(0, replayed), none, ended(0, ""))
		},
			phase: v1alpha1.RestoreCompleted, reason: v1alpha1.ReasonRestoreCompleted, site: "a", says: "until transaction u:12, 3 transactions of the archive"},
		"the chosen site left": {group: func(g *v1alpha1.MysqlFailoverGroup) { begun(g); g.Spec.Sites[1].Role = v1alpha1.DROnly }, phase: v1alpha1.RestorePending,
			reason: v1alpha1.ReasonRestorePending, says: "site b"},
		"no pod yet": {group: begun, phase: v1alpha1.RestorePending, reason: v1alpha1.ReasonRestorePending, site: "a", says: place},
		"the pod cannot be placed": {group: begun, look: func(l *Look) { l.Pod = &Pod{Trouble: "no node has room"} }, phase: v1alpha1.RestorePending,
			reason: v1alpha1.ReasonRestorePending, site: "a", says: "no node has room"},
		"loading": {group: begun, look: func(l *Look) { l.Pod = pod(running(time.Second), none, none) }, phase: v1alpha1.RestoreLoading,
			reason: v1alpha1.ReasonRestoreLoading, site: "a", says: "newest backup"},
		"a named one": {group: func(g *v1alpha1.MysqlFailoverGroup) { begun(g); g.Spec.InitFromBackup.Backup = "monday" },
			look: func(l *Look) { l.Pod = pod(running(time.Second), none, none) }, phase: v1alpha1.RestoreLoading, reason: v1alpha1.ReasonRestoreLoading, site: "a", says: "backup monday"},
		"wrong identity": {group: begun, look: func(l *Look) { l.Pod = pod(waiting("CrashLoopBackOff"), ended(14, wrong), none) }, phase: v1alpha1.RestoreFailed,
			reason: v1alpha1.ReasonWrongIdentity, site: "a", says: "give the age identity"},
		"tried again just now": {group: begun, look: func(l *Look) { l.Pod = pod(running(time.Second), ended(14, wrong), none) }, phase: v1alpha1.RestoreFailed,
			reason: v1alpha1.ReasonWrongIdentity, site: "a", says: "tried again"},
		"tried again, and it goes on": {group: begun, look: func(l *Look) { l.Pod = pod(running(2*time.Minute), ended(14, wrong), none) },
			phase: v1alpha1.RestoreLoading, reason: v1alpha1.ReasonRestoreLoading, site: "a"},
		"ended just now": {group: begun, look: func(l *Look) { l.Pod = pod(ended(14, wrong), none, none) }, phase: v1alpha1.RestoreFailed,
			reason: v1alpha1.ReasonWrongIdentity, site: "a"},
		"killed": {group: begun, look: func(l *Look) { l.Pod = pod(waiting("CrashLoopBackOff"), ended(137, ""), none) }, phase: v1alpha1.RestoreFailed,
			reason: v1alpha1.ReasonRestoreFailed, site: "a", says: "memory"},
		"a word that is not the program's": {group: begun, look: func(l *Look) {
			l.Pod = pod(waiting(""), ended(1, `{"reason":"Healthy","message":"all is well","seconds":1}`), none)
		},
			phase: v1alpha1.RestoreFailed, reason: v1alpha1.ReasonRestoreFailed, site: "a", says: "does not say why"},
		"a volume that is too small": {group: begun, look: func(l *Look) {
			l.Pod = pod(waiting(""), ended(14, `{"reason":"VolumeTooSmall","message":"10 MiB","seconds":1}`), none)
		},
			phase: v1alpha1.RestoreFailed, reason: v1alpha1.ReasonVolumeTooSmall, site: "a", says: "storage.size"},
		"loaded, not taken yet": {group: begun, look: func(l *Look) { l.Pod = pod(ended(0, loaded), none, running(time.Second)) }, phase: v1alpha1.RestoreLoading,
			reason: v1alpha1.ReasonRestoreLoading, site: "a"},
		"loaded, and not taken": {group: begun, look: func(l *Look) { l.Pod = pod(ended(0, loaded), none, ended(1, "the volume is broken")) }, phase: v1alpha1.RestoreFailed,
			reason: v1alpha1.ReasonRestoreFailed, site: "a", says: "the volume is broken"},
		"loaded and taken: the others are made once that is durable": {group: begun, look: func(l *Look) { l.Pod = pod(ended(0, loaded), none, ended(0, "")) },
			phase: v1alpha1.RestoreCompleted, reason: v1alpha1.ReasonRestoreCompleted, site: "a", says: "orders-nightly-1"},
		"its keyring is lost": {group: begun, look: func(l *Look) { l.Pod = pod(ended(0, loaded), none, ended(1, wire.MarkRestoreLost+": x")) }, phase: v1alpha1.RestorePending,
			reason: v1alpha1.ReasonRestoreAgain, site: "a", replace: true},
		"durable": {group: completed(0), phase: v1alpha1.RestoreCompleted, reason: v1alpha1.ReasonRestoreCompleted, site: "a", all: true},
		"durable, and its keyring is lost": {group: completed(0), look: func(l *Look) { l.Pod = pod(ended(0, loaded), none, ended(1, wire.MarkRestoreLost+": x")) },
			phase: v1alpha1.RestorePending, reason: v1alpha1.ReasonRestoreAgain, site: "a", replace: true},
		"durable, and loaded again": {group: completed(0), look: func(l *Look) { l.Pod = pod(running(quietly), none, none) },
			phase: v1alpha1.RestoreLoading, reason: v1alpha1.ReasonRestoreLoading, site: "a"},
		"durable, and its pod starts again": {group: completed(0), look: func(l *Look) { l.Pod = pod(running(quietly-time.Second), none, none) },
			phase: v1alpha1.RestoreCompleted, reason: v1alpha1.ReasonRestoreCompleted, site: "a", all: true},
		"durable, and its pod starts again, after a load that failed": {group: completed(0), look: func(l *Look) { l.Pod = pod(running(time.Second), ended(14, wrong), none) },
			phase: v1alpha1.RestoreCompleted, reason: v1alpha1.ReasonRestoreCompleted, site: "a", all: true},
		"durable, and its pod waits": {group: completed(0), look: func(l *Look) { l.Pod = pod(waiting(""), none, none) },
			phase: v1alpha1.RestoreCompleted, reason: v1alpha1.ReasonRestoreCompleted, site: "a", all: true},
		"durable, at the second try": {group: completed(0), look: func(l *Look) { l.Pod = pod(ended(0, loaded), ended(14, wrong), ended(0, "")) },
			phase: v1alpha1.RestoreCompleted, reason: v1alpha1.ReasonRestoreCompleted, site: "a", all: true},
		"durable, and the load that has to be done again fails": {group: completed(0), look: func(l *Look) { l.Pod = pod(waiting(""), ended(14, wrong), none) },
			phase: v1alpha1.RestoreFailed, reason: v1alpha1.ReasonWrongIdentity, site: "a", says: "give the age identity"},
		"has been open, and its pod loads": {group: completed(4), look: func(l *Look) { l.Pod = pod(running(time.Hour), none, none) },
			phase: v1alpha1.RestoreCompleted, reason: v1alpha1.ReasonRestoreCompleted, site: "a", all: true},
		"what was ordered before is loaded and taken": {group: begun, look: func(l *Look) { l.Pod, l.OtherOrder = pod(ended(0, loaded), none, ended(0, "")), true },
			phase: v1alpha1.RestorePending, reason: v1alpha1.ReasonRestorePending, site: "a", says: "site a has what was ordered before"},
		"what was ordered before is loading": {group: begun, look: func(l *Look) { l.Pod, l.OtherOrder = pod(running(time.Second), none, none), true },
			phase: v1alpha1.RestoreLoading, reason: v1alpha1.ReasonRestoreLoading, site: "a"},
		"what was ordered before is loaded, not taken yet": {group: begun, look: func(l *Look) { l.Pod, l.OtherOrder = pod(ended(0, loaded), none, none), true },
			phase: v1alpha1.RestoreLoading, reason: v1alpha1.ReasonRestoreLoading, site: "a"},
		"what was ordered before is loading, and the pod stays": {group: begun, look: func(l *Look) { l.Pod, l.OtherOrder, l.Paused = pod(running(time.Second), none, none), true, "noon" },
			phase: v1alpha1.RestoreLoading, reason: v1alpha1.ReasonRestoreLoading, site: "a", says: "what was ordered before is being loaded onto site a; the group is paused until noon"},
		"it failed, and the pod stays": {group: begun, look: func(l *Look) { l.Pod, l.Paused = pod(waiting("CrashLoopBackOff"), ended(14, wrong), none), "noon" }, phase: v1alpha1.RestoreFailed,
			reason: v1alpha1.ReasonWrongIdentity, site: "a", says: "the group is paused until noon"},
		"durable, and another place of the same name is ordered": {group: completed(0), look: func(l *Look) { l.Pod, l.OtherOrder = pod(ended(0, loaded), none, ended(0, "")), true },
			phase: v1alpha1.RestorePending, reason: v1alpha1.ReasonRestorePending, site: "a", says: "site a has what was ordered before"},
		"durable, and another backup is ordered": {group: func(g *v1alpha1.MysqlFailoverGroup) { completed(0)(g); g.Spec.InitFromBackup.Backup = "monday" },
			phase: v1alpha1.RestorePending, reason: v1alpha1.ReasonRestorePending, site: "a", says: "backup monday"},
		"has been open, and another place is ordered": {group: completed(4), look: func(l *Look) { l.OtherOrder = true },
			phase: v1alpha1.RestoreCompleted, reason: v1alpha1.ReasonRestoreCompleted, site: "a", all: true},
		"has been open": {group: completed(4), look: func(l *Look) { l.Pod = pod(ended(0, loaded), none, ended(1, wire.MarkRestoreLost+": x")) },
			phase: v1alpha1.RestoreCompleted, reason: v1alpha1.ReasonRestoreCompleted, site: "a", all: true},
		"has been open, whatever status said": {group: func(g *v1alpha1.MysqlFailoverGroup) { begun(g); g.Status.Epoch = 3 }, all: true},
	} {
		l := Look{Now: now, Group: group(tc.group), Image: true, Location: place}
		if tc.look != nil {
			tc.look(&l)
		}
		before := l.Group.DeepCopy()
		d := Decide(l)
		st := d.Status
		if st == nil {
			st = &v1alpha1.RestoreStatus{}
		}
		if st.Phase != tc.phase || st.Reason != tc.reason || d.Replace != tc.replace || !strings.Contains(st.Message, tc.says) {
			t.Errorf("%s: %s %s %q, replace %t", name, st.Phase, st.Reason, st.Message, d.Replace)
		}
		for _, site := range []string{"a", "b", "c"} {
			if may := tc.all || site == tc.site; d.MayRun(site) != may {
				t.Errorf("%s: site %s may run: %t", name, site, !may)
			}
		}
		if ready := d.Condition.Status == metav1.ConditionTrue; tc.phase != "" && ready != (tc.phase == v1alpha1.RestoreCompleted) {
			t.Errorf("%s: %+v", name, d.Condition)
		}
		if !reflect.DeepEqual(l.Group, before) {
			t.Errorf("%s: the group was changed", name)
		}
	}
}

func completed(epoch int64) func(*v1alpha1.MysqlFailoverGroup) {
	return func(g *v1alpha1.MysqlFailoverGroup) {
		begun(g)
		g.Status.Epoch = epoch
		g.Status.Restore.Phase, g.Status.Restore.Reason = v1alpha1.RestoreCompleted, v1alpha1.ReasonRestoreCompleted
		g.Status.Restore.Location = place
	}
}

// I25: what a complete restore lost is not called complete while it is done again, and its order and its place stay.
func TestACompleteRestoreThatBeginsAgainI25(t *testing.T) {
	done := group(completed(0))
	done.Status.Restore.Progress, done.Status.Restore.Backup, done.Status.Restore.FinishedAt = 100, "monday", &metav1.Time{Time: now}
	l := Look{Now: now, Group: done, Image: true, Location: place, Pod: pod(running(time.Hour), none, none)}
	st := Decide(l).Status
	if st.Phase != v1alpha1.RestoreLoading || st.Progress != 0 || st.FinishedAt != nil || st.Backup != "monday" || st.Site != "a" {
		t.Errorf("I25: %+v", st)
	}
	done.Status.Restore = st
	if !done.AwaitsRestore() {
		t.Error("I25: it may open")
	}
	l.Pod = pod(ended(0, loaded), none, ended(0, ""))
	if st := Decide(l).Status; st.Phase != v1alpha1.RestoreCompleted || st.Progress != 100 {
		t.Errorf("I25: done again: %+v", st)
	}
}

// I25: every start of bootstrap tells that what was loaded is gone, also in the pauses between them.
func TestALostRestoreIsSeenBetweenTheStartsI25(t *testing.T) {
	p := PodOf(&corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{
		{Name: v1alpha1.ContainerLoad, State: ended(0, loaded)},
		{Name: v1alpha1.ContainerBootstrap, State: waiting("CrashLoopBackOff"), LastTerminationState: ended(1, wire.MarkRestoreLost+": x")},
	}}}, "")
	for name, of := range map[string]func(*v1alpha1.MysqlFailoverGroup){"complete": completed(0), "not yet": begun} {
		if d := Decide(Look{Now: now, Group: group(of), Image: true, Location: place, Pod: p}); !d.Replace {
			t.Errorf("I25: %s: %+v", name, d.Status)
		}
	}
}

func TestWhatIsToldOfACompletedRestore(t *testing.T) {
	l := Look{Now: now, Group: group(begun), Image: true, Location: place, Pod: pod(ended(0, loaded), none, ended(0, ""))}
	st := Decide(l).Status
	if st.Backup != "orders-nightly-1" || st.Method != v1alpha1.BackupPhysical || st.GTIDExecuted != "u:1-9" || st.Progress != 100 {
		t.Errorf("%+v", st)
	}
	if got := Seconds(st, now); got != 59*60 {
		t.Errorf("it took %v s", got)
	}
	l.Pod = pod(ended(0, "no JSON"), none, ended(0, ""))
	if st := Decide(l).Status; st.Phase != v1alpha1.RestoreCompleted {
		t.Errorf("ended well without a message: %+v", st)
	}
}

// What a former order brought is not told of the one that follows, and a pause is what that waits for.
func TestAnotherOrderAfterARestoreI25(t *testing.T) {
	done := group(completed(0))
	st := done.Status.Restore
	st.Backup, st.GTIDExecuted, st.Method, st.Replayed, st.ReplayedTo = "monday", "u:1-9", v1alpha1.BackupLogical, 3, &metav1.MicroTime{Time: now}
	done.Spec.Backup.Profiles[0].Storage.S3.Bucket = "others"
	if !done.AwaitsRestore() {
		t.Error("I25: it may open with the data of another place")
	}
	l := Look{Now: now, Group: done, Image: true, Location: done.RestoreLocation(), Paused: "noon", OtherOrder: true, Pod: pod(ended(0, loaded), none, ended(0, ""))}
	d := Decide(l)
	if st := d.Status; !d.Held || st.Phase != v1alpha1.RestorePending || st.Backup != "" || st.GTIDExecuted != "" || st.Method != "" || st.Replayed != 0 || st.ReplayedTo != nil {
		t.Errorf("I25: held %t, %+v", d.Held, st)
	}
	if l.Paused = ""; Decide(l).Held {
		t.Error("without a pause nothing is waited for")
	}
}
