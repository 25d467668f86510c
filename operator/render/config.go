// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"hash/crc32"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// ConfigKeyMyCnf is the option file in a site's ConfigMap.
const ConfigKeyMyCnf = "my.cnf"

// minPacket is the smallest max_allowed_packet: a transaction that one site could commit and another could not
// receive would stop replication.
const minPacket = 64 << 20

// ConfigMap is the configuration of one site.
func ConfigMap(in Input, site v1alpha1.Site) *corev1.ConfigMap {
	data := map[string]string{ConfigKeyMyCnf: myCnf(in, site)}
	if in.encrypted(site.Name) {
		maps.Copy(data, keyringConfig(in))
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: in.meta(v1alpha1.ConfigName(in.Group.Name, site.Name), SiteLabels(in.Group.Name, site.Name)),
		Data:       data,
	}
}

// myCnf renders the option file. The user's settings come first and the operator's after them: for mysqld the last one
// wins, so that a spelling that normal does not know still cannot override the operator.
func myCnf(in Input, site v1alpha1.Site) string {
	var b strings.Builder
	b.WriteString("# Made by the operator; changes are overwritten. Set spec.mysqlConf of the group instead.\n[mysqld]\n")
	changeable := maps.Clone(defaults)
	maps.Copy(changeable, temporaryDefaults(in, site))
	writeSettings(&b, "Defaults, which spec.mysqlConf may change.", changeable)
	writeSettings(&b, "From spec.mysqlConf.", passedOn(in.Group.Spec.MysqlConf, in.encrypted(site.Name)))
	writeSettings(&b, "Owned by the operator.", ownedSettings(in, site.Name))
	return b.String()
}

func writeSettings(b *strings.Builder, title string, settings map[string]string) {
	fmt.Fprintf(b, "\n# %s\n", title)
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(b, "%s=%s\n", key, settings[key])
	}
}

// passedOn spells settings in small letters: with capitals mysqld does not start.
func passedOn(conf map[string]string, encrypted bool) map[string]string {
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		if ignored(key, conf[key], encrypted) == "" {
			out[strings.ToLower(key)] = conf[key]
		}
	}
	return out
}

// defaults differ from mysqld's own.
var defaults = map[string]string{"replica_parallel_workers": "4", "max_allowed_packet": "64M"}

func ownedSettings(in Input, site string) map[string]string {
	set := map[string]string{
		"server_id": strconv.FormatUint(uint64(serverID(in.Group, site)), 10),
		"datadir":   DataDir,
		"socket":    Socket,
		"pid_file":  runDir + "/mysqld.pid",
		"tmpdir":    tmpDir,
		"port":      "3306",

		"admin_port":                   "33062",
		"create_admin_listener_thread": "ON",
		"skip_name_resolve":            "ON",
		"performance_schema":           "ON",
		"secure_file_priv":             "NULL",
		"loose_mysqlx":                 "OFF",

		// A site starts fenced, whatever happened before.
		"read_only":              "ON",
		"super_read_only":        "ON",
		"skip_replica_start":     "ON",
		"persisted_globals_load": "OFF",
		// XA COMMIT of a transaction prepared before passes super_read_only: nobody comes in before the sidecar looked.
		"offline_mode": "ON",

		"gtid_mode":                      "ON",
		"enforce_gtid_consistency":       "ON",
		"log_bin":                        "binlog",
		"relay_log":                      "relay-bin",
		"log_replica_updates":            "ON",
		"sync_binlog":                    "1",
		"innodb_flush_log_at_trx_commit": "1",
		"innodb_data_file_path":          "ibdata1:12M:autoextend",
		// With a dead source the relay logs may be the only copy: they are kept over a restart.
		"relay_log_recovery": "OFF",
		// Counted in events, of which a small transaction has five: docs/decisions/0007.
		"sync_relay_log":                                 "10",
		"replica_net_timeout":                            "5",
		"replica_preserve_commit_order":                  "ON",
		"plugin_load_add":                                "mysql_clone.so",
		"binlog_rotate_encryption_master_key_at_startup": "OFF",
	}
	if in.Group.TLSMounted() {
		set["require_secure_transport"] = onOff(in.Group.TLSRequired())
		for _, prefix := range []string{"", "loose_clone_"} {
			set[prefix+"ssl_ca"] = TLSDir + "/ca.crt"
			set[prefix+"ssl_cert"] = TLSDir + "/tls.crt"
			set[prefix+"ssl_key"] = TLSDir + "/tls.key"
		}
	}
	if in.encrypted(site) {
		maps.Copy(set, encryptedSettings(in, site))
	}
	return set
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// owned are the settings that the operator sets: every one could open writes, lose transactions, make sites differ, or hide the
// server from the operator.
var owned = func() map[string]bool {
	set := map[string]bool{}
	for key := range ownedSettings(Input{Group: &v1alpha1.MysqlFailoverGroup{
		Spec: v1alpha1.MysqlFailoverGroupSpec{TLS: &v1alpha1.TLSSpec{}},
	}}, "") {
		set[normal(key)] = true
	}
	return set
}()

// ownedEncrypted are those that the operator owns on an encrypted site besides.
var ownedEncrypted = func() map[string]bool {
	set := map[string]bool{}
	for key := range encryptedSettings(Input{Group: &v1alpha1.MysqlFailoverGroup{}}, "") {
		set[normal(key)] = true
	}
	for _, key := range leftAlone {
		set[normal(key)] = true
	}
	return set
}()

var keyPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// ignored says why a setting of the user is not passed on; empty means that it is. What no list has is refused, and so is the
// beginning of a name: mysqld 9.7 does not start with one, and earlier ones took it for the whole.
func ignored(key, value string, encrypted bool) string {
	if !keyPattern.MatchString(key) {
		return "not the name of a setting"
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		// A line break would begin a new line of the option file, and with it any setting.
		return "the value has control characters"
	}
	name := normal(key)
	if owned[name] {
		return "owned by the operator"
	}
	if encrypted && ownedEncrypted[name] {
		return "owned by the operator, see spec.encryptionAtRest"
	}
	if c := refusedIndex.find(name); c != nil {
		return c.Name
	}
	if passedIndex.find(name) == nil {
		return "not among the settings that are passed on; their names are written in full"
	}
	return badValue(name, value)
}

// badValue says what is wrong with the value of a setting that is passed on; empty means nothing.
func badValue(name, value string) string {
	if name == "max_allowed_packet" && bytesOf(value) < minPacket {
		return "below 64M"
	}
	if pattern := valuePatterns[name]; pattern != nil && !pattern.MatchString(strings.TrimSpace(value)) {
		return "not with this value"
	}
	return ""
}

// Ignored is a setting of spec.mysqlConf that is not passed on.
type Ignored struct {
	Key string
	Why string
}

// IgnoredKeys lists the settings of spec.mysqlConf that are not passed on, sorted by key. An encrypted group has more of
// them: Input.Keyrings must be set by then.
func IgnoredKeys(in Input) []Ignored {
	var out []Ignored
	conf := in.Group.Spec.MysqlConf
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		if why := ignored(key, conf[key], len(in.Keyrings) > 0); why != "" {
			out = append(out, Ignored{Key: key, Why: why})
		}
	}
	return out
}

// normal brings the spellings that mysqld takes for the same setting to one: dashes, case, the old words, and the
// prefixes that mysqld strips itself. It takes more for the same than mysqld does, never less.
func normal(key string) string {
	name := strings.ReplaceAll(strings.ToLower(key), "-", "_")
	for {
		short := name
		for _, prefix := range []string{"loose_", "skip_", "disable_", "enable_", "maximum_"} {
			short = strings.TrimPrefix(short, prefix)
		}
		if short == name {
			break
		}
		name = short
	}
	name = strings.ReplaceAll(name, "slave", "replica")
	return strings.ReplaceAll(name, "master", "source")
}

// bytesOf reads a size as mysqld does: digits and one letter of K, M, G. What it cannot read counts as 0.
func bytesOf(value string) int64 {
	value = strings.TrimSpace(value)
	shift := 0
	if n := len(value); n > 0 {
		switch value[n-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
		if shift > 0 {
			value = value[:n-1]
		}
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return n << shift
}

// serverID is the same for a site as long as it keeps its name, wherever it stands in the list.
func serverID(group *v1alpha1.MysqlFailoverGroup, site string) uint32 {
	names := make([]string, 0, len(group.Spec.Sites))
	for _, s := range group.Spec.Sites {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	taken := map[uint32]string{}
	for _, name := range names {
		id := siteHash(group, name, 0)
		for salt := 1; id == 0 || taken[id] != ""; salt++ {
			id = siteHash(group, name, salt)
		}
		taken[id] = name
		if name == site {
			return id
		}
	}
	return siteHash(group, site, 0)
}

func siteHash(group *v1alpha1.MysqlFailoverGroup, site string, salt int) uint32 {
	key := group.Namespace + "/" + group.Name + "/" + site
	if salt > 0 {
		key += "#" + strconv.Itoa(salt)
	}
	return crc32.ChecksumIEEE([]byte(key))
}
