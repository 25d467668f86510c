// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// settings are the flags that make a difference here, by the names that Dragonfly gives them.
type settings map[string]string

// switches are the flags that are true or false, with which a bare --name means true and --noname false.
var switches = []string{
	"tls", "tls_replication", "logtostderr", "alsologtostderr", "cache_mode", "version_check", "primary_port_http_enabled",
	"admin_nopass", "no_tls_on_admin_port", "df_snapshot_format", "break_replication_on_master_restart", "conn_use_incoming_cpu",
	"enable_heartbeat_eviction", "lock_on_hashtags", "info_replication_valkey_compatible", "force_epoll", "aclfile_reload",
}

// values are the flags that take a value. Most of them change nothing about what a test can see.
var values = []string{
	"port", "bind", "dir", "dbfilename", "requirepass", "masterauth", "masteruser", "maxmemory", "maxclients", "dbnum", "hz",
	"tls_cert_file", "tls_key_file", "tls_ca_cert_file", "tls_ca_cert_dir", "tls_ciphers", "tls_cipher_suites", "replicaof",
	"proactor_threads", "conn_io_threads", "num_shards", "snapshot_cron", "default_lua_flags", "admin_port", "admin_bind",
	"announce_ip", "announce_port", "replica_announce_ip", "replica_priority", "replication_timeout", "master_connect_timeout_ms",
	"master_reconnect_timeout_ms", "tcp_keepalive", "timeout", "pidfile", "log_dir", "minloglevel", "v", "vmodule", "max_log_size",
	"unixsocket", "unixsocketperm", "memcached_port", "aclfile", "rename_command", "restricted_commands", "keys_output_limit",
	"slowlog_log_slower_than", "slowlog_max_len", "oom_deny_ratio", "rss_oom_deny_ratio", "oom_deny_commands", "compression_mode",
	"eviction_memory_budget_threshold", "max_eviction_per_heartbeat", "max_segment_to_consider", "shard_repl_backlog_len",
	"max_client_iobuf_len", "pipeline_queue_limit", "pipeline_buffer_limit", "publish_buffer_limit", "send_timeout", "mem_defrag_threshold",
	"max_multi_bulk_len", "max_bulk_len", "cluster_mode", "lua_mem_gc_threshold", "interpreter_per_thread", "notify_keyspace_events",
}

// maxFlagFiles bounds flag files that name each other.
const maxFlagFiles = 8

// errFlags is a command line that Dragonfly would not start with.
var errFlags = errors.New("flags")

// parseFlags reads a command line as Dragonfly's own library does, after the environment (DFLY_name).
func parseFlags(args, environment []string) (settings, error) {
	s := settings{"port": "6379", "dbfilename": "dump-{timestamp}"}
	for _, e := range environment {
		name, value, _ := strings.Cut(e, "=")
		if name, ok := strings.CutPrefix(name, "DFLY_"); ok && (slices.Contains(values, name) || slices.Contains(switches, name)) {
			s[name] = value
		}
	}
	if err := s.parse(args, maxFlagFiles); err != nil {
		return nil, err
	}
	if port, err := strconv.Atoi(s["port"]); err != nil || port < 1 || port > 65535 {
		return nil, fmt.Errorf("%w: port %q is none", errFlags, s["port"])
	}
	if s.on("tls") && s["tls_key_file"] == "" {
		return nil, fmt.Errorf("%w: TLS needs tls_key_file and tls_cert_file", errFlags)
	}
	// As Dragonfly has it: TLS without any authentication is a mistake.
	if s.on("tls") && s["requirepass"] == "" && s["tls_ca_cert_file"] == "" {
		return nil, fmt.Errorf("%w: TLS configured but no authentication method is used", errFlags)
	}
	return s, nil
}

func (s settings) on(name string) bool {
	return slices.Contains([]string{"true", "t", "1", "yes", "y"}, strings.ToLower(s[name]))
}

func (s settings) parse(args []string, files int) error {
	for len(args) > 0 {
		flag, ok := strings.CutPrefix(args[0], "-")
		if !ok {
			return fmt.Errorf("%w: %q is no flag", errFlags, args[0])
		}
		args = args[1:]
		name, value, given := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		name = strings.ReplaceAll(name, "-", "_")
		switch {
		case slices.Contains(switches, name):
			s[name] = value
			if !given {
				s[name] = "true"
			}
			continue
		case !given && slices.Contains(switches, strings.TrimPrefix(name, "no")):
			s[strings.TrimPrefix(name, "no")] = "false"
			continue
		case !given && len(args) > 0:
			value, args = args[0], args[1:]
		case !given:
			return fmt.Errorf("%w: missing the value of %q", errFlags, name)
		}
		if err := s.set(name, value, files); err != nil {
			return err
		}
	}
	return nil
}

// set takes a flag with its value.
func (s settings) set(name, value string, files int) error {
	if name != "flagfile" {
		if !slices.Contains(values, name) {
			return fmt.Errorf("%w: ERROR: Unknown command line flag '%s'", errFlags, name)
		}
		s[name] = value
		return nil
	}
	if files == 0 {
		return fmt.Errorf("%w: flag files name each other more than %d deep", errFlags, maxFlagFiles)
	}
	for file := range strings.SplitSeq(value, ",") {
		raw, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%w: flag file: %w", errFlags, err)
		}
		var lines []string
		for text := range strings.Lines(string(raw)) {
			text = strings.TrimSpace(text)
			if text == "" || strings.HasPrefix(text, "#") {
				continue
			}
			// One flag with its value on each line, and no quotes: what follows the = belongs to the value, blanks too.
			if !strings.HasPrefix(text, "-") {
				return fmt.Errorf("%w: flag file %s: a line that is no flag", errFlags, file)
			}
			lines = append(lines, text)
		}
		if err := s.parse(lines, files-1); err != nil {
			return err
		}
	}
	return nil
}

// childConfig is the configuration of the Valkey that does the work. It listens on a socket in a private directory only; the proxy
// stands before it.
func (s settings) childConfig(socket, adminPassword string) (string, error) {
	var b strings.Builder
	put := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s %s\n", name, quote(value))
		}
	}
	put("port", "0")
	put("unixsocket", socket)
	put("unixsocketperm", "700")
	put("dir", cmp.Or(s["dir"], "."))
	put("dbfilename", s.snapshot())
	b.WriteString("save \"\"\nappendonly no\nrepl-diskless-sync-delay 0\nreplica-announce-port " + s["port"] + "\n")
	put("maxclients", s["maxclients"])
	put("requirepass", s["requirepass"])
	put("masterauth", s["masterauth"])
	if s["maxmemory"] != "" {
		n, err := size(s["maxmemory"])
		if err != nil {
			return "", err
		}
		put("maxmemory", n)
	}
	// In cache mode Dragonfly evicts, otherwise it refuses.
	if s.on("cache_mode") {
		put("maxmemory-policy", "allkeys-lru")
	}
	if s.on("tls_replication") || s.on("tls") {
		put("tls-cert-file", s["tls_cert_file"])
		put("tls-key-file", s["tls_key_file"])
		put("tls-ca-cert-file", s.authorities())
	}
	if s.on("tls_replication") {
		put("tls-replication", "yes")
	}
	if host, port, ok := strings.Cut(s["replicaof"], ":"); ok {
		fmt.Fprintf(&b, "replicaof %s %s\n", quote(host), quote(port))
	}
	fmt.Fprintf(&b, "user %s on >%s ~* &* +@all\n", adminUser, adminPassword)
	return b.String(), nil
}

// snapshot is the child's file for the data; Dragonfly has a time stamp in its name, here it is always the same file.
func (s settings) snapshot() string {
	if s["dbfilename"] == "" {
		return "dump.rdb"
	}
	return strings.ReplaceAll(strings.ReplaceAll(s["dbfilename"], "-{timestamp}", ""), "/", "-") + ".rdb"
}

// quote writes a value so that Valkey's configuration file takes it as it is.
func quote(value string) string { return strconv.QuoteToASCII(value) }

// size reads a size as Dragonfly takes it: 512mb, 1.5G, 1073741824, 512MiB.
func size(text string) (string, error) {
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text), "b"), "i")
	factor := 1.0
	for i, suffix := range []string{"k", "m", "g", "t"} {
		if number, ok := strings.CutSuffix(unit, suffix); ok {
			unit, factor = number, float64(uint64(1)<<(10*(i+1)))
		}
	}
	n, err := strconv.ParseFloat(unit, 64)
	if err != nil || n < 0 {
		return "", fmt.Errorf("%w: maxmemory %q is no size", errFlags, text)
	}
	return strconv.FormatUint(uint64(n*factor), 10), nil
}
