// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// settings reads an option file as mysqld does: the last line of a key wins.
func settings(t *testing.T, in render.Input) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, line := range strings.Split(render.ConfigMap(in, in.Group.Spec.Sites[0]).Data[render.ConfigKeyMyCnf], "\n") {
		key, value, ok := strings.Cut(line, "=")
		if ok && !strings.HasPrefix(line, "#") {
			out[key] = value
		}
	}
	return out
}

func TestSiteStartsFenced(t *testing.T) {
	got := settings(t, input(conf("super_read_only", "OFF", "read-only", "0", "persisted-globals-load", "ON")))
	for key, want := range map[string]string{
		"super_read_only": "ON", "read_only": "ON", "skip_replica_start": "ON", "persisted_globals_load": "OFF",
	} {
		if got[key] != want {
			t.Errorf("%s=%s, want %s", key, got[key], want)
		}
	}
}

func TestTLSSettings(t *testing.T) {
	if _, set := settings(t, input())["require_secure_transport"]; set {
		t.Error("secure transport is required without certificates")
	}
	got := settings(t, input(tls))
	if got["require_secure_transport"] != "ON" || got["ssl_ca"] != "/etc/mfg-tls/ca.crt" || got["loose_clone_ssl_key"] != "/etc/mfg-tls/tls.key" {
		t.Errorf("settings %v", got)
	}
}

func TestIgnoredKeys(t *testing.T) {
	tests := map[string]struct {
		reason     string
		key, value string
		ignored    bool
	}{
		"plain":          {"a setting of the user", "max_connections", "500", false},
		"workers":        {"a default that may be changed", "replica-parallel-workers", "16", false},
		"longer":         {"begins like an owned setting, but is another", "log_bin_trust_function_creators", "ON", false},
		"dotted":         {"settings of components have dots", "validate_password.policy", "LOW", false},
		"schema prefix":  {"sizes of the performance schema are the user's", "performance_schema_max_mutex_classes", "300", false},
		"events":         {"the event scheduler is the user's", "event_scheduler", "OFF", false},
		"owned":          {"the fence", "super_read_only", "OFF", true},
		"dashes":         {"mysqld takes dashes", "super-read-only", "OFF", true},
		"capitals":       {"mysqld ignores case", "Super_Read_Only", "OFF", true},
		"loose":          {"mysqld strips loose_", "loose-super-read-only", "OFF", true},
		"skip":           {"mysqld takes skip_ for OFF", "skip-super-read-only", "", true},
		"doubled":        {"prefixes come in pairs", "loose_disable-read_only", "1", true},
		"abbreviated":    {"mysqld takes a unique beginning", "super_read", "OFF", true},
		"old word":       {"slave is replica", "skip-slave-start", "0", true},
		"old word again": {"slave is replica", "log_slave_updates", "OFF", true},
		"init file":      {"could open writes at the start", "init-file", "/tmp/x", true},
		"init replica":   {"could open writes in the applier", "init_slave", "SET GLOBAL super_read_only=0", true},
		"filters":        {"sites would differ silently", "replicate-do-db", "a", true},
		"errors skipped": {"sites would differ silently", "slave_skip_errors", "all", true},
		"durability":     {"acknowledged writes would be lost", "sync_binlog", "0", true},
		"persisted":      {"SET PERSIST would outlive the fence", "persisted_globals_load", "ON", true},
		"admin":          {"the operator's way in", "admin-port", "1", true},
		"no grants":      {"nobody could be kept out", "skip-grant-tables", "", true},
		"line break":     {"a second setting in the value", "sql_mode", "ANSI\nsuper_read_only=OFF", true},
		"include":        {"not a setting", "!includedir", "/tmp", true},
		"section":        {"not a setting", "[mysqld]", "", true},
		"small packet":   {"a transaction could not be received", "max_allowed_packet", "16M", true},
		"odd packet":     {"what cannot be read counts as small", "max_allowed_packet", "lots", true},
		"large packet":   {"more is fine", "max_allowed_packet", "1G", false},
		"packet bytes":   {"more is fine", "max_allowed_packet", "67108864", false},
		"group":          {"another way to replicate", "group_replication_start_on_boot", "ON", true},

		"raw log":            {"passwords of users in clear text", "log_raw", "ON", true},
		"general log file":   {"could overwrite the sidecar's record of epochs (I5)", "general_log_file", "/var/lib/mysql/mfg/statement.json", true},
		"slow log file":      {"a file of the user's choice", "slow-query-log-file", "/run/mfg/x", true},
		"general log":        {"it goes where the operator says", "general_log", "ON", false},
		"error log":          {"a file of the user's choice", "log_error", "/var/lib/mysql/mfg/epoch", true},
		"log sinks":          {"loads components", "log_error_services", "log_sink_json", true},
		"init connect":       {"SQL with the rights of all who connect", "init_connect", "CREATE USER x", true},
		"mandatory roles":    {"every account would have them", "mandatory_roles", "admin", true},
		"roles on login":     {"rights that nobody asked for", "activate_all_roles_on_login", "ON", true},
		"event errors":       {"commits would go on without a binary log (I2)", "binlog_error_action", "IGNORE_ERROR", true},
		"idempotent":         {"sites would differ silently", "replica_exec_mode", "IDEMPOTENT", true},
		"old idempotent":     {"sites would differ silently", "slave_exec_mode", "IDEMPOTENT", true},
		"doublewrite":        {"a torn page after a crash", "innodb_doublewrite", "OFF", true},
		"skip doublewrite":   {"a torn page after a crash", "skip_innodb_doublewrite", "", true},
		"no sync":            {"acknowledged writes would be lost", "innodb_flush_method", "nosync", true},
		"no sync by number":  {"acknowledged writes would be lost", "innodb_flush_method", "3", true},
		"quoted":             {"mysqld takes quotes off", "innodb_flush_method", `"nosync"`, true},
		"direct":             {"the usual way", "innodb_flush_method", "O_DIRECT", false},
		"temp file":          {"is made anew at every start, over whatever is there", "innodb_temp_data_file_path", "mysql.ibd:12M:autoextend", true},
		"temp size":          {"a bound is the user's", "innodb_temp_data_file_path", "ibtmp1:12M:autoextend:max:5G", false},
		"other engine":       {"rows would be gone after a clone", "default_storage_engine", "MyISAM", true},
		"threads unseen":     {"the fence could not cut sessions that it does not see", "performance_schema_max_thread_instances", "0", true},
		"classes unseen":     {"the fence could not cut sessions that it does not see", "performance-schema-max-thread-classes", "0", true},
		"one thread":         {"the sidecar could not get in", "thread_handling", "no-threads", true},
		"compression":        {"the operator speaks without", "protocol_compression_algorithms", "zlib", true},
		"password lifetime":  {"the operator's own password would end", "default_password_lifetime", "1", true},
		"storage format":     {"the operator's own password would have to be changed", "caching_sha2_password_enforce_storage_format", "ON", true},
		"no tls":             {"an empty list switches TLS off", "tls_version", "", true},
		"newer tls":          {"stricter is fine", "tls_version", "TLSv1.3", false},
		"revokes back":       {"gives back what was revoked", "skip-partial-revokes", "", true},
		"revokes":            {"stricter is fine", "partial_revokes", "ON", false},
		"dictionary":         {"a file of the user's choice", "validate_password.dictionary_file", "/etc/passwd", true},
		"plugin":             {"runs code", "plugin-load-add", "x.so", true},
		"early plugin":       {"runs code", "early-plugin-load", "x.so", true},
		"loose plugin":       {"mysqld strips loose_", "loose_plugin_load", "x.so", true},
		"abbreviated path":   {"mysqld takes a unique beginning", "general_log_f", "/x", true},
		"abbreviated loose":  {"mysqld takes a unique beginning after loose_ too", "loose-init-con", "SELECT 1", true},
		"abbreviated number": {"written in full, it would be passed on", "max_connectio", "5", true},
		"unknown":            {"nobody has thought about it", "brand_new_setting", "1", true},
		"unknown loose":      {"nobody has thought about it", "loose_brand_new_setting", "1", true},
		"core":               {"keys in a file", "core-file", "", true},
		"federated":          {"reaches servers of others", "federated", "ON", true},
		"xa":                 {"how prepared transactions are replicated", "xa_detach_on_prepare", "OFF", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := render.IgnoredKeys(input(conf(tt.key, tt.value)))
			if (len(got) == 1) != tt.ignored {
				t.Errorf("%s: %s=%q: %v", tt.reason, tt.key, tt.value, got)
			}
			text := render.ConfigMap(input(conf(tt.key, tt.value)), input().Group.Spec.Sites[0]).Data[render.ConfigKeyMyCnf]
			_, mine, _ := strings.Cut(text, "# From spec.mysqlConf.\n")
			mine, _, _ = strings.Cut(mine, "\n# Owned")
			if (mine == "") != tt.ignored {
				t.Errorf("%s: the option file has\n%s", tt.reason, mine)
			}
		})
	}
}

// The operator's lines come last, so that even a spelling that nobody thought of cannot win.
func TestOwnedSettingsComeLast(t *testing.T) {
	text := render.ConfigMap(input(conf("max_connections", "500")), input().Group.Spec.Sites[0]).Data[render.ConfigKeyMyCnf]
	if strings.Index(text, "max_connections=") > strings.Index(text, "super_read_only=") {
		t.Errorf("order:\n%s", text)
	}
}

func TestServerID(t *testing.T) {
	id := func(site string, sites ...string) string {
		in := input(func(in *render.Input) {
			in.Group.Spec.Sites = []v1alpha1.Site{{Name: site}}
			for _, s := range sites {
				in.Group.Spec.Sites = append(in.Group.Spec.Sites, v1alpha1.Site{Name: s})
			}
		})
		return settings(t, in)["server_id"]
	}
	if id("paris", "rome") != id("paris", "athens", "berlin", "rome") {
		t.Error("a new site changes the server_id of another")
	}
	seen := map[string]bool{}
	for _, s := range []string{"a", "b", "c", "d", "paris", "rome"} {
		n := id(s, "x")
		if n == "" || n == "0" || seen[n] {
			t.Errorf("server_id %q of %s", n, s)
		}
		seen[n] = true
	}
}

func TestPasswordsAreRedacted(t *testing.T) {
	p := render.Passwords{Operator: "geheim"}
	secret := render.AccountsSecret(input(), render.Passwords{Operator: "o", Replication: "r", Sidecar: "s", Clone: "c"})
	if strings.Contains(p.String()+p.GoString(), "geheim") {
		t.Error("a password prints")
	}
	for name, password := range map[string]string{"operator": "o", "replication": "r", "sidecar": "s", "clone": "c"} {
		if string(secret.Data[name]) != password || string(secret.Data[name+v1alpha1.PasswordKnown]) != password {
			t.Errorf("the password of %s is not there twice", name)
		}
	}
	if err := render.Accounts(secret); err != nil {
		t.Errorf("read back: %v", err)
	}
	delete(secret.Data, "clone")
	if err := render.Accounts(secret); err != nil {
		t.Errorf("one that the operator has a copy of is not lost: %v", err)
	}
	delete(secret.Data, "clone"+v1alpha1.PasswordKnown)
	if err := render.Accounts(secret); err == nil {
		t.Error("an incomplete Secret was accepted")
	}
}
