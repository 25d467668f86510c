// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// role is one-hot over the roles of a site's cache.
var role = metrics.Gauge(metrics.Site, "operator_cache_role",
	"1 for the role that the cache of the site has, master or replica; absent while it does not answer.", "role")

// linkUp is for replicas.
var linkUp = metrics.Gauge(metrics.Site, "operator_cache_link_up",
	"1 if the cache of the site has a working link to its master, else 0; absent for a master and while it does not answer.")

// promotions counts changes of the master.
var promotions = metrics.Counter(metrics.Group, "operator_cache_promotions_total",
	"Changes of the cache's master, by outcome: preserved (every key is in the new one), lost (some may not be) or failed (it was given up).", "outcome")

// usedMemory is what the data takes.
var usedMemory = metrics.Gauge(metrics.Site, "operator_cache_used_memory_bytes",
	"Memory that the data of the site's cache takes; absent while it does not answer.")

// lagBytes is for replicas.
var lagBytes = metrics.Gauge(metrics.Site, "operator_cache_lag_bytes",
	"Bytes of the master's changes that the cache of the site has not received, with Dragonfly changes; absent for a master and while that is not known.")

// ready is the condition as a number.
var ready = metrics.Gauge(metrics.Group, "operator_cache_ready",
	"1 if the condition CacheReady is true, 0 if it is not; absent for groups without a cache.")

// maxMemory is what the specification allows.
var maxMemory = metrics.Gauge(metrics.Group, "operator_cache_max_memory_bytes",
	"spec.cache.maxMemory in bytes; absent for groups without a cache.")

func count(key types.NamespacedName, why v1alpha1.Reason) {
	outcome := map[v1alpha1.Reason]string{v1alpha1.ReasonCachePromoted: "preserved", v1alpha1.ReasonCacheSessionsLost: "lost", v1alpha1.ReasonCacheMoveFailed: "failed"}[why]
	if outcome != "" {
		promotions.WithLabelValues(key.Namespace, key.Name, outcome).Inc()
	}
}

// show sets the series of a group.
func (l *loop) show(k look) {
	ns, name := l.key.Namespace, l.key.Name
	active := k.snapshot.Pod(k.decision.Status.ActiveSite)
	for _, p := range k.snapshot.Pods {
		for _, r := range []v1alpha1.CacheRole{v1alpha1.CacheMaster, v1alpha1.CacheReplica} {
			if !p.Reachable {
				role.DeleteLabelValues(ns, name, p.Site, string(r))
				continue
			}
			role.WithLabelValues(ns, name, p.Site, string(r)).Set(number(p.Role == r))
		}
		follows := p.Reachable && p.Role == v1alpha1.CacheReplica
		set(linkUp, follows, number(p.Linked), ns, name, p.Site)
		set(lagBytes, follows && active.Reachable && p.Follows(active.Site), float64(cache.Behind(active, p)), ns, name, p.Site)
		set(usedMemory, p.Reachable, float64(l.links[p.Site].info.UsedMemory), ns, name, p.Site)
	}
	maxMemory.WithLabelValues(ns, name).Set(float64(k.group.Spec.Cache.MaxMemory.Value()))
	if !k.decision.Keep {
		ready.WithLabelValues(ns, name).Set(number(k.decision.Ready))
	}
}

// set sets a series, or removes it while there is nothing to show.
func set(series *prometheus.GaugeVec, is bool, value float64, labels ...string) {
	if !is {
		series.DeleteLabelValues(labels...)
		return
	}
	series.WithLabelValues(labels...).Set(value)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func forgetSite(key types.NamespacedName, site string) {
	at := prometheus.Labels{"mysql_namespace": key.Namespace, "failover_group": key.Name, "site": site}
	for _, series := range []*prometheus.GaugeVec{role, linkUp, usedMemory, lagBytes} {
		series.DeletePartialMatch(at)
	}
}

func forget(key types.NamespacedName) {
	at := prometheus.Labels{"mysql_namespace": key.Namespace, "failover_group": key.Name}
	for _, series := range []*prometheus.GaugeVec{role, linkUp, usedMemory, lagBytes, ready, maxMemory} {
		series.DeletePartialMatch(at)
	}
	promotions.DeletePartialMatch(at)
}
