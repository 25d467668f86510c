// SPDX-License-Identifier: Apache-2.0

package pitr

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

const (
	location = "s3://backups/shop/orders"

	a = "aaaaaaaa-0000-0000-0000-000000000001"
	b = "bbbbbbbb-0000-0000-0000-000000000002"
)

// place is where the archive is. Backups that an older operator made have its location alone.
var place = v1alpha1.StoragePlace{Location: location, Digest: "sha256:here"}

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func at(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }

// copied is a completed backup that was begun so long ago and took a minute.
func copied(name string, ago time.Duration, set string) v1alpha1.MysqlBackup {
	return v1alpha1.MysqlBackup{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.MysqlBackupStatus{
		Phase: v1alpha1.BackupCompleted, Location: location, StartedAt: at(ago), FinishedAt: at(ago - time.Minute), GTIDExecuted: set,
	}}
}

func changed(mb v1alpha1.MysqlBackup, change func(*v1alpha1.MysqlBackupStatus)) v1alpha1.MysqlBackup {
	change(&mb.Status)
	return mb
}

// I27: nothing may go that a backup needs which is kept, and of which something is not known nothing may go at all.
func TestWhatMayGoFromTheArchiveI27(t *testing.T) {
	day := 24 * time.Hour
	old, young := copied("old", 2*day, a+":1-10"), copied("young", day, a+":1-30")
	for name, tc := range map[string]struct {
		backups []v1alpha1.MysqlBackup
		place   v1alpha1.StoragePlace
		want    string
		set     string
		unread  string
	}{
		"none":                        {place: place},
		"one":                         {backups: []v1alpha1.MysqlBackup{young}, place: place, want: "young", set: a + ":1-30"},
		"the oldest":                  {backups: []v1alpha1.MysqlBackup{young, old}, place: place, want: "old", set: a + ":1-10"},
		"one of a site that lags":     {backups: []v1alpha1.MysqlBackup{old, copied("lags", day, a+":1-7")}, place: place, want: "old", set: a + ":1-7"},
		"one that diverged":           {backups: []v1alpha1.MysqlBackup{old, copied("other", day, a+":1-8,"+b+":1-3")}, place: place, want: "old", set: a + ":1-8"},
		"nothing is archived":         {backups: []v1alpha1.MysqlBackup{old}},
		"in another storage":          {backups: []v1alpha1.MysqlBackup{changed(old, func(s *v1alpha1.MysqlBackupStatus) { s.Location = "s3://other/shop/orders" }), young}, place: place, want: "young", set: a + ":1-30"},
		"under another server":        {backups: []v1alpha1.MysqlBackup{changed(old, func(s *v1alpha1.MysqlBackupStatus) { s.StorageDigest = "sha256:there" }), young}, place: place, want: "old", set: a + ":1-10"},
		"one that runs":               {backups: []v1alpha1.MysqlBackup{changed(old, func(s *v1alpha1.MysqlBackupStatus) { s.Phase = v1alpha1.BackupRunning }), young}, place: place, want: "young", set: a + ":1-30"},
		"one that failed":             {backups: []v1alpha1.MysqlBackup{changed(old, func(s *v1alpha1.MysqlBackupStatus) { s.Phase = v1alpha1.BackupFailed })}, place: place},
		"one that is removed":         {backups: []v1alpha1.MysqlBackup{changed(old, func(s *v1alpha1.MysqlBackupStatus) { s.Phase = v1alpha1.BackupDeleting }), young}, place: place, want: "old", set: a + ":1-10"},
		"what it holds is unknown":    {backups: []v1alpha1.MysqlBackup{changed(old, func(s *v1alpha1.MysqlBackupStatus) { s.GTIDExecuted = "?" }), young}, place: place, want: "old", unread: "old young"},
		"what it holds was too long":  {backups: []v1alpha1.MysqlBackup{changed(old, func(s *v1alpha1.MysqlBackupStatus) { s.GTIDExecuted = "" }), young}, place: place, want: "old", unread: "old young"},
		"only what the young holds":   {backups: []v1alpha1.MysqlBackup{changed(young, func(s *v1alpha1.MysqlBackupStatus) { s.GTIDExecuted = "" }), old}, place: place, want: "old", unread: "old young"},
		"they have nothing in common": {backups: []v1alpha1.MysqlBackup{old, copied("other", day, b+":1-3")}, place: place, want: "old"},
		"more than can be told":       {backups: slices.Repeat([]v1alpha1.MysqlBackup{changed(old, func(s *v1alpha1.MysqlBackupStatus) { s.GTIDExecuted = "" })}, wire.MaxCutoffBackups+1), place: place},
		"many of which all is known":  {backups: slices.Repeat([]v1alpha1.MysqlBackup{old}, wire.MaxCutoffBackups+1), place: place, want: "old", set: a + ":1-10"},
		"when it began is unknown":    {backups: []v1alpha1.MysqlBackup{young, changed(old, func(s *v1alpha1.MysqlBackupStatus) { s.StartedAt = nil })}, place: place},
	} {
		c := CutoffOf(&v1alpha1.MysqlFailoverGroup{}, tc.backups, tc.place)
		if (c.Cutoff != nil) != (tc.want != "") || c.Backup != tc.want || c.GTIDExecuted != gtid.MustParse(tc.set).String() || strings.Join(c.Backups, " ") != tc.unread {
			t.Errorf("I27: %s: %v, %q, %s, %v", name, c.Cutoff, c.Backup, c.GTIDExecuted, c.Backups)
		}
	}
	if c := CutoffOf(&v1alpha1.MysqlFailoverGroup{}, []v1alpha1.MysqlBackup{young, old}, place); !c.Cutoff.Equal(now.Add(-2 * day)) {
		t.Errorf("I27: it is cut off at %s, and the oldest backup was begun before", c.Cutoff)
	}
}

// I27: a backup that is being made of a site that lags may lack what all kept backups hold. The archive keeps that until it is completed.
func TestABackupThatIsBeingMadeHoldsTheArchiveI27(t *testing.T) {
	kept := copied("kept", 10*time.Minute, a+":1-30")
	made := func(change func(*v1alpha1.MysqlBackupStatus)) v1alpha1.MysqlBackup {
		return changed(copied("made", 5*time.Minute, ""), func(s *v1alpha1.MysqlBackupStatus) {
			s.Phase, s.FinishedAt = v1alpha1.BackupRunning, nil
			change(s)
		})
	}
	held, free := now.Add(-5*time.Minute-25*time.Hour), now.Add(-10*time.Minute)
	for name, tc := range map[string]struct {
		others []v1alpha1.MysqlBackup
		want   time.Time
	}{
		"none is made":        {nil, free},
		"one is made":         {[]v1alpha1.MysqlBackup{made(func(*v1alpha1.MysqlBackupStatus) {})}, held},
		"under another name":  {[]v1alpha1.MysqlBackup{made(func(s *v1alpha1.MysqlBackupStatus) { s.StorageDigest = "sha256:there" })}, held},
		"it is tried again":   {[]v1alpha1.MysqlBackup{made(func(s *v1alpha1.MysqlBackupStatus) { s.Phase = v1alpha1.BackupPending })}, held},
		"the earliest counts": {[]v1alpha1.MysqlBackup{made(func(s *v1alpha1.MysqlBackupStatus) { s.StartedAt = at(time.Minute) }), made(func(*v1alpha1.MysqlBackupStatus) {})}, held},
		"it waits":            {[]v1alpha1.MysqlBackup{made(func(s *v1alpha1.MysqlBackupStatus) { s.Phase, s.StartedAt = v1alpha1.BackupPending, nil })}, free},
		"it failed":           {[]v1alpha1.MysqlBackup{made(func(s *v1alpha1.MysqlBackupStatus) { s.Phase = v1alpha1.BackupFailed })}, free},
		"in another storage":  {[]v1alpha1.MysqlBackup{made(func(s *v1alpha1.MysqlBackupStatus) { s.Location = "s3://other/shop/orders" })}, free},
	} {
		c := CutoffOf(&v1alpha1.MysqlFailoverGroup{}, append(tc.others, kept), place)
		if c.Cutoff == nil || !c.Cutoff.Equal(tc.want) || c.Backup != "kept" || c.GTIDExecuted != kept.Status.GTIDExecuted {
			t.Errorf("I27: %s: cut off at %v and not %s, by %q with %s", name, c.Cutoff, tc.want, c.Backup, c.GTIDExecuted)
		}
	}
	old := copied("old", 48*time.Hour, a+":1-10")
	if c := CutoffOf(&v1alpha1.MysqlFailoverGroup{}, []v1alpha1.MysqlBackup{old, made(func(*v1alpha1.MysqlBackupStatus) {})}, place); !c.Cutoff.Equal(now.Add(-48 * time.Hour)) {
		t.Errorf("I27: cut off at %s, and the oldest backup was begun before", c.Cutoff)
	}
	if c := CutoffOf(&v1alpha1.MysqlFailoverGroup{}, []v1alpha1.MysqlBackup{made(func(*v1alpha1.MysqlBackupStatus) {})}, place); c.Cutoff != nil {
		t.Errorf("I27: something may go, and no backup is kept: %s", c.Cutoff)
	}
}

// I28: what an epoch began with is told if it is known, and no other epoch.
func TestTheEpochsThatAreToldI28(t *testing.T) {
	when := metav1.NewMicroTime(now)
	records := []v1alpha1.FailoverRecord{{Epoch: 3, To: "c", ToExecuted: a + ":1-3", OpenedAt: when, Kind: v1alpha1.FailoverPlanned}, {Epoch: 2, To: "b", ToExecuted: a + ":1-2", OpenedAt: when}}
	for name, tc := range map[string]struct {
		status v1alpha1.MysqlFailoverGroupStatus
		want   string
	}{
		"new":                     {v1alpha1.MysqlFailoverGroupStatus{}, ""},
		"first, earlier version":  {v1alpha1.MysqlFailoverGroupStatus{Epoch: 1, ActiveSite: "a", ActiveSiteSince: at(0)}, "1a:"},
		"first, not yet open":     {v1alpha1.MysqlFailoverGroupStatus{Epoch: 1, ActiveSite: "a", Transition: &v1alpha1.Transition{}, ActiveSiteSince: at(0)}, ""},
		"later, nothing is known": {v1alpha1.MysqlFailoverGroupStatus{Epoch: 4, ActiveSite: "a", ActiveSiteSince: at(0)}, ""},
		"records of earlier":      {v1alpha1.MysqlFailoverGroupStatus{Epoch: 3, Failovers: records}, "3c:" + a + ":1-3 2b:" + a + ":1-2"},
		"one without its set":     {v1alpha1.MysqlFailoverGroupStatus{Epoch: 3, Failovers: []v1alpha1.FailoverRecord{records[0], {Epoch: 2, To: "b", OpenedAt: when}}}, "3c:" + a + ":1-3"},
		"both":                    {v1alpha1.MysqlFailoverGroupStatus{Epoch: 4, Failovers: records, Epochs: []v1alpha1.EpochRecord{{Epoch: 4, Site: "a", PromotedAt: when, GTIDExecuted: a + ":1-4"}, {Epoch: 3, Site: "c", GTIDExecuted: a + ":1-3", ServerUUID: "x"}}}, "4a:" + a + ":1-4 3c:" + a + ":1-3x 2b:" + a + ":1-2"},
		"the present moves":       {v1alpha1.MysqlFailoverGroupStatus{Epoch: 5, Transition: &v1alpha1.Transition{}, Epochs: []v1alpha1.EpochRecord{{Epoch: 4, Site: "a", PromotedAt: when}}}, "4a:"},
	} {
		c := CutoffOf(&v1alpha1.MysqlFailoverGroup{Status: tc.status}, nil, v1alpha1.StoragePlace{})
		var got []string
		for _, e := range c.Epochs {
			got = append(got, string(rune('0'+e.Epoch))+e.Site+":"+e.GTIDExecuted+e.ServerUUID)
		}
		if strings.Join(got, " ") != tc.want || c.Epochs == nil || c.Epoch != tc.status.Epoch {
			t.Errorf("I28: %s: %v, want %s", name, got, tc.want)
		}
	}
	many := v1alpha1.MysqlFailoverGroupStatus{}
	for i := range int64(2 * wire.MaxCutoffEpochs) {
		many.Epochs = append(many.Epochs, v1alpha1.EpochRecord{Epoch: i + 1})
	}
	if c := CutoffOf(&v1alpha1.MysqlFailoverGroup{Status: many}, nil, v1alpha1.StoragePlace{}); len(c.Epochs) != wire.MaxCutoffEpochs || c.Epochs[0].Epoch != 2*wire.MaxCutoffEpochs {
		t.Errorf("%d epochs, the newest first: %d", len(c.Epochs), c.Epochs[0].Epoch)
	}
}

func TestTheEarliestPoint(t *testing.T) {
	old, young := copied("old", 2*time.Hour, a+":1-10"), copied("young", time.Hour, a+":1-30")
	both := []v1alpha1.MysqlBackup{old, young}
	set := gtid.MustParse
	for name, tc := range map[string]struct {
		backups []v1alpha1.MysqlBackup
		held    Held
		want    *v1alpha1.MysqlBackup
	}{
		"no backup":                      {nil, Held{Executed: set(a + ":1-50"), ServerUUID: a, Archived: set(a + ":1-50"), ArchivedKnown: true}, nil},
		"all is archived":                {both, Held{Executed: set(a + ":1-50"), ServerUUID: a, Archived: set(a + ":1-50"), ArchivedKnown: true}, &old},
		"archived from the backup on":    {both, Held{Executed: set(a + ":1-50"), ServerUUID: a, Archived: set(a + ":11-50"), ArchivedKnown: true}, &old},
		"the last are not archived yet":  {both, Held{Executed: set(a + ":1-50"), ServerUUID: a, Archived: set(a + ":5-40"), ArchivedKnown: true}, &old},
		"archived from after the backup": {both, Held{Executed: set(a + ":1-50"), ServerUUID: a, Archived: set(a + ":21-50"), ArchivedKnown: true}, &young},
		"a gap after the backup":         {both, Held{Executed: set(a + ":1-50"), ServerUUID: a, Archived: set(a + ":1-14:16-50"), ArchivedKnown: true}, &young},
		"a gap after both":               {both, Held{Executed: set(a + ":1-50"), ServerUUID: a, Archived: set(a + ":1-39:41-50"), ArchivedKnown: true}, nil},
		"what another site wrote lacks":  {both, Held{Executed: set(a + ":1-50," + b + ":1-9"), ServerUUID: b, Archived: set(a + ":1-45," + b + ":1-9"), ArchivedKnown: true}, nil},
		"nothing of the new site yet":    {both, Held{Executed: set(a + ":1-50," + b + ":1-9"), ServerUUID: b, Archived: set(a + ":1-50"), ArchivedKnown: true}, &old},
		"it holds what a failover lost": {[]v1alpha1.MysqlBackup{copied("lost", time.Hour, a+":1-110")},
			Held{Executed: set(a + ":1-104," + b + ":1-5"), ServerUUID: b, Archived: set(a + ":1-104," + b + ":1-5"), ArchivedKnown: true}, nil},
		"one holds that, and one not": {[]v1alpha1.MysqlBackup{copied("lost", 3*time.Hour, a+":1-110"), young},
			Held{Executed: set(a + ":1-104," + b + ":1-5"), ServerUUID: b, Archived: set(a + ":1-104," + b + ":1-5"), ArchivedKnown: true}, &young},
		"it is newer than what is known": {[]v1alpha1.MysqlBackup{young}, Held{Executed: set(a + ":1-28"), ServerUUID: a, Archived: set(a + ":1-25"), ArchivedKnown: true}, &young},
		"that of the backup is too long": {[]v1alpha1.MysqlBackup{changed(old, func(s *v1alpha1.MysqlBackupStatus) { s.GTIDExecuted = "" })},
			Held{Executed: set(a + ":1-50"), ServerUUID: a, Archived: set(a + ":11-50"), ArchivedKnown: true}, &old},
		"the set is too long to be told": {both, Held{Executed: set(a + ":1-50"), ServerUUID: a}, &old},
	} {
		want := time.Time{}
		if tc.want != nil {
			want = tc.want.Status.FinishedAt.Time
		}
		if got := Earliest(tc.backups, place, tc.held); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	here, there := func(s *v1alpha1.MysqlBackupStatus) { s.StorageDigest = place.Digest }, func(s *v1alpha1.MysqlBackupStatus) { s.StorageDigest = "sha256:there" }
	kept := Held{Executed: set(a + ":1-50"), ServerUUID: a, Archived: set(a + ":1-50"), ArchivedKnown: true}
	if got := Earliest([]v1alpha1.MysqlBackup{changed(old, there), changed(young, here)}, place, kept); !got.Equal(young.Status.FinishedAt.Time) {
		t.Errorf("a backup in a bucket of the same name on another server is the first point: %s", got)
	}
	unusable := changed(old, func(s *v1alpha1.MysqlBackupStatus) {
		s.Verified = &v1alpha1.BackupVerified{Outcome: v1alpha1.BackupNotRestorable}
	})
	if got := Earliest([]v1alpha1.MysqlBackup{unusable, young}, place, kept); !got.Equal(young.Status.FinishedAt.Time) {
		t.Errorf("a backup that could not be restored is the first point: %s", got)
	}
	leaving := old
	leaving.DeletionTimestamp = at(0)
	held := Held{Executed: set(a + ":1-50"), ServerUUID: a, Archived: set(a + ":1-50"), ArchivedKnown: true}
	if got := Earliest([]v1alpha1.MysqlBackup{leaving, young}, place, held); !got.Equal(young.Status.FinishedAt.Time) {
		t.Errorf("a backup that is being removed is the first point: %s", got)
	}
}

func group(change func(*v1alpha1.MysqlFailoverGroup)) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{Spec: v1alpha1.MysqlFailoverGroupSpec{Backup: &v1alpha1.BackupSpec{PITR: &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"}}}}
	if change != nil {
		change(g)
	}
	return g
}

// told is a group of which status says this.
func told(st v1alpha1.PITRStatus) *v1alpha1.MysqlFailoverGroup {
	return group(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Backup = &v1alpha1.BackupStatus{PITR: &st} })
}

func heard(change func(*wire.ArchiverStatus)) *wire.ArchiverStatus {
	h := &wire.ArchiverStatus{At: now, State: wire.ArchiverArchiving, Site: "paris", Epoch: 3, Latest: now.Add(-20 * time.Second), ArchivedGTID: a + ":1-50", Bytes: 7}
	if change != nil {
		change(h)
	}
	return h
}

func TestDecide(t *testing.T) {
	gap := wire.ArchiverGap{GTIDs: a + ":15", Transactions: 1, Before: now.Add(-90 * time.Minute), Epoch: 2, Site: "madrid"}
	failing := heard(func(h *wire.ArchiverStatus) {
		h.State, h.Reason, h.Message = wire.ArchiverFailing, "AccessDenied", "the storage refuses the credentials"
	})
	for name, tc := range map[string]struct {
		look   func(*Look)
		reason v1alpha1.Reason
		says   string
	}{
		"all backups are elsewhere": {func(l *Look) { l.Backups[0].Status.StorageDigest = "sha256:there" }, v1alpha1.ReasonPITRNoBase, "same storage"},
		"all is well":               {func(*Look) {}, v1alpha1.ReasonPITRArchiving, "every point"},
		"no profile":                {func(l *Look) { l.Place = v1alpha1.StoragePlace{} }, v1alpha1.ReasonBackupProfileMissing, "correct its name"},
		"no image":                  {func(l *Look) { l.Image = false }, v1alpha1.ReasonBackupImageMissing, "--backup-image"},
		"no site for a moment":      {func(l *Look) { l.Active, l.Heard, l.TroubledSince = "", nil, now.Add(-time.Minute) }, v1alpha1.ReasonPITRArchiving, ""},
		"no site for long":          {func(l *Look) { l.Active, l.Heard, l.TroubledSince = "", nil, now.Add(-Grace) }, v1alpha1.ReasonPITRNoSite, "Available"},
		"silent for a moment":       {func(l *Look) { l.Heard, l.TroubledSince = nil, now.Add(-time.Minute) }, v1alpha1.ReasonPITRArchiving, ""},
		"silent for long":           {func(l *Look) { l.Heard, l.TroubledSince = nil, now.Add(-Grace) }, v1alpha1.ReasonPITRSilent, "container archiver"},
		"fails for a moment":        {func(l *Look) { l.Heard, l.TroubledSince = failing, now.Add(-time.Minute) }, v1alpha1.ReasonPITRArchiving, ""},
		"fails for long":            {func(l *Look) { l.Heard, l.TroubledSince = failing, now.Add(-Grace) }, v1alpha1.ReasonAccessDenied, "refuses the credentials"},
		"fails, of its own": {func(l *Look) {
			l.Heard, l.TroubledSince = heard(func(h *wire.ArchiverStatus) { h.State, h.Reason = wire.ArchiverFailing, "Made" }), now.Add(-Grace)
		}, v1alpha1.ReasonPITRFailing, "log of container archiver"},
		"does not take its turn": {func(l *Look) {
			l.Heard, l.TroubledSince = heard(func(h *wire.ArchiverStatus) { h.State = wire.ArchiverStandby }), now.Add(-Grace)
		}, v1alpha1.ReasonPITRFailing, "Standby"},
		"lags": {func(l *Look) {
			l.Group, l.Heard = group(nil), heard(func(h *wire.ArchiverStatus) { h.Latest = now.Add(-Grace - 91*time.Second) })
		}, v1alpha1.ReasonPITRLags, "interval of 30s"},
		"lags, just not": {func(l *Look) {
			l.Group, l.Heard = group(nil), heard(func(h *wire.ArchiverStatus) { h.Latest = now.Add(-Grace - 90*time.Second) })
		}, v1alpha1.ReasonPITRArchiving, ""},
		"no room": {func(l *Look) { l.Full = true }, v1alpha1.ReasonPITRVolumeFull, "purged"},
		"begins": {func(l *Look) {
			l.Group, l.Heard = group(nil), heard(func(h *wire.ArchiverStatus) { h.Latest, h.ArchivedGTID = time.Time{}, "" })
		}, v1alpha1.ReasonPITRStarting, "begins"},
		"no backup": {func(l *Look) { l.Backups = nil }, v1alpha1.ReasonPITRNoBase, "profile nightly"},
		"a gap after the backup": {func(l *Look) {
			l.Heard = heard(func(h *wire.ArchiverStatus) {
				h.Gaps, h.GapCount, h.ArchivedGTID = []wire.ArchiverGap{gap}, 1, a+":1-14:16-50"
			})
		}, v1alpha1.ReasonPITRGap, a + ":15"},
		"a gap before the backup": {func(l *Look) {
			l.Backups = []v1alpha1.MysqlBackup{copied("young", time.Hour, a+":1-30")}
			l.Heard = heard(func(h *wire.ArchiverStatus) {
				h.Gaps, h.GapCount, h.ArchivedGTID = []wire.ArchiverGap{gap}, 1, a+":1-14:16-50"
			})
		}, v1alpha1.ReasonPITRArchiving, ""},
		"told trouble stands": {func(l *Look) {
			l.Group = told(v1alpha1.PITRStatus{Reason: v1alpha1.ReasonPITRNoSite, Message: "m", Latest: at(0)})
			l.Heard, l.TroubledSince = nil, now.Add(-time.Second)
		}, v1alpha1.ReasonPITRNoSite, "m"},
	} {
		l := Look{Now: now, Group: told(v1alpha1.PITRStatus{Latest: at(time.Minute)}), Backups: []v1alpha1.MysqlBackup{copied("old", 2*time.Hour, a+":1-10")}, Place: place,
			Interval: 30 * time.Second, Image: true, Active: "paris", Heard: heard(nil), Held: Held{Executed: gtid.MustParse(a + ":1-50"), ServerUUID: a}}
		tc.look(&l)
		s := Decide(l)
		if s.Condition.Reason != tc.reason || (s.Condition.Status == metav1.ConditionTrue) != (tc.reason == v1alpha1.ReasonPITRArchiving) || !strings.Contains(s.Condition.Message, tc.says) {
			t.Errorf("%s: %+v", name, s.Condition)
		}
		if good := tc.reason == v1alpha1.ReasonPITRArchiving; good != (s.Status.Reason == "") {
			t.Errorf("%s: status %+v", name, s.Status)
		}
	}
}

func TestWhatStatusSaysOfAnArchive(t *testing.T) {
	l := Look{Now: now, Group: group(nil), Backups: []v1alpha1.MysqlBackup{copied("old", 2*time.Hour, a+":1-10")}, Place: place, Interval: 30 * time.Second, Image: true,
		Active: "paris", Heard: heard(nil), Held: Held{Executed: gtid.MustParse(a + ":1-50"), ServerUUID: a}, Holding: true}
	s := Decide(l)
	want := &v1alpha1.PITRStatus{Site: "paris", Earliest: at(2*time.Hour - time.Minute), Latest: at(20 * time.Second), ArchivedGTID: a + ":1-50", Lag: "<30s", Bytes: 7, Holding: true}
	if diff := cmp.Diff(want, s.Status); diff != "" || s.Lag != 20*time.Second {
		t.Errorf("lag %s (-want +got):\n%s", s.Lag, diff)
	}
	// What was known stands when the archiver is gone, and gets older; an archiver that begins or waits takes nothing back.
	for name, h := range map[string]*wire.ArchiverStatus{
		"silent": nil, "starts": heard(func(h *wire.ArchiverStatus) { *h = wire.ArchiverStatus{State: wire.ArchiverStarting} }),
		"waits":               heard(func(h *wire.ArchiverStatus) { *h = wire.ArchiverStatus{State: wire.ArchiverStandby, Site: "madrid"} }),
		"says an older point": heard(func(h *wire.ArchiverStatus) { h.Latest = now.Add(-time.Hour) }),
	} {
		l.Group, l.Heard, l.Now = told(*want), h, now.Add(10*time.Minute)
		if s := Decide(l); s.Status.Latest == nil || !s.Status.Latest.Equal(want.Latest) || s.Status.Site != "paris" || s.Status.ArchivedGTID != want.ArchivedGTID ||
			s.Lag != 10*time.Minute+20*time.Second || s.Status.Lag != "<15m" {
			t.Errorf("%s: %+v, lag %s", name, s.Status, s.Lag)
		}
	}
	// One that reaches into the future has a clock that is wrong, or had: the lag grows, so that it is told that nothing comes any more.
	for name, before := range map[string]*v1alpha1.MysqlFailoverGroup{
		"is said for the first time": told(*want), "was believed before": told(v1alpha1.PITRStatus{Latest: at(-24 * time.Hour)}),
	} {
		l.Group, l.Now = before, now.Add(10*time.Minute)
		l.Heard = heard(func(h *wire.ArchiverStatus) { h.Latest = now.Add(24 * time.Hour) })
		s := Decide(l)
		if s.Status.Latest != nil && s.Status.Latest.After(l.Now) || s.Condition.Status == metav1.ConditionTrue {
			t.Errorf("the future %s: %+v, %s", name, s.Status.Latest, s.Condition.Reason)
		}
	}
	// Clocks differ a little.
	l.Group, l.Now = told(*want), now
	l.Heard = heard(func(h *wire.ArchiverStatus) { h.Latest = now.Add(time.Minute) })
	if s := Decide(l); !s.Status.Latest.Time.Equal(now.Add(time.Minute)) || s.Lag != 0 {
		t.Errorf("a clock that is a minute ahead: %+v, lag %s", s.Status.Latest, s.Lag)
	}
	// It is bounded, whatever an archiver says.
	l.Group, l.Now = group(nil), now
	l.Heard = heard(func(h *wire.ArchiverStatus) {
		h.ArchivedGTID, h.GapCount = strings.Repeat("x", 48<<10), 100
		h.Gaps = make([]wire.ArchiverGap, wire.MaxArchiverGaps)
		h.Gaps[len(h.Gaps)-1].Site = "newest"
	})
	if s := Decide(l); s.Status.ArchivedGTID != "" || len(s.Status.Gaps) != statusGaps || s.Status.Gaps[statusGaps-1].Site != "newest" || s.Status.GapCount != 100 {
		t.Errorf("%d bytes of a set, %d gaps", len(s.Status.ArchivedGTID), len(s.Status.Gaps))
	}
	for lag, want := range map[time.Duration]string{0: "<30s", 30 * time.Second: "<1m", time.Minute: "<5m", 5 * time.Minute: "<15m", time.Hour: "<6h", 23 * time.Hour: "<1d", 48 * time.Hour: ">=1d"} {
		if got := lagOf(lag); got != want {
			t.Errorf("%s: %s", lag, got)
		}
	}
}

func TestHold(t *testing.T) {
	const gib = 1 << 30
	for name, tc := range map[string]struct {
		logs             Logs
		behind, released bool
		action           HoldAction
		full             bool
	}{
		"all is well":                    {logs: Logs{Bytes: 9 * gib, Volume: 10 * gib, Purges: true}},
		"behind":                         {logs: Logs{Bytes: gib, Volume: 10 * gib, Purges: true}, behind: true, action: HoldLogs},
		"behind, held":                   {logs: Logs{Bytes: gib, Volume: 10 * gib}, behind: true},
		"behind, no room":                {logs: Logs{Bytes: 3 * gib, Volume: 10 * gib}, behind: true, action: ReleaseLogs, full: true},
		"behind, no room, purges":        {logs: Logs{Bytes: 3 * gib, Volume: 10 * gib, Purges: true}, behind: true, full: true},
		"behind, room again":             {logs: Logs{Bytes: gib, Volume: 10 * gib, Purges: true}, behind: true, released: true, full: true},
		"caught up":                      {logs: Logs{Bytes: 9 * gib, Volume: 10 * gib}, action: ReleaseLogs},
		"caught up after it had no room": {logs: Logs{Bytes: gib, Volume: 10 * gib}, released: true, action: ReleaseLogs},
	} {
		if action, full := HoldOf(tc.logs, tc.behind, tc.released); action != tc.action || full != tc.full {
			t.Errorf("%s: %q, full %t", name, action, full)
		}
	}
	if IsBehind(HoldLeast, 5*time.Second) || !IsBehind(HoldLeast+1, 5*time.Second) || IsBehind(time.Hour, 10*time.Minute) || !IsBehind(101*time.Minute, 10*time.Minute) {
		t.Error("behind is not where it should be")
	}
}

func TestOpenFor(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{time.Second: time.Hour, 5 * time.Second: 10000 * time.Second, 30 * time.Second: 60000 * time.Second, 10 * time.Minute: 24 * time.Hour} {
		if got := OpenFor(interval); got != want {
			t.Errorf("archived every %s, a log may be open for %s", interval, got)
		}
	}
}

func TestOnlyTimesDiffer(t *testing.T) {
	x := &v1alpha1.PITRStatus{Site: "a", Latest: at(0), Bytes: 1, ArchivedGTID: "x", Earliest: at(time.Hour), Gaps: []v1alpha1.PITRGap{{Site: "a"}}}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.PITRStatus)
		same   bool
	}{
		"nothing": {func(*v1alpha1.PITRStatus) {}, true},
		"further": {func(s *v1alpha1.PITRStatus) { s.Latest, s.Bytes, s.ArchivedGTID = at(-time.Minute), 2, "y" }, true},
		"site":    {func(s *v1alpha1.PITRStatus) { s.Site = "b" }, false}, "lag": {func(s *v1alpha1.PITRStatus) { s.Lag = "<1m" }, false},
		"earliest": {func(s *v1alpha1.PITRStatus) { s.Earliest = nil }, false}, "gaps": {func(s *v1alpha1.PITRStatus) { s.Gaps[0].Site = "b" }, false},
		"reason": {func(s *v1alpha1.PITRStatus) { s.Reason = "X" }, false}, "holding": {func(s *v1alpha1.PITRStatus) { s.Holding = true }, false},
	} {
		y := x.DeepCopy()
		tc.change(y)
		if SameButTimes(x, y) != tc.same {
			t.Errorf("%s: same is %t", name, !tc.same)
		}
	}
	for _, tc := range []struct {
		a, b string
		same bool
	}{{"<30s", "<1m", true}, {"<1m", "<5m", true}, {"<5m", "<15m", false}, {"<1h", "<6h", false}, {"", "<30s", false}} {
		if SameButTimes(&v1alpha1.PITRStatus{Lag: tc.a}, &v1alpha1.PITRStatus{Lag: tc.b}) != tc.same {
			t.Errorf("a lag of %q and one of %q: same is %t", tc.a, tc.b, !tc.same)
		}
	}
	if SameButTimes(nil, x) || !SameButTimes(nil, nil) {
		t.Error("none is as good as one")
	}
}
