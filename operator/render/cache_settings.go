// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// CachePassed are the settings that spec.cache.config may have, by engine. Everything else is refused: a new setting of an engine stays
// out until somebody has thought about it.
//
// A setting is passed on if the worst that it does is to the cache's own speed, capacity and answers. It names no file, address or
// program; it changes no role, account, port or command; and it takes the server from nobody who must reach it: the operator and the
// replicas. So maxclients is not among them, because no connection is kept back for the operator.
func CachePassed(engine v1alpha1.CacheEngine) []Category {
	if engine == v1alpha1.CacheValkey {
		return clone(valkeyPassed)
	}
	return clone(dragonflyPassed)
}

var valkeyPassed = []Category{
	category("memory", "what makes room when memory is full, and how data is kept in it", `
		activedefrag active-defrag-cycle-max active-defrag-cycle-min active-defrag-ignore-bytes active-defrag-max-scan-fields
		active-defrag-threshold-lower active-defrag-threshold-upper active-expire-effort activerehashing hash-max-listpack-entries
		hash-max-listpack-value hash-max-ziplist-entries hash-max-ziplist-value hll-sparse-max-bytes lazyfree-lazy-eviction
		lazyfree-lazy-expire lazyfree-lazy-server-del lazyfree-lazy-user-del lazyfree-lazy-user-flush lfu-decay-time lfu-log-factor
		list-compress-depth list-max-listpack-size list-max-ziplist-size maxmemory-clients maxmemory-eviction-tenacity maxmemory-policy
		maxmemory-samples set-max-intset-entries set-max-listpack-entries set-max-listpack-value stream-node-max-bytes
		stream-node-max-entries zset-max-listpack-entries zset-max-listpack-value zset-max-ziplist-entries zset-max-ziplist-value`),
	category("connections and commands", "how long clients may take, and what they may ask", `
		client-query-buffer-limit databases hz io-threads lua-time-limit busy-reply-threshold notify-keyspace-events
		proto-max-bulk-len tcp-keepalive timeout tracking-table-max-keys`),
	category("replication", "how much a replica that was away may catch up with", `repl-backlog-size repl-backlog-ttl`),
	category("what is measured", "slow commands and latencies", `
		commandlog-execution-slower-than commandlog-large-reply-max-len commandlog-large-request-max-len commandlog-reply-larger-than
		commandlog-request-larger-than commandlog-slow-execution-max-len latency-monitor-threshold latency-tracking
		slowlog-log-slower-than slowlog-max-len`),
}

var dragonflyPassed = []Category{
	category("memory", "what makes room when memory is full, and how data is kept in it", `
		cache_mode enable_heartbeat_eviction eviction_memory_budget_threshold max_eviction_per_heartbeat max_segment_to_consider
		mem_defrag_threshold oom_deny_ratio rss_oom_deny_ratio`),
	category("connections and commands", "how long clients may take, and what they may ask", `
		dbnum default_lua_flags hz interpreter_per_thread keys_output_limit lock_on_hashtags lua_mem_gc_threshold max_bulk_len
		max_multi_bulk_len notify_keyspace_events pipeline_buffer_limit pipeline_queue_limit publish_buffer_limit tcp_keepalive timeout`),
	category("replication", "how much a replica that was away may catch up with", `shard_repl_backlog_len`),
	category("what is measured", "slow commands", `slowlog_log_slower_than slowlog_max_len`),
}

// cacheRefused says why, of the settings that people ask for most; for both engines, with '-' in names.
var cacheRefused = []Category{
	category("role", "which cache is the master the operator decides", `replicaof slaveof replica-* min-replicas-* min-slaves-* repl-*
		cluster-* cluster-mode failover break-replication-on-master-restart`),
	category("accounts", "set spec.cache.auth", `requirepass masterauth masteruser primaryauth primaryuser aclfile acl-* user protected-mode admin-nopass`),
	category("TLS and ports", "set spec.tls and spec.cache.tls", `tls tls-* no-tls-on-admin-port port bind bind-source-addr unixsocket unixsocketperm
		admin-port admin-bind memcached-port primary-port-http-enabled maxclients`),
	category("files", "set spec.cache.storage", `dir dbfilename appendonly append* auto-aof-* aof-* save rdb* snapshot-cron logfile log-dir pidfile include
		loadmodule flagfile stop-writes-on-bgsave-error`),
	category("memory", "set spec.cache.maxMemory", `maxmemory proactor-threads num-shards`),
	category("commands", "the operator needs them, or they open a way in", `rename-command restricted-commands enable-debug-command enable-module-command
		enable-protected-configs`),
}

var cacheRefusedIndex = indexOf(cacheRefused)

// lists says whether a setting is one of these, by exactly this name: the engines do not start with a name that they do not know.
func lists(list []Category, name string) bool {
	return slices.ContainsFunc(list, func(c Category) bool { return slices.Contains(c.Settings, name) })
}

// CacheIgnored are the settings of spec.cache.config that the engine does not get, with the reason; sorted.
func CacheIgnored(spec *v1alpha1.CacheSpec) []string {
	_, ignored := cacheSettings(spec)
	return ignored
}

// cacheSettings divides spec.cache.config into what the engine gets, under the engine's own way to write names, and what it does not.
func cacheSettings(spec *v1alpha1.CacheSpec) (passed map[string]string, ignored []string) {
	known, from, to := dragonflyPassed, "-", "_"
	if spec.Engine == v1alpha1.CacheValkey {
		known, from, to = valkeyPassed, "_", "-"
	}
	passed = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(spec.Config)) {
		name, value := strings.ReplaceAll(key, from, to), string(spec.Config[key])
		_, twice := passed[name]
		switch {
		case !lists(known, name):
			ignored = append(ignored, key+" ("+whyCacheRefused(spec.Engine, name)+")")
		case twice:
			ignored = append(ignored, key+" (it is given twice, with '-' and with '_')")
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
			ignored = append(ignored, key+" (its value has a control character)")
		default:
			passed[name] = value
		}
	}
	return passed, ignored
}

func whyCacheRefused(engine v1alpha1.CacheEngine, name string) string {
	if c := cacheRefusedIndex.find(normal(strings.ReplaceAll(name, "_", "-"))); c != nil {
		return fmt.Sprintf("%s: %s", c.Name, c.Why)
	}
	return fmt.Sprintf("this version does not know it as a setting of %s that is safe to pass on", engine)
}
