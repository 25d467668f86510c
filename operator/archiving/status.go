// SPDX-License-Identifier: Apache-2.0

package archiving

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/pitr"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
)

// writeEvery is how often status is written if only the times in it have changed: with a thousand groups 17 times a second.
const writeEvery = time.Minute

func keyOf(group *v1alpha1.MysqlFailoverGroup) types.NamespacedName {
	return types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
}

// tells is true if status says anything of an archive.
func tells(g *v1alpha1.MysqlFailoverGroup) bool {
	return g.Status.Backup != nil && g.Status.Backup.PITR != nil || meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionPITRReady) != nil
}

// due is true if status must be written: it has changed, or only its times have and it has not been written for a while.
func (a *Archiving) due(group *v1alpha1.MysqlFailoverGroup, m *memory, s pitr.State) bool {
	var before *v1alpha1.PITRStatus
	if group.Status.Backup != nil {
		before = group.Status.Backup.PITR
	}
	now := a.Now()
	stamped := conditions.Stamp(group.Status.Conditions, s.Condition, group.Generation, now)
	stands := meta.FindStatusCondition(group.Status.Conditions, s.Condition.Type)
	if conditions.Changed(group.Status.Conditions, stamped) || stands.ObservedGeneration != stamped.ObservedGeneration || !pitr.SameButTimes(before, s.Status) {
		return true
	}
	return now.Sub(m.written) >= writeEvery
}

// write writes the status of the archive, or removes it for a group without one. It returns false if another writer was faster, or the group
// was made again: the next look begins with what is stored then.
func (a *Archiving) write(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s *pitr.State) (written bool, err error) {
	status := applyv1alpha1.MysqlFailoverGroupStatus()
	switch {
	case s != nil:
		c := conditions.Stamp(group.Status.Conditions, s.Condition, group.Generation, a.Now())
		status.WithBackup(applyv1alpha1.BackupStatus().WithPITR(applyOf(s.Status)))
		status.WithConditions(applymetav1.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime))
	case !tells(group):
		return true, nil
	}
	// The version identifies the object: an API server does not check the UID when status is applied.
	config := applyv1alpha1.MysqlFailoverGroup(group.Name, group.Namespace).WithResourceVersion(group.ResourceVersion).WithStatus(status)
	err = a.Client.Status().Apply(ctx, config, client.FieldOwner(v1alpha1.ManagerPITRStatus), client.ForceOwnership)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return false, nil
	}
	return false, fmt.Errorf("write status of the archive: %w", err)
}

func applyOf(s *v1alpha1.PITRStatus) *applyv1alpha1.PITRStatusApplyConfiguration {
	out := applyv1alpha1.PITRStatus().WithBytes(s.Bytes).WithGapCount(s.GapCount).WithHolding(s.Holding)
	for _, t := range []struct {
		text string
		set  func(string) *applyv1alpha1.PITRStatusApplyConfiguration
	}{{s.Site, out.WithSite}, {s.ArchivedGTID, out.WithArchivedGTID}, {s.Lag, out.WithLag}, {s.Message, out.WithMessage}, {s.PruneMessage, out.WithPruneMessage}} {
		if t.text != "" {
			t.set(t.text)
		}
	}
	if s.Reason != "" {
		out.WithReason(s.Reason)
	}
	if s.Earliest != nil {
		out.WithEarliest(*s.Earliest)
	}
	if s.Latest != nil {
		out.WithLatest(*s.Latest)
	}
	for _, g := range s.Gaps {
		gap := applyv1alpha1.PITRGap().WithTransactions(g.Transactions).WithEpoch(g.Epoch).WithSite(g.Site).WithGTIDs(g.GTIDs)
		if g.After != nil {
			gap.WithAfter(*g.After)
		}
		if g.Before != nil {
			gap.WithBefore(*g.Before)
		}
		out.WithGaps(gap)
	}
	return out
}
