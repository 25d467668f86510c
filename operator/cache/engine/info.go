// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Info is what an engine says about itself.
type Info struct {
	// Run is the engine's own name of its process, at most longestRun characters of it; empty if it has none.
	Run string
	// Uptime is for how many seconds its process has run; 0 if it does not say.
	Uptime     int64
	Version    string
	Role       v1alpha1.CacheRole
	MasterHost string
	// LinkUp and Syncing are about a replica.
	LinkUp, Syncing bool
	// FailingOver is true while it hands over its role, Demoted if it has already let go of it.
	FailingOver, Demoted bool
	Loading              bool
	// Offset counts the bytes of changes that it has written or received; 0 if it does not say.
	Offset     int64
	Keys       int64
	UsedMemory int64
	Replicas   []Replica
	// Full is true if it has as many clients as it may have: it refuses the next one.
	Full bool
}

// Replica is a replica that a master knows.
type Replica struct {
	Host   string
	Port   int
	Online bool
	Offset int64
	// Lag counts changes that it has not confirmed, at Dragonfly. Valkey's is in seconds, and not read.
	Lag int64
}

// LagOf is how many changes the replica known by one of these names has not confirmed; 0 if that is not said.
func (i Info) LagOf(hosts []string) int64 {
	r, _ := i.ReplicaOf(hosts)
	return r.Lag
}

// parse reads any engine's answer to INFO.
func parse(text string) Info {
	f := map[string]string{}
	var out Info
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || len(f) > 2000 {
			continue
		}
		f[key] = value
		if number, is := strings.CutPrefix(key, "slave"); is && isNumber(number) && len(out.Replicas) < 64 {
			out.Replicas = append(out.Replicas, replica(value))
		}
		if number, is := strings.CutPrefix(key, "db"); is && isNumber(number) {
			out.Keys += integer(fields(value)["keys"])
		}
	}
	out.Run, out.Loading = runOf(f["run_id"]), f["loading"] == "1"
	out.Version, out.Uptime = f["redis_version"], integer(f["uptime_in_seconds"])
	for _, key := range []string{"valkey_version", "dragonfly_version"} {
		if f[key] != "" {
			out.Version = f[key]
		}
	}
	out.UsedMemory, out.Full = integer(f["used_memory"]), isFull(f)
	dragonfly := f["dragonfly_version"] != ""
	for i := range out.Replicas {
		if !dragonfly {
			out.Replicas[i].Lag = 0
		}
	}
	out.roles(f, dragonfly)
	return out
}

// isFull is true if all places for clients are taken. Replicas need places, too, and Valkey counts them apart from other clients.
func isFull(f map[string]string) bool {
	most := integer(cmp.Or(f["maxclients"], f["max_clients"]))
	return most > 0 && integer(f["connected_clients"])+integer(f["connected_slaves"]) >= most
}

// longestRun bounds what an engine may call its process. The engines use 40 characters. The operator writes the name into the status of
// the group, and MySQL's failover writes that object, too.
const longestRun = 64

// runOf returns the visible ASCII characters of a name, as many of them as status may hold.
func runOf(name string) string {
	var out strings.Builder
	for i := 0; i < len(name) && out.Len() < longestRun; i++ {
		if c := name[i]; c > ' ' && c < 0x7f {
			out.WriteByte(c)
		}
	}
	return out.String()
}

// roles reads the part about replication.
func (i *Info) roles(f map[string]string, dragonfly bool) {
	state := f["master_failover_state"]
	i.FailingOver, i.Demoted = state != "" && state != "no-failover", state == "failover-in-progress"
	switch f["role"] {
	case "master":
		i.Role, i.Offset = v1alpha1.CacheMaster, integer(f["master_repl_offset"])
	case "slave", "replica":
		i.Role, i.MasterHost = v1alpha1.CacheReplica, f["master_host"]
		i.LinkUp, i.Syncing = f["master_link_status"] == "up", f["master_sync_in_progress"] == "1"
		i.Offset = integer(f["slave_repl_offset"])
		if _, stable := f["slave_repl_offset"]; dragonfly && !stable && saysOffsets(f["dragonfly_version"]) {
			// Its link is up before it has the first copy, and the offset is there only after it (its pull request 3596).
			i.Syncing = i.Syncing || i.LinkUp
		}
	}
}

// replica reads a line such as ip=10.0.0.1,port=6379,state=online,offset=14,lag=0.
func replica(value string) Replica {
	f := fields(value)
	// Valkey says online, Dragonfly stable_sync.
	return Replica{Host: f["ip"], Port: int(integer(f["port"])), Online: f["state"] == "online" || f["state"] == "stable_sync",
		Offset: integer(f["offset"]), Lag: max(0, integer(f["lag"]))}
}

// saysOffsets is true for a Dragonfly whose replicas say how far they are: from 1.22 on. One without a number counts as newer.
func saysOffsets(version string) bool {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "df-v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	if !isNumber(major) || !isNumber(minor) {
		return true
	}
	return integer(major) > 1 || integer(minor) >= 22
}

func fields(value string) map[string]string {
	out := map[string]string{}
	for pair := range strings.SplitSeq(value, ",") {
		if key, v, ok := strings.Cut(pair, "="); ok {
			out[key] = v
		}
	}
	return out
}

func integer(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0 // not said
	}
	return n
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// ReplicaOf finds the replica that is known by one of these names, those of its site.
func (i Info) ReplicaOf(hosts []string) (Replica, bool) {
	at := slices.IndexFunc(i.Replicas, func(r Replica) bool {
		return slices.ContainsFunc(hosts, func(h string) bool { return SameHost(h, r.Host) })
	})
	if at < 0 {
		return Replica{}, false
	}
	return i.Replicas[at], true
}

// SameHost is true for two ways to write one host.
func SameHost(a, b string) bool {
	if x, y := net.ParseIP(a), net.ParseIP(b); x != nil && y != nil {
		return x.Equal(y)
	}
	return a != "" && strings.EqualFold(strings.TrimSuffix(a, "."), strings.TrimSuffix(b, "."))
}
