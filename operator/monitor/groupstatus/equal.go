// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Says is true if the stored status is what the loop means. A deposed leader may have written last.
func Says(current, meant v1alpha1.MysqlFailoverGroupStatus) bool {
	return bytes.Equal(ownPart(current), ownPart(meant))
}

// ownPart is the part of a status that the monitor owns, without times of conditions, as text to compare.
func ownPart(s v1alpha1.MysqlFailoverGroupStatus) []byte {
	own := WithoutTimes(v1alpha1.MysqlFailoverGroupStatus{
		Phase: s.Phase, ActiveSite: s.ActiveSite, ActiveSiteSince: s.ActiveSiteSince, Epoch: s.Epoch, Transition: s.Transition,
		PlannedFailover: s.PlannedFailover, Forecast: s.Forecast, CooldownUntil: s.CooldownUntil, RowsOutsideInnoDB: s.RowsOutsideInnoDB, ReadySites: s.ReadySites,
		ReplicationLag: s.ReplicationLag, LastFailover: s.LastFailover, Failovers: s.Failovers, Epochs: s.Epochs, FormerSites: s.FormerSites,
		Conditions: owned(s.Conditions),
	})
	for _, site := range s.Sites {
		if site.State != "" {
			own.Sites = append(own.Sites, v1alpha1.SiteStatus{Name: site.Name, State: site.State, Reason: site.Reason, Message: site.Message, Errant: site.Errant, Filtered: site.Filtered,
				KeptFenced: site.KeptFenced, OutlivedLease: site.OutlivedLease, Incarnations: site.Incarnations})
		}
	}
	slices.SortFunc(own.Sites, func(a, b v1alpha1.SiteStatus) int { return strings.Compare(a.Name, b.Name) })
	for i := range own.Conditions {
		own.Conditions[i].ObservedGeneration = 0
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil
	}
	return text
}

// WithoutTimes returns a status without the times of its conditions, which alone are no news.
func WithoutTimes(s v1alpha1.MysqlFailoverGroupStatus) v1alpha1.MysqlFailoverGroupStatus {
	out := *s.DeepCopy()
	for i := range out.Conditions {
		out.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return out
}
