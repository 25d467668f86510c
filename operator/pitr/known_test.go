// SPDX-License-Identifier: Apache-2.0

package pitr

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// looking is a group whose archive does well, and has a backup of two hours ago.
func looking(before v1alpha1.PITRStatus) Look {
	return Look{Now: now, Group: told(before), Backups: []v1alpha1.MysqlBackup{copied("old", 2*time.Hour, a+":1-10")}, Place: place, Interval: 30 * time.Second,
		Image: true, Active: "paris", Heard: heard(nil), Held: Held{Executed: gtid.MustParse(a + ":1-50"), ServerUUID: a}}
}

// A point in time is promised only from a backup on that is kept, in this storage, and of which the archive has what follows.
func TestWhichBackupAPointIsPromisedFrom(t *testing.T) {
	two := a + ":1-50," + b + ":1-9" // of which b wrote the last ones
	for name, tc := range map[string]struct {
		backup   func(*v1alpha1.MysqlBackupStatus)
		place    v1alpha1.StoragePlace
		executed string
		archived string
		want     bool
	}{
		"it is kept":                          {place: place, executed: two, archived: two, want: true},
		"it is in another storage":            {backup: func(s *v1alpha1.MysqlBackupStatus) { s.Location = "s3://other" }, place: place, executed: two, archived: two},
		"it is on another server":             {backup: func(s *v1alpha1.MysqlBackupStatus) { s.StorageDigest = "sha256:there" }, place: place, executed: two, archived: two},
		"it is on this server":                {backup: func(s *v1alpha1.MysqlBackupStatus) { s.StorageDigest = place.Digest }, place: place, executed: two, archived: two, want: true},
		"it runs":                             {backup: func(s *v1alpha1.MysqlBackupStatus) { s.Phase = v1alpha1.BackupRunning }, place: place, executed: two, archived: two},
		"it was never completed":              {backup: func(s *v1alpha1.MysqlBackupStatus) { s.FinishedAt = nil }, place: place, executed: two, archived: two},
		"what it holds is unknown":            {backup: func(s *v1alpha1.MysqlBackupStatus) { s.GTIDExecuted = "?" }, place: place, executed: two, archived: two},
		"neither is anywhere":                 {backup: func(s *v1alpha1.MysqlBackupStatus) { s.Location = "" }, executed: two, archived: two},
		"the archive has a gap after it":      {place: place, executed: two, archived: a + ":1-19:21-50," + b + ":1-9"},
		"the archive is not told":             {place: place, executed: two, want: true},
		"what is told cannot be read":         {place: place, executed: two, archived: "?", want: true},
		"what the site has is not known":      {place: place, archived: a + ":1-5", want: true},
		"the archive lacks what another made": {place: place, executed: two, archived: b + ":1-9"},
	} {
		l := looking(v1alpha1.PITRStatus{Latest: at(time.Minute), Earliest: at(time.Hour)})
		if tc.backup != nil {
			tc.backup(&l.Backups[0].Status)
		}
		l.Place, l.Held = tc.place, Held{Executed: gtid.MustParse(tc.executed), ServerUUID: b}
		l.Heard = heard(func(h *wire.ArchiverStatus) { h.ArchivedGTID = tc.archived })
		st := Decide(l).Status
		if (st.Earliest != nil) != tc.want || tc.want && !st.Earliest.Equal(at(2*time.Hour-time.Minute)) {
			t.Errorf("%s: from %v on, promised: want %t", name, st.Earliest, tc.want)
		}
	}
	// What is remembered of the archive says nothing while nobody is heard: then a backup is not taken back.
	l := looking(v1alpha1.PITRStatus{})
	l.Heard, l.Held = nil, Held{Executed: gtid.MustParse(two), ServerUUID: b}
	if st := Decide(l).Status; st.Earliest == nil {
		t.Error("nothing is heard, and the backup is no first point any more")
	}
}

// I27: a backup and an archive of which no place is known are in no common storage.
func TestNothingIsRetainedWithoutAPlaceI27(t *testing.T) {
	nowhere := changed(copied("old", time.Hour, a+":1-10"), func(s *v1alpha1.MysqlBackupStatus) { s.Location = "" })
	if oldest, found := Retained([]v1alpha1.MysqlBackup{nowhere}, v1alpha1.StoragePlace{}); found {
		t.Errorf("I27: %s bounds what may go from an archive that is nowhere", oldest.Name)
	}
	// One whose completion was never noted is no backup once it is removed.
	half := changed(copied("half", time.Hour, a+":1-10"), func(s *v1alpha1.MysqlBackupStatus) { s.Phase, s.FinishedAt = v1alpha1.BackupDeleting, nil })
	if oldest, found := Retained([]v1alpha1.MysqlBackup{half}, place); found {
		t.Errorf("I27: %s was never completed", oldest.Name)
	}
}

// I28: an epoch is told once, by what is known best of it.
func TestAnEpochIsToldOnceI28(t *testing.T) {
	when := metav1.NewMicroTime(now)
	twice := []v1alpha1.FailoverRecord{{Epoch: 2, To: "b", ToExecuted: a + ":1", OpenedAt: when}, {Epoch: 2, To: "c", OpenedAt: when}}
	for name, tc := range map[string]struct {
		status v1alpha1.MysqlFailoverGroupStatus
		want   string
	}{
		"two records of one":     {v1alpha1.MysqlFailoverGroupStatus{Epoch: 2, Failovers: twice}, "b"},
		"a record of the first":  {v1alpha1.MysqlFailoverGroupStatus{Epoch: 1, ActiveSite: "a", ActiveSiteSince: at(0), Failovers: []v1alpha1.FailoverRecord{{Epoch: 1, To: "b", ToExecuted: a + ":1", OpenedAt: when}}}, "b"},
		"the first, noted":       {v1alpha1.MysqlFailoverGroupStatus{Epoch: 1, ActiveSite: "a", ActiveSiteSince: at(0), Epochs: []v1alpha1.EpochRecord{{Epoch: 1, Site: "b"}}}, "b"},
		"the first, never open":  {v1alpha1.MysqlFailoverGroupStatus{Epoch: 1, ActiveSite: "a"}, ""},
		"the first, of a status": {v1alpha1.MysqlFailoverGroupStatus{Epoch: 1, ActiveSite: "a", ActiveSiteSince: at(0)}, "a"},
	} {
		var got []string
		for _, e := range CutoffOf(&v1alpha1.MysqlFailoverGroup{Status: tc.status}, nil, v1alpha1.StoragePlace{}).Epochs {
			got = append(got, e.Site)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("I28: %s: %v, want %s", name, got, tc.want)
		}
	}
}

// What was wrong is taken back once it is not any more, and what is wrong is written down.
func TestWhatStatusTakesBack(t *testing.T) {
	gap := v1alpha1.PITRGap{GTIDs: a + ":5", Before: &metav1.MicroTime{Time: now.Add(-3 * time.Hour)}}
	before := v1alpha1.PITRStatus{Reason: v1alpha1.ReasonPITRLags, Message: "m", Latest: at(time.Minute), Earliest: at(time.Hour), Lag: "<1d", GapCount: 1, Gaps: []v1alpha1.PITRGap{gap}}
	l := looking(before)
	l.Heard = heard(func(h *wire.ArchiverStatus) {
		h.GapCount, h.Gaps = 1, []wire.ArchiverGap{{GTIDs: gap.GTIDs, Before: gap.Before.Time}}
	})
	st := Decide(l).Status
	if st.Reason != "" || st.Message != "" || st.Lag != "<30s" || !st.Latest.Equal(at(20*time.Second)) {
		t.Errorf("all is well again: %s %q, lag %s, latest %s", st.Reason, st.Message, st.Lag, st.Latest)
	}
	if len(st.Gaps) != 1 || st.Gaps[0].After != nil || !st.Gaps[0].Before.Equal(gap.Before) {
		t.Errorf("gaps: %+v, and one was told, of which the beginning is not known", st.Gaps)
	}
	l.Heard = heard(func(h *wire.ArchiverStatus) { h.PruneMessage = "access denied" })
	if st := Decide(l).Status; st.PruneMessage != "access denied" || st.Site != "paris" || st.Bytes != 7 {
		t.Errorf("what the archiver says is not written down: %+v", st)
	}
	l.Group = told(v1alpha1.PITRStatus{PruneMessage: "access denied"})
	if l.Heard = heard(nil); Decide(l).Status.PruneMessage != "" {
		t.Error("it removes again what is not needed, and is said not to")
	}
	l.Backups, l.Heard = nil, heard(nil)
	if st := Decide(l).Status; st.Earliest != nil || st.Reason != v1alpha1.ReasonPITRNoBase || !strings.Contains(st.Message, "make one with profile nightly") {
		t.Errorf("without a backup: from %v on, %s %q", st.Earliest, st.Reason, st.Message)
	}
	if action, full := HoldOf(Logs{Bytes: 1}, true, false); full || action != HoldNothing {
		t.Errorf("a volume of which the size is not known is full: %q", action)
	}
	l = looking(v1alpha1.PITRStatus{})
	if l.Group.Status.Backup.PITR = nil; Decide(l).Status.Site != "paris" {
		t.Error("a status that says nothing of the archive yet")
	}
	before.Latest = nil
	l = looking(before)
	l.Heard = heard(func(h *wire.ArchiverStatus) { h.Latest = time.Time{} })
	if s := Decide(l); s.LagKnown || s.Status.Lag != "" || s.Condition.Reason != v1alpha1.ReasonPITRStarting {
		t.Errorf("nothing can be recovered, and the lag is %q: %+v", s.Status.Lag, s.Condition)
	}
}

// An archiver that fails before it has read the storage counts nothing: what was known of the archive stands, and no backup before the first point
// leads on for it. What it last knew when it was its turn before is not what the archive has either.
func TestAnArchiverThatHasNotListedTakesNothingBack(t *testing.T) {
	gap := v1alpha1.PITRGap{GTIDs: a + ":15", Transactions: 1, Before: &metav1.MicroTime{Time: now.Add(-90 * time.Minute)}}
	before := v1alpha1.PITRStatus{Site: "paris", Latest: at(time.Minute), Earliest: at(59 * time.Minute), ArchivedGTID: a + ":1-14:16-50", Bytes: 7, GapCount: 1, Gaps: []v1alpha1.PITRGap{gap}}
	states := map[string]*wire.ArchiverStatus{
		"it has no access":        {State: wire.ArchiverFailing, Site: "paris", Reason: "AccessDenied"},
		"it just began its epoch": {State: wire.ArchiverFailing, Site: "paris", Epoch: 3},
		"it had the turn before": {State: wire.ArchiverFailing, Site: "paris", Log: "binlog.000007", ArchivedGTID: a + ":1-5", Bytes: 3, Latest: now.Add(-time.Hour),
			GapCount: 2, Gaps: make([]wire.ArchiverGap, 2)},
		"it stands by, and had the turn before": {State: wire.ArchiverStandby, Site: "paris", Log: "binlog.000007", ArchivedGTID: a + ":1-5", Bytes: 3},
		"it starts":                             {State: wire.ArchiverStarting, Site: "paris"},
		"nothing is heard of it":                nil,
	}
	for name, h := range states {
		l := looking(before)
		l.Backups = append(l.Backups, copied("young", time.Hour, a+":1-30"))
		l.Heard = h
		got := Decide(l).Status
		got.Lag = before.Lag
		if diff := cmp.Diff(&before, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		l.Backups = l.Backups[1:]
		l.Backups[0].Status.FinishedAt = at(30 * time.Minute)
		if got := Decide(l).Status.Earliest; !got.Equal(at(30 * time.Minute)) {
			t.Errorf("%s: the backup at the first point has gone, and it is %v", name, got)
		}
		l = looking(before)
		l.Heard, l.Group.Status.Backup.PITR.Earliest = h, nil
		if got := Decide(l).Status.Earliest; got != nil {
			t.Errorf("%s: there was no first point, and it is %v", name, got)
		}
	}
	l := looking(before)
	l.Heard = &wire.ArchiverStatus{State: wire.ArchiverFailing, Site: "paris", Epoch: 3, Log: "binlog.000007", ArchivedGTID: a + ":1-50", Bytes: 9}
	if got := Decide(l).Status; got.GapCount != 0 || got.Bytes != 9 || !got.Earliest.Equal(at(2*time.Hour-time.Minute)) {
		t.Errorf("one that has listed is not believed: %+v", got)
	}
}

// Trouble counts from when it began. While it has not begun nothing is late, whatever else is seen.
func TestNothingIsLateBeforeItIsTrouble(t *testing.T) {
	for name, change := range map[string]func(*Look){
		"no site is open": func(l *Look) { l.Active, l.Heard = "", nil },
		"silent":          func(l *Look) { l.Heard = nil },
		"told before, and over": func(l *Look) {
			l.Group = told(v1alpha1.PITRStatus{Reason: v1alpha1.ReasonPITRNoSite, Message: "m", Latest: at(0)})
		},
	} {
		l := looking(v1alpha1.PITRStatus{Latest: at(time.Minute)})
		change(&l)
		if s := Decide(l); s.Condition.Reason != v1alpha1.ReasonPITRArchiving {
			t.Errorf("%s: %+v", name, s.Condition)
		}
	}
	l := looking(v1alpha1.PITRStatus{Latest: at(time.Minute)})
	if l.TroubledSince = now.Add(-time.Hour); Decide(l).Condition.Reason != v1alpha1.ReasonPITRArchiving {
		t.Error("an archiver that archives is late")
	}
	for name, tc := range map[string]struct {
		active string
		heard  *wire.ArchiverStatus
		want   bool
	}{
		"it archives": {"paris", heard(nil), false}, "nobody is open": {"", heard(nil), true}, "silent": {"paris", nil, true},
		"it waits": {"paris", heard(func(h *wire.ArchiverStatus) { h.State = wire.ArchiverStandby }), true},
	} {
		if IsTroubled(tc.active, tc.heard) != tc.want {
			t.Errorf("%s: troubled %t", name, !tc.want)
		}
	}
}

// A gap hurts if a point after the first backup may be in it; of gaps that are not told any more only the oldest are left out.
func TestWhichGapsHurt(t *testing.T) {
	old := v1alpha1.PITRGap{GTIDs: a + ":5", Before: &metav1.MicroTime{Time: now.Add(-3 * time.Hour)}}
	young := v1alpha1.PITRGap{GTIDs: a + ":5", Before: &metav1.MicroTime{Time: now.Add(-time.Hour)}}
	for name, tc := range map[string]struct {
		st   v1alpha1.PITRStatus
		want bool
	}{
		"none":                             {v1alpha1.PITRStatus{Earliest: at(2 * time.Hour)}, false},
		"none, and no backup":              {v1alpha1.PITRStatus{}, false},
		"before the backup":                {v1alpha1.PITRStatus{GapCount: 1, Gaps: []v1alpha1.PITRGap{old}, Earliest: at(2 * time.Hour)}, false},
		"many before the backup":           {v1alpha1.PITRStatus{GapCount: 9, Gaps: []v1alpha1.PITRGap{old}, Earliest: at(2 * time.Hour)}, false},
		"after the backup":                 {v1alpha1.PITRStatus{GapCount: 1, Gaps: []v1alpha1.PITRGap{young}, Earliest: at(2 * time.Hour)}, true},
		"it is not known when":             {v1alpha1.PITRStatus{GapCount: 1, Gaps: []v1alpha1.PITRGap{{GTIDs: a + ":5"}}, Earliest: at(2 * time.Hour)}, true},
		"no backup":                        {v1alpha1.PITRStatus{GapCount: 1, Gaps: []v1alpha1.PITRGap{old}}, true},
		"none is told of those that there": {v1alpha1.PITRStatus{GapCount: 1}, true},
	} {
		if got := (Look{}).hurts(&tc.st); got != tc.want {
			t.Errorf("%s: hurts %t", name, got)
		}
	}
	if SameButTimes(&v1alpha1.PITRStatus{}, nil) {
		t.Error("one is as good as none")
	}
	if text := clip(strings.Repeat("x", 200)); len(text) != 200 {
		t.Errorf("%d bytes of 200", len(text))
	}
	if text := clip(strings.Repeat("x", 201)); len(text) != 203 {
		t.Errorf("%d bytes of 201", len(text))
	}
	for _, l := range []Look{{Group: &v1alpha1.MysqlFailoverGroup{}}, {Group: &v1alpha1.MysqlFailoverGroup{Spec: v1alpha1.MysqlFailoverGroupSpec{Backup: &v1alpha1.BackupSpec{}}}}} {
		if got := l.profile(); got != "" {
			t.Errorf("profile %q of a group that names none", got)
		}
	}
}
