// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Kinds of the reports of points in time.
const (
	TimelineKind = "MfgTimelineReport"
	FoundKind    = "MfgFoundReport"
	LostKind     = "MfgLostReport"
)

// PITR is the archive of binary logs, as the custom resource sums it up.
type PITR struct {
	// Ready is what the condition PITRReady says; nil while there is none.
	Ready   *bool           `json:"ready,omitempty"`
	Profile string          `json:"profile,omitempty"`
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	Site    string          `json:"site,omitempty"`
	// Earliest and Latest bound the points in time to which the group can be restored, except for Gaps.
	Earliest *time.Time `json:"earliest,omitempty"`
	Latest   *time.Time `json:"latest,omitempty"`
	// Lag is how old Latest was, in steps: <30s and so on.
	Lag string `json:"lag,omitempty"`
	// Gaps are the newest ones, GapCount counts all.
	Gaps     []PITRGap `json:"gaps,omitempty"`
	GapCount int32     `json:"gapCount,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Holding  bool      `json:"holding,omitempty"`
	// PruneMessage says why nothing is removed from the archive although no backup needs it; empty if that works.
	PruneMessage string `json:"pruneMessage,omitempty"`
}

// PITRGap is a part that is missing in the archive.
type PITRGap struct {
	GTIDs        string     `json:"gtids,omitempty"`
	Transactions int64      `json:"transactions"`
	After        *time.Time `json:"after,omitempty"`
	Before       *time.Time `json:"before,omitempty"`
	Epoch        int64      `json:"epoch,omitempty"`
	Site         string     `json:"site,omitempty"`
}

// Bad is true if the condition says that something is wrong.
func (p PITR) Bad() bool { return p.Ready != nil && !*p.Ready }

// PITROf returns what the custom resource says of its archive; nil in groups without one.
func PITROf(cr *v1alpha1.MysqlFailoverGroup) *PITR {
	spec := cr.Spec.Backup
	if spec == nil || spec.PITR == nil || !spec.PITR.Enabled {
		return nil
	}
	p := &PITR{Profile: spec.PITR.Profile}
	p.Ready, p.Reason, p.Message = said(cr, v1alpha1.ConditionPITRReady)
	if cr.Status.Backup == nil || cr.Status.Backup.PITR == nil {
		return p
	}
	at := cr.Status.Backup.PITR
	p.Site, p.Earliest, p.Latest, p.Lag, p.GapCount, p.Bytes, p.Holding = at.Site, timeOf(at.Earliest), timeOf(at.Latest), at.Lag, at.GapCount, at.Bytes, at.Holding
	p.PruneMessage = at.PruneMessage
	if at.Reason != "" || at.Message != "" {
		p.Reason, p.Message = at.Reason, at.Message
	}
	for _, g := range at.Gaps {
		p.Gaps = append(p.Gaps, PITRGap{GTIDs: g.GTIDs, Transactions: g.Transactions, After: microOf(g.After), Before: microOf(g.Before), Epoch: g.Epoch, Site: g.Site})
	}
	return p
}

func microOf(t *metav1.MicroTime) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	at := t.UTC()
	return &at
}

// pitrProblems count against health, but prevent no failover. An archive that is just about to begin is no problem.
func pitrProblems(r MysqlFailoverGroupReport) []Problem {
	if r.says(v1alpha1.ConditionPITRReady, metav1.ConditionFalse, v1alpha1.ReasonPITRStarting) {
		return nil
	}
	return matching(r.Conditions, []badCondition{{v1alpha1.ConditionPITRReady, metav1.ConditionFalse}})
}

// Timeline is what can be recovered of a group, as its archive says.
type Timeline struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Profile    string   `json:"profile,omitempty"`
	// Verified are the outcomes of verifications by the name of the backup, as far as the cluster knows them.
	Verified map[string]string    `json:"verified"`
	Archive  wire.ArchiveTimeline `json:"archive"`
	Check    *wire.TargetCheck    `json:"check,omitempty"`
	// Truncated is true if there is more than this report holds.
	Truncated bool `json:"truncated,omitempty"`
}

// NewTimeline makes a report of what the archive says.
func NewTimeline(namespace, group, profile string, known []v1alpha1.MysqlBackup) *Timeline {
	t := &Timeline{APIVersion: APIVersion, Kind: TimelineKind, Metadata: Metadata{Name: group, Namespace: namespace}, Profile: profile, Verified: map[string]string{}}
	for _, b := range known {
		if b.Status.Verified != nil {
			t.Verified[b.Name] = string(b.Status.Verified.Outcome)
		}
	}
	return t
}

// Recoverable returns from when to when the group can be restored, except for gaps; zero if it cannot.
func (t *Timeline) Recoverable() (from, to time.Time) {
	for _, b := range t.Archive.Backups {
		if b.Reaches && !b.FinishedAt.IsZero() && (from.IsZero() || b.FinishedAt.Before(from)) {
			from = b.FinishedAt
		}
	}
	if from.IsZero() {
		return from, from
	}
	to = t.Archive.Latest
	if to.Before(from) {
		to = from
	}
	return from, to
}

// NeedsAttention is true if something cannot be recovered that should be.
func (t *Timeline) NeedsAttention() bool {
	from, _ := t.Recoverable()
	return from.IsZero() || len(t.Archive.Gaps) > 0 || len(t.Archive.Problems) > 0
}

// Found holds transactions that were searched for in an archive, or that failovers lost.
type Found struct {
	APIVersion string                     `json:"apiVersion"`
	Kind       string                     `json:"kind"`
	Metadata   Metadata                   `json:"metadata"`
	Items      []wire.ArchivedTransaction `json:"items"`
	// Changes are the rows, if requested.
	Changes []wire.ArchivedChange `json:"changes,omitempty"`
	// Read is how much was read to find them.
	Read wire.InspectEnd `json:"read"`
	// Next is the next step.
	Next string `json:"next,omitempty"`
}
