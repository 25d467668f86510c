// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	// epochsKept is how many epochs stay in status: as many as an archiver gets (wire.MaxCutoffEpochs).
	epochsKept = 64
	// epochsBytes bounds their sets of transactions together. Status must fit into the store of Kubernetes whatever the sets are, or the
	// next failover could not be persisted.
	epochsBytes = 64 << 10
)

// NeverPassed is true if no gate was passed for the site that status calls the active one: a person took the transition off, or wrote another
// site into status. The write that passes a gate also writes the first of status.epochs (I28). So the site that was active before may still be
// open, and nothing but its own word says that it is not (I1). An older release wrote no epochs; then nothing is known of it.
func NeverPassed(st Durable) bool {
	return st.Transition == nil && len(st.Epochs) > 0 && (st.Epochs[0].Epoch != st.Epoch || st.Epochs[0].Site != st.ActiveSite)
}

// noteEpoch records what the present epoch began with, in the same write that lets its target open. A reader of the binary log archive
// tells from it what belongs to the history, and what a failover lost (I28). The oldest epochs go first; the present one always stays.
func (d Decision) noteEpoch(s Snapshot, t Transition) Decision {
	target, _ := s.Site(t.To)
	now := v1alpha1.EpochRecord{
		Epoch: d.Status.Epoch, Site: t.To, ServerUUID: target.MySQL.ServerUUID, PromotedAt: metav1.NewMicroTime(t.GatePassedAt), Kind: t.Kind,
		GTIDExecuted: t.ToExecuted.String(),
	}
	all, bytes := []v1alpha1.EpochRecord{now}, len(now.GTIDExecuted)
	// Status from an old backup of Kubernetes may list epochs that this one replaces.
	before := slices.DeleteFunc(slices.Clone(s.Status.Epochs), func(r v1alpha1.EpochRecord) bool { return r.Epoch >= now.Epoch })
	for _, r := range before {
		if bytes += len(r.GTIDExecuted); len(all) == epochsKept || bytes > epochsBytes {
			break
		}
		all = append(all, r)
	}
	d.Status.Epochs = all
	return d
}
