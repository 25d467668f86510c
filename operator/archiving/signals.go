// SPDX-License-Identifier: Apache-2.0

package archiving

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/pitr"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// What happens to archives.
var (
	eventArchiving  = events.Normal(v1alpha1.ReasonPITRArchiving, "Archive")
	eventFailing    = events.Warning(v1alpha1.ReasonPITRFailing, "Retry")
	eventGap        = events.Warning(v1alpha1.ReasonPITRGap, "Name")
	eventHolding    = events.Warning(v1alpha1.ReasonPITRHolding, "Hold")
	eventReleased   = events.Normal(v1alpha1.ReasonPITRReleased, "Release")
	eventVolumeFull = events.Warning(v1alpha1.ReasonPITRVolumeFull, "Release")
)

// The metrics of archives.
var (
	metricReady = metrics.Gauge(metrics.Group, "operator_pitr_ready",
		"1 if binary logs are archived as they should be, and nothing is missing, else 0.")
	metricLag = metrics.Gauge(metrics.Group, "operator_pitr_lag_seconds",
		"How old the latest point in time is that the group can be brought back to; it grows while nothing is heard of the archiver.")
	metricLatest = metrics.Gauge(metrics.Group, "operator_pitr_latest_timestamp_seconds",
		"That point, in Unix time.")
	metricEarliest = metrics.Gauge(metrics.Group, "operator_pitr_earliest_timestamp_seconds",
		"The first point in time that the group can be brought back to, in Unix time; 0 if there is no backup from which on the archive has everything.")
	metricGaps = metrics.Gauge(metrics.Group, "operator_pitr_gaps",
		"Gaps in the archive: transactions of the group's history that are not there.")
	metricBytes = metrics.Gauge(metrics.Group, "operator_pitr_bytes",
		"How many bytes the archive takes in the storage.")
	metricPending = metrics.Gauge(metrics.Group, "operator_pitr_pending_bytes",
		"How many bytes of binary logs of the active site are not archived yet.")
	metricHolding = metrics.Gauge(metrics.Group, "operator_pitr_holding",
		"1 while the sites are kept from purging binary logs, because the archive does not have them yet, else 0.")
	metricUploads = metrics.Counter(metrics.Group, "operator_pitr_uploads_total",
		"Uploads of the archivers of the active sites, by outcome: succeeded or failed.", "outcome")
)

// show shows the metrics.
func (a *Archiving) show(key types.NamespacedName, m *memory, l pitr.Look, s pitr.State) {
	set := func(v *prometheus.GaugeVec, value float64) { v.WithLabelValues(key.Namespace, key.Name).Set(value) }
	m.shown = true
	set(metricReady, oneIf(s.Condition.Status == metav1.ConditionTrue))
	set(metricGaps, float64(s.Status.GapCount))
	set(metricBytes, float64(s.Status.Bytes))
	set(metricHolding, oneIf(s.Status.Holding))
	earliest := 0.0
	if s.Status.Earliest != nil {
		earliest = float64(s.Status.Earliest.Unix())
	}
	set(metricEarliest, earliest)
	if s.LagKnown {
		set(metricLag, s.Lag.Seconds())
		set(metricLatest, float64(s.Status.Latest.Unix()))
	}
	h := l.Heard
	if h == nil {
		return
	}
	set(metricPending, float64(h.PendingBytes))
	now := counters{h.Site, h.StartedAt, h.UploadsSucceeded, h.UploadsFailed}
	before := m.counted
	if before.site != now.site || !before.started.Equal(now.started) {
		before = counters{} // another process counts from its start
	}
	metricUploads.WithLabelValues(key.Namespace, key.Name, "succeeded").Add(float64(max(0, now.succeeded-before.succeeded)))
	metricUploads.WithLabelValues(key.Namespace, key.Name, "failed").Add(float64(max(0, now.failed-before.failed)))
	m.counted = now
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// hide deletes the metrics of a group that no longer has an archive.
func (a *Archiving) hide(key types.NamespacedName, m *memory) {
	if !m.shown {
		return
	}
	m.shown = false
	labels := prometheus.Labels{"mysql_namespace": key.Namespace, "failover_group": key.Name}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
		metricReady, metricLag, metricLatest, metricEarliest, metricGaps, metricBytes, metricPending, metricHolding, metricUploads,
	} {
		v.DeletePartialMatch(labels)
	}
}

// tell reports what has changed since the last write of status.
func (a *Archiving) tell(group *v1alpha1.MysqlFailoverGroup, s pitr.State) {
	var gaps int32
	if b := group.Status.Backup; b != nil && b.PITR != nil {
		gaps = b.PITR.GapCount
	}
	stands := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionPITRReady)
	was := stands != nil && stands.Status == metav1.ConditionTrue
	is := s.Condition.Status == metav1.ConditionTrue
	switch {
	case is && !was:
		a.Recorder.Emit(group, nil, eventArchiving, "Binary logs are archived, and every point in time since status.backup.pitr.earliest can be recovered")
	case s.Status.GapCount > gaps:
		a.Recorder.Emit(group, nil, eventGap, "The archive of binary logs has %d gaps, where it had %d: see status.backup.pitr.gaps, and make a backup now", s.Status.GapCount, gaps)
	case was && !is:
		a.Recorder.Emit(group, nil, eventFailing, "The archive of binary logs is not as it should be (%s): %s", s.Condition.Reason, s.Condition.Message)
	}
}

func (a *Archiving) tellHold(group *v1alpha1.MysqlFailoverGroup, site string, purges, full bool) {
	switch {
	case full:
		a.Recorder.Emit(group, nil, eventVolumeFull, "Site %s purges binary logs by age again, although the archive does not have all of them: they take more than a quarter of its volume", site)
	case purges:
		a.Recorder.Emit(group, nil, eventReleased, "Site %s purges binary logs by age again: the archive has caught up, or is turned off", site)
	default:
		a.Recorder.Emit(group, nil, eventHolding, "Site %s keeps binary logs however old they get, because the archive is far behind", site)
	}
}
