// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Keys of the cache's ConfigMap and Secret, which are the names of the files in the pod.
const (
	cacheKeyValkey    = "valkey.conf"
	cacheKeyDragonfly = "dragonfly.flags"
	cacheKeyAuth      = "auth.conf"
	// CacheKeyKnown is the operator's own copy of the password: where it differs, a person has set a new one.
	CacheKeyKnown = v1alpha1.CachePassword + v1alpha1.PasswordKnown
)

// dragonflyThread is the memory without which Dragonfly starts no thread.
const (
	dragonflyThread  = 256 << 20
	dragonflyThreads = 8
)

func cacheArgs(engine v1alpha1.CacheEngine) []string {
	if engine == v1alpha1.CacheValkey {
		return []string{CacheConfigDir + "/" + cacheKeyValkey}
	}
	return []string{"--flagfile=" + CacheConfigDir + "/" + cacheKeyDragonfly + "," + CacheAuthDir + "/" + cacheKeyAuth}
}

// cacheAuth is the file with the password that the engine includes. It is the same for clients and for replicas. Passwords are letters,
// digits and a few signs that need no quotes: ValidCachePassword.
func cacheAuth(engine v1alpha1.CacheEngine, password string) string {
	if engine == v1alpha1.CacheValkey {
		return "requirepass " + password + "\nmasterauth " + password + "\n"
	}
	return "--requirepass=" + password + "\n--masterauth=" + password + "\n"
}

// ValidCachePassword says whether a password is 8 to 128 letters, digits, '-', '_' and '.'.
func ValidCachePassword(password string) bool {
	const signs = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return len(password) >= 8 && len(password) <= 128 && strings.Trim(password, signs) == ""
}

// CacheConfigMap is the engine's configuration, the same for every site. It holds no password.
func CacheConfigMap(in Input) *corev1.ConfigMap {
	key, text := cacheKeyDragonfly, dragonflyFlags(in)
	if in.Group.Spec.Cache.Engine == v1alpha1.CacheValkey {
		key, text = cacheKeyValkey, valkeyConfig(in)
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: in.meta(v1alpha1.CacheConfigName(in.Group.Name), CacheLabels(in.Group.Name)),
		Data:       map[string]string{key: text},
	}
}

// valkeyConfig has the settings of the specification first, those of the operator after them, and the password last: of a setting that
// comes twice the later one counts.
func valkeyConfig(in Input) string {
	spec := in.Group.Spec.Cache
	memory := cacheMemory(spec)
	var b strings.Builder
	// A session has a time to live: when memory is full, those not used for longest make room, and keys that were meant to stay do stay.
	b.WriteString("maxmemory-policy volatile-lru\n")
	passed, _ := cacheSettings(spec)
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		fmt.Fprintf(&b, "%s %s\n", name, quoted(passed[name]))
	}
	own := []string{
		"bind * -::*", "protected-mode no", "daemonize no", "supervised no", `pidfile ""`, `logfile ""`, "dir " + CacheDir,
		"maxmemory " + strconv.FormatInt(memory, 10),
		// The first synchronisation waits for nothing and needs no disk. A later one needs the disk: memory has no room for old and new data.
		"repl-diskless-sync yes", "repl-diskless-sync-delay 0", "repl-diskless-load on-empty-db", "repl-timeout 10", "repl-ping-replica-period 2",
		// One that starts is nobody's master before the operator says so: a master that begins again without its data would have its
		// replicas throw away theirs.
		"replicaof 127.0.0.1 1", "replica-read-only yes", "replica-serve-stale-data yes", "min-replicas-to-write 0", "appendonly no",
		"enable-debug-command no", "enable-module-command no", "enable-protected-configs no",
	}
	if keeps := memory / 8; keeps > 256<<20 {
		// What a large master keeps of its changes for a replica that gets the first copy: half of the room beside the data, for as long as that
		// takes. The engine's 256 MiB, or 64 MiB for a minute, would have it begin the copy again and again; a smaller one has no room for more.
		own = append(own, fmt.Sprintf("client-output-buffer-limit replica %[1]d %[1]d 0", keeps))
	}
	if spec.Storage == nil {
		own = append(own, `save ""`)
	} else {
		// A snapshot a minute, and one at the end. A full volume costs the snapshots, never the writes.
		own = append(own, "save 60 1", "dbfilename dump.rdb", "stop-writes-on-bgsave-error no")
	}
	if CacheTLS(in.Group) {
		own = append(own, "port 0", fmt.Sprintf("tls-port %d", v1alpha1.CachePort), "tls-cert-file "+TLSDir+"/tls.crt",
			"tls-key-file "+TLSDir+"/tls.key", "tls-ca-cert-file "+TLSDir+"/ca.crt", "tls-auth-clients no", "tls-replication yes")
	} else {
		own = append(own, fmt.Sprintf("port %d", v1alpha1.CachePort))
	}
	own = append(own, "include "+CacheAuthDir+"/"+cacheKeyAuth)
	b.WriteString(strings.Join(own, "\n") + "\n")
	return b.String()
}

// quoted is a value as Valkey reads it from its file.
func quoted(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// dragonflyFlags are Dragonfly's flags, one a line. A later one counts.
func dragonflyFlags(in Input) string {
	spec := in.Group.Spec.Cache
	var b strings.Builder
	// Of its two answers to full memory, this one makes room; the other refuses writes.
	b.WriteString("--cache_mode=true\n")
	passed, _ := cacheSettings(spec)
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		fmt.Fprintf(&b, "--%s=%s\n", name, passed[name])
	}
	own := []string{
		fmt.Sprintf("--port=%d", v1alpha1.CachePort), "--logtostderr=true", "--version_check=false", "--dir=" + CacheDir,
		"--primary_port_http_enabled=false", "--maxmemory=" + strconv.FormatInt(cacheMemory(spec), 10),
		"--proactor_threads=" + strconv.FormatInt(dragonflyProactors(spec), 10),
		"--break_replication_on_master_restart=true", // a replica must not throw away what it holds for a master that came back empty
	}
	if spec.Storage == nil {
		own = append(own, "--dbfilename=")
	} else {
		own = append(own, "--dbfilename=dump", "--snapshot_cron=* * * * *")
	}
	if CacheTLS(in.Group) {
		// With an authority to check by, Dragonfly would want a certificate of every client.
		own = append(own, "--tls=true", "--tls_replication=true", "--tls_cert_file="+TLSDir+"/tls.crt", "--tls_key_file="+TLSDir+"/tls.key")
	}
	b.WriteString(strings.Join(own, "\n") + "\n")
	return b.String()
}

// dragonflyProactors is how many threads Dragonfly has: as many as its memory allows, and not more than its processors.
func dragonflyProactors(spec *v1alpha1.CacheSpec) int64 {
	n := min(max(cacheMemory(spec)/dragonflyThread, 1), dragonflyThreads)
	if cpu, set := spec.Resources.Limits[corev1.ResourceCPU]; set {
		n = min(n, max(cpu.Value(), 1)) // Value rounds up
	}
	return n
}
