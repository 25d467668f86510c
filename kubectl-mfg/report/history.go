// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/mysql-mfg/mfg/api/v1alpha1"

// HistoryKind is the kind of History.
const HistoryKind = "MysqlFailoverHistory"

// History are the changes of the active site that the operator keeps, newest first.
type History struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Items      []Change `json:"items"`
	// LastCachePromotion is the last change of the cache's master; nil if there was none, and in the history of one epoch.
	LastCachePromotion *CachePromotion `json:"lastCachePromotion,omitempty"`
}

// Change is one change of the active site: the record of the custom resource, and how long it took.
type Change struct {
	v1alpha1.FailoverRecord `json:",inline"`
	// DurationMillis is the time from the first sign of trouble until the new site was open.
	DurationMillis int64 `json:"durationMillis"`
	// Reverted and IntendedTo are as in Failover.
	Reverted   bool   `json:"reverted,omitempty"`
	IntendedTo string `json:"intendedTo,omitempty"`
}

// BuildHistory makes the history of a group, or of one epoch if epoch is above 0.
func BuildHistory(cr *v1alpha1.MysqlFailoverGroup, epoch int64) History {
	h := History{APIVersion: APIVersion, Kind: HistoryKind, Metadata: Metadata{Name: cr.Name, Namespace: cr.Namespace}, Items: []Change{}}
	for _, r := range cr.Status.Failovers {
		if epoch > 0 && r.Epoch != epoch {
			continue
		}
		from := r.DetectedAt.Time
		if from.IsZero() {
			from = r.StartedAt.Time
		}
		reverted, intended := revertedFrom(r, cr.Status.PlannedFailover)
		h.Items = append(h.Items, Change{
			FailoverRecord: r, DurationMillis: r.OpenedAt.Sub(from).Milliseconds(), Reverted: reverted, IntendedTo: intended,
		})
	}
	if cr.Status.Cache != nil && epoch == 0 {
		h.LastCachePromotion = cachePromotionOf(cr.Status.Cache.LastPromotion)
	}
	return h
}
