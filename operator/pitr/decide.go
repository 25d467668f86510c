// SPDX-License-Identifier: Apache-2.0

package pitr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
)

// Look is the input of a decision.
type Look struct {
	Now      time.Time
	Group    *v1alpha1.MysqlFailoverGroup
	Backups  []v1alpha1.MysqlBackup
	Place    v1alpha1.StoragePlace
	Interval time.Duration
	// Image is true if the operator knows the image of the program that archives.
	Image bool
	// Active is the site that was seen open for writes; empty if none was.
	Active string
	// Held is what that site has. Archived is taken from Heard.
	Held Held
	// Heard is what the archiver in the pod of Active says; nil if it has said nothing for SilentAfter.
	Heard *wire.ArchiverStatus
	// QuietSince is since when the archiver is silent, and TroubledSince since when the archive does not grow, for any reason; zero if it is not so.
	QuietSince, TroubledSince time.Time
	// Holding is true if a site is kept from purging, Full if one should be but has no room for it.
	Holding, Full bool
}

const (
	// SilentAfter is how old the status of an archiver may be: it writes one every few seconds.
	SilentAfter = time.Minute
	// Grace is how long trouble is not reported: a failover, a pod that is replaced, a request that is tried again.
	Grace = 2 * time.Minute
)

// State is what Decide says of the archive.
type State struct {
	Status    *v1alpha1.PITRStatus
	Condition conditions.Condition
	// Lag is how old the latest recoverable point is; it counts only with LagKnown.
	Lag      time.Duration
	LagKnown bool
}

// Decide says how the archive is doing.
func Decide(l Look) State {
	before := &v1alpha1.PITRStatus{}
	if b := l.Group.Status.Backup; b != nil && b.PITR != nil {
		before = b.PITR
	}
	// The last known state stays until a newer one is known: the archive does not go away with its archiver.
	st := before.DeepCopy()
	st.Reason, st.Message, st.Holding = "", "", l.Holding
	if hasListed(l.Heard) {
		take(st, l.Heard, l.Now)
	}
	st.Earliest = l.earliest(before)
	s := State{Status: st}
	if st.Latest != nil {
		s.Lag, s.LagKnown = max(0, l.Now.Sub(st.Latest.Time)), true
	}
	st.Lag = ""
	if s.LagKnown {
		st.Lag = lagOf(s.Lag)
	}
	s.Condition = l.condition(before, s)
	if s.Condition.Status != metav1.ConditionTrue {
		st.Reason, st.Message = s.Condition.Reason, s.Condition.Message
	}
	return s
}

// hasListed is true if an archiver has read what is in the storage in this epoch. One that fails before that, for want of access or of the server,
// counts nothing: its zeros, or what it last knew when it was its turn before, are not what the archive has.
func hasListed(h *wire.ArchiverStatus) bool {
	return h != nil && (h.State == wire.ArchiverArchiving || h.State == wire.ArchiverFailing && h.Epoch > 0 && h.Log != "")
}

// earliest is the first point that can be recovered; nil if there is none.
func (l Look) earliest(before *v1alpha1.PITRStatus) *metav1.Time {
	held, known := l.Held, hasListed(l.Heard)
	if known && l.Heard.ArchivedGTID != "" {
		set, err := gtid.Parse(l.Heard.ArchivedGTID)
		held.Archived, held.ArchivedKnown = set, err == nil
	}
	first := Earliest(l.Backups, l.Place, held).Truncate(time.Second)
	switch {
	case first.IsZero():
		return nil
	case !known && before.Earliest == nil && before.GapCount > 0:
		return nil // there was none when it was known what is archived
	case !known && before.Earliest != nil && first.Before(before.Earliest.Time):
		return before.Earliest // no backup leads on that did not when it was known
	}
	return &metav1.Time{Time: first}
}

// take records what the archiver says. An archive that reaches into the future comes from a clock that is or was wrong, and until then would hide that
// nothing more is archived: so the latest point known before stays.
func take(st *v1alpha1.PITRStatus, h *wire.ArchiverStatus, now time.Time) {
	st.Site, st.Bytes, st.PruneMessage = h.Site, h.Bytes, h.PruneMessage
	future := now.Add(futureMost)
	if st.Latest != nil && st.Latest.After(future) {
		st.Latest = nil
	}
	if !h.Latest.IsZero() && !h.Latest.After(future) && (st.Latest == nil || h.Latest.After(st.Latest.Time)) {
		st.Latest = &metav1.Time{Time: h.Latest.UTC().Truncate(time.Second)}
	}
	st.ArchivedGTID = h.ArchivedGTID
	if len(st.ArchivedGTID) > statusGTIDMax {
		st.ArchivedGTID = ""
	}
	st.GapCount, st.Gaps = int32(min(h.GapCount, 1<<30)), nil
	for _, g := range h.Gaps[max(0, len(h.Gaps)-statusGaps):] {
		gap := v1alpha1.PITRGap{GTIDs: g.GTIDs, Transactions: g.Transactions, After: microsOf(g.After), Before: microsOf(g.Before), Epoch: g.Epoch, Site: g.Site}
		st.Gaps = append(st.Gaps, gap)
	}
}

const (
	// futureMost is how far the clock of an archiver's node may be ahead of this one.
	futureMost = 10 * time.Minute
	// statusGTIDMax bounds the set in status, and statusGaps the gaps, each of at most 2 KiB: the group's status must fit into the store.
	statusGTIDMax = 16 << 10
	statusGaps    = 8
)

func microsOf(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewMicroTime(t.UTC().Truncate(time.Microsecond))
	return &out
}

// condition is PITRReady: the first fault, in the order in which faults should be mended.
func (l Look) condition(before *v1alpha1.PITRStatus, s State) conditions.Condition {
	no := func(reason v1alpha1.Reason, format string, args ...any) conditions.Condition {
		return conditions.False(v1alpha1.ConditionPITRReady, reason, fmt.Sprintf(format, args...))
	}
	st, h := s.Status, l.Heard
	late := !l.TroubledSince.IsZero() && l.Now.Sub(l.TroubledSince) >= Grace
	switch {
	case l.Place.Location == "":
		return no(v1alpha1.ReasonBackupProfileMissing, "backup.pitr names a profile that is not in spec.backup.profiles, or one of kind volume, which takes no archive: correct its name")
	case !l.Image:
		return no(v1alpha1.ReasonBackupImageMissing, "the operator was installed without the image that archives: set backupImage of the chart, or --backup-image")
	case l.Full:
		return no(v1alpha1.ReasonPITRVolumeFull, "the archive is far behind, and a site's volume has no room to keep binary logs for it: they are purged as they get old. %s", l.why())
	case late && l.Active == "":
		return no(v1alpha1.ReasonPITRNoSite, "no site is open for writes, so that nothing is written that could be archived: see condition Available")
	case late && h == nil:
		return no(v1alpha1.ReasonPITRSilent, "nothing is heard of the archiver of site %s: look at container archiver of its pod", l.Active)
	case late && h.State == wire.ArchiverFailing:
		return no(l.reason(), "%s", l.why())
	case late && h.State != wire.ArchiverArchiving:
		return no(v1alpha1.ReasonPITRFailing, "the archiver of site %s does not take its turn (%s): look at container archiver of its pod", l.Active, h.State)
	case s.Lag > Grace+3*l.Interval:
		return no(v1alpha1.ReasonPITRLags, "the latest point in time that can be recovered is older than it should be with an interval of %s. %s", l.Interval, l.why())
	case l.hurts(st):
		return no(v1alpha1.ReasonPITRGap, "%s: no point after them can be recovered from a backup before them; make a backup now, with which it can again", gapText(st))
	case st.Latest == nil:
		return no(v1alpha1.ReasonPITRStarting, "the archive begins: nothing can be recovered from it yet")
	case st.Earliest == nil:
		return no(v1alpha1.ReasonPITRNoBase, "there is no backup in the same storage from which on the archive has everything and which holds nothing that a failover lost: make one with profile %s", l.profile())
	}
	// Short trouble does not change it, and reported trouble stays until it is over.
	if c := before.Reason; c != "" && !l.TroubledSince.IsZero() {
		return no(c, "%s", before.Message)
	}
	return conditions.True(v1alpha1.ConditionPITRReady, v1alpha1.ReasonPITRArchiving, "every point in time since status.backup.pitr.earliest can be recovered")
}

func (l Look) profile() string {
	if b := l.Group.Spec.Backup; b != nil && b.PITR != nil {
		return b.PITR.Profile
	}
	return ""
}

// reason returns why an archiver fails, if it is one of the words of the program.
func (l Look) reason() v1alpha1.Reason {
	if r, known := v1alpha1.ReasonOfBackup(l.Heard.Reason); known {
		return r
	}
	return v1alpha1.ReasonPITRFailing
}

// why returns what the archiver says, without what changes with every try.
func (l Look) why() string {
	if l.Heard == nil {
		return "Nothing is heard of its archiver: look at container archiver of the active site's pod."
	}
	return cmp.Or(l.Heard.Message, "Look at the log of container archiver of the active site's pod.")
}

// hurts is true if a gap is, or may be, after the first point that can be recovered.
func (l Look) hurts(st *v1alpha1.PITRStatus) bool {
	return int(st.GapCount) > len(st.Gaps) && st.Earliest == nil || slices.ContainsFunc(st.Gaps, func(g v1alpha1.PITRGap) bool {
		return st.Earliest == nil || g.Before == nil || g.Before.After(st.Earliest.Time)
	})
}

// gapText names the newest gaps.
func gapText(st *v1alpha1.PITRStatus) string {
	var parts []string
	for _, g := range st.Gaps[max(0, len(st.Gaps)-3):] {
		parts = append(parts, fmt.Sprintf("%d transactions of site %s in epoch %d (%s)", g.Transactions, g.Site, g.Epoch, cmp.Or(clip(g.GTIDs), "too many ranges to name")))
	}
	return fmt.Sprintf("%d gaps in the archive, of which: %s", st.GapCount, strings.Join(parts, "; "))
}

func clip(text string) string {
	const most = 200
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// lagSteps are the steps in which status tells the lag.
var lagSteps = []struct {
	below time.Duration
	text  string
}{
	{30 * time.Second, "<30s"}, {time.Minute, "<1m"}, {5 * time.Minute, "<5m"}, {15 * time.Minute, "<15m"}, {time.Hour, "<1h"}, {6 * time.Hour, "<6h"},
	{24 * time.Hour, "<1d"},
}

func lagOf(lag time.Duration) string {
	for _, step := range lagSteps {
		if lag < step.below {
			return step.text
		}
	}
	return ">=1d"
}

// IsTroubled is true while the archive does not grow: no site is open, the archiver is silent, or it fails.
func IsTroubled(active string, heard *wire.ArchiverStatus) bool {
	return active == "" || heard == nil || heard.State != wire.ArchiverArchiving
}

// shortLag is the limit below which a lag tells only when the archive was read: it rises and falls with every interval.
const shortLag = 5 * time.Minute

func isShort(lag string) bool {
	for _, step := range lagSteps {
		if step.text == lag {
			return step.below <= shortLag
		}
	}
	return false
}

// SameButTimes is true if two statuses differ only in how far the archive has come: that is written now and then.
func SameButTimes(a, b *v1alpha1.PITRStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := a.DeepCopy(), b.DeepCopy()
	for _, s := range []*v1alpha1.PITRStatus{x, y} {
		s.Latest, s.ArchivedGTID, s.Bytes = nil, "", 0
	}
	if isShort(x.Lag) && isShort(y.Lag) {
		x.Lag, y.Lag = "", ""
	}
	return equality.Semantic.DeepEqual(x, y)
}
