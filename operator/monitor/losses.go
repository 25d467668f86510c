// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"slices"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// countLosses puts the rows of lost transactions into the records once they are counted. Counting runs beside the loop;
// the next status has the result. An operator that restarts in between counts again.
func (l *loop) countLosses(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) {
	if l.m.Losses == nil || !l.loaded || !slices.ContainsFunc(l.durable.Records, uncounted) {
		return
	}
	addresses := map[string]string{}
	for site, pod := range l.cluster().Newest(ctx, group) {
		addresses[site] = pod.Status.PodIP
	}
	l.countLossesAt(group, addresses)
}

func uncounted(r v1alpha1.FailoverRecord) bool {
	return r.LossExact && r.LostTransactions > 0 && r.LostRowsState == ""
}

func (l *loop) countLossesAt(group *v1alpha1.MysqlFailoverGroup, addresses map[string]string) {
	for i, r := range l.durable.Records {
		if !uncounted(r) || addresses[r.From] == "" {
			continue
		}
		if rows, state, done := l.m.Losses.Rows(group, r, addresses[r.From]); done {
			records := slices.Clone(l.durable.Records)
			records[i].LostRows, records[i].LostRowsState = rows, state
			l.durable.Records = records
		}
	}
}
