// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/lineage"
)

// The transcripts in testdata tell stories in domain words:
//
//	site NAME [dr-only] [prio=N] [fresh]    add a site (provisioned unless fresh)
//	policy KEY=VALUE ...                    mode, threshold, crashGrace, cooldown, drain, lease, fence, maxLost, force
//	active NAME epoch=N                     what status says
//	ask NAME / withdraw / abort             a person asks for a planned failover, takes the annotations off, gives it up
//	see NAME WORD ...                       what is seen of a site from now on: open, fenced, mysqld-down, silent, ended,
//	                                        out-of-service, exec=A:1-10, recv=A:1-12, follows=NAME, busy=Clone,
//	                                        epoch=N (what its sidecar acknowledged; "now" follows the statement),
//	                                        names=NAME (the site that this epoch names, as its sidecar says),
//	                                        cache=WHY (its cache has not caught up; "" ends it),
//	                                        lag=SECONDS, leaving=WHY ("" ends it), at=A:1-10 (what its sidecar reports),
//	                                        vouched=NAME@AGE, lease=D (what its pod was started with),
//	                                        mysqld-tries, silent-for=D (since when its sidecar saw MySQL answer nobody),
//	                                        applier=ERROR (it has stopped with that; "" ends it),
//	                                        keyring=escrowed, behind, unreadable or sealed,
//	                                        volume=DiskFull, ... (its last try to write to its volume), or Done
//	answered NAME AGE / permitted NAME AGE  when this operator last answered or permitted a site
//	sql-fenced NAME                         the operator read the fence back just now
//	remove NAME                             the site leaves the spec
//	tick D                                  time passes, one poll is decided and its status persisted
//
// A set is written A:1-10, where A stands for a server's UUID.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "rapid") {
			return // failing draws that rapid kept
		}
		st := newStory()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return st.run(t, d) })
	})
}

type story struct {
	s    Snapshot
	m    Memory
	auto map[string]bool // sites that acknowledge every epoch at once
}

func newStory() *story {
	return &story{m: Memory{}, auto: map[string]bool{}, s: factstest.Base()}
}

func (st *story) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	for line := range strings.Lines(d.Cmd + "\n" + d.Input) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "do" || strings.HasPrefix(words[0], "#") {
			continue
		}
		out.WriteString(st.command(t, words))
	}
	return out.String()
}

func (st *story) command(t *testing.T, words []string) string {
	rest := words[1:]
	switch words[0] {
	case "site":
		st.addSite(rest)
	case "policy":
		st.policy(t, rest)
	case "active":
		st.s.Status.ActiveSite = rest[0]
		st.s.Status.Epoch = number(t, rest[1])
	case "see":
		for _, w := range rest[1:] {
			st.see(t, st.site(rest[0]), w)
		}
	case "answered":
		st.s.Answered[rest[0]] = st.s.Now.Add(-duration(t, rest[1]))
	case "permitted":
		st.s.Permitted[rest[0]] = st.s.Now.Add(-duration(t, rest[1]))
	case "leader":
		st.s.LeaderSince = st.s.Now.Add(-duration(t, rest[0]))
	case "sql-fenced":
		st.m.At(rest[0]).FencedBySQL = SQLFence{Epoch: st.s.Status.Epoch, At: st.s.Now}
	case "ask":
		st.s.Policy.PlannedTo = rest[0]
	case "abort":
		st.s.Policy.AbortPlanned = true
	case "withdraw":
		st.s.Policy.PlannedTo, st.s.Policy.AbortPlanned = "", false
	case "remove":
		st.site(rest[0]).Removed = true
	case "forget":
		st.m = Memory{}
	case "tick":
		return st.tick(duration(t, rest[0]))
	default:
		t.Fatalf("unknown command %q", words[0])
	}
	return ""
}

func (st *story) addSite(words []string) {
	site := Site{Name: words[0], Role: v1alpha1.PrimaryCandidate, Provisioned: true}
	for _, w := range words[1:] {
		switch {
		case w == "dr-only":
			site.Role = v1alpha1.DROnly
		case w == "fresh":
			site.Provisioned = false
		case strings.HasPrefix(w, "prio="):
			n, _ := strconv.Atoi(w[5:])
			site.Priority = int32(n)
		}
	}
	st.auto[site.Name] = true
	st.s.Sites = append(st.s.Sites, site)
	slices.SortFunc(st.s.Sites, func(a, b Site) int { return strings.Compare(a.Name, b.Name) })
}

func (st *story) site(name string) *Site {
	for i := range st.s.Sites {
		if st.s.Sites[i].Name == name {
			return &st.s.Sites[i]
		}
	}
	panic("no site " + name)
}

func (st *story) policy(t *testing.T, words []string) {
	p := &st.s.Policy
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "mode":
			p.Mode = v1alpha1.FailoverMode(value)
		case "threshold":
			p.Threshold = int(number(t, w))
		case "maxLost":
			n := number(t, w)
			p.MaxLost = &n
		case "force":
			p.ForceTo = value
		case "paused":
			p.PausedUntil = st.s.Now.Add(duration(t, value))
		case "cooldown":
			p.Cooldown = duration(t, value)
		case "lease":
			p.LeaseTimeout = duration(t, value)
		case "crashGrace":
			p.CrashGrace = duration(t, value)
		case "cacheWait":
			p.Cache.SyncTimeout = duration(t, value)
		case "cacheRefuses":
			p.Cache.Refuses = true
		default:
			t.Fatalf("unknown policy %q", w)
		}
	}
}

func (st *story) see(t *testing.T, site *Site, word string) {
	key, value, _ := strings.Cut(word, "=")
	r := &site.Sidecar.Report
	r.Site, r.UptimeMillis = site.Name, time.Hour.Milliseconds()
	up := func(writable bool) {
		site.Sidecar.Answered, site.MySQL.Direct = true, true
		site.MySQL.SuperReadOnly, site.MySQL.ReadOnly = !writable, !writable
		r.MysqldRunning, r.Answered, r.Writable, r.SuperReadOnly = true, true, writable, !writable
	}
	switch key {
	case "open":
		up(true)
	case "fenced":
		up(false)
	case "mysqld-down":
		site.Sidecar.Answered, site.MySQL.Direct = true, false
		r.MysqldRunning, r.Answered, r.Writable, r.SuperReadOnly = false, false, false, false
	case "mysqld-tries": // it runs for a moment and answers nobody
		site.Sidecar.Answered, site.MySQL.Direct = true, false
		r.MysqldRunning, r.Answered, r.Writable, r.SuperReadOnly, r.Fenced = true, false, false, false, true
	case "silent-for":
		r.SilentMillis = duration(t, value).Milliseconds()
	case "silent":
		site.Sidecar.Answered, site.MySQL.Direct = false, false
	case "sidecar-silent":
		site.Sidecar.Answered = false
	case "ended":
		site.Pod.Ended = true
	case "out-of-service":
		site.Pod.OutOfService = true
	case "exec":
		site.MySQL.Executed = factstest.Set(value)
	case "recv":
		site.MySQL.Retrieved = factstest.Set(value)
	case "follows":
		site.MySQL.ReplicaHost, site.MySQL.ReceiverStopped = value, value == ""
		site.MySQL.ReplicaOf, site.MySQL.IORunning, site.MySQL.SQLRunning = value, value != "", value != ""
	case "applier":
		site.MySQL.SQLRunning, site.MySQL.SQLError = value == "", strings.ReplaceAll(value, "_", " ")
	case "busy":
		site.Busy = value
	case "other-volume":
		site.OtherVolume = true
	case "noted":
		site.Noted = true
	case "no-clone-plugin":
		site.MySQL.NoClone = true
	case "half-cloned":
		site.MySQL.HalfCloned = true
	case "no-pod":
		site.Pod.Exists = false
	case "indirect":
		site.MySQL = MySQL{SuperReadOnly: true, ReadOnly: true, Executed: site.MySQL.Executed}
	case "lag":
		lag, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("lag %q: %v", value, err)
		}
		site.MySQL.LagSeconds = &lag
	case "leaving":
		site.Leaving = strings.ReplaceAll(value, "_", " ")
	case "cache":
		site.CacheBehind = strings.ReplaceAll(value, "_", " ")
	case "volume": // what the sidecar of a closed site found when it wrote to its data volume; DiskFull, or Done
		if r.VolumeProbe = (&wire.VolumeProbe{Outcome: wire.WriteFails, Reason: value, ForMillis: 60_000}); value == "Done" {
			r.VolumeProbe = &wire.VolumeProbe{Outcome: wire.WriteDone}
		}
	case "at":
		r.GTIDExecuted = factstest.Set(value).String()
	case "uuid":
		site.MySQL.ServerUUID = value
	case "keyring":
		r.Keyring = factstest.Keyring(value)
	case "lease":
		site.Pod.Lease = duration(t, value)
	case "epoch":
		st.auto[site.Name] = value == "now"
		if value != "now" {
			r.Epoch = number(t, word)
		}
	case "names":
		r.ActiveSite = value
	case "vouched":
		other, age, _ := strings.Cut(value, "@")
		r.Vouched = []wire.Vouch{{Site: other, AgeMillis: duration(t, age).Milliseconds()}}
	default:
		t.Fatalf("unknown sight %q", word)
	}
}

func (st *story) tick(after time.Duration) string {
	st.s.Now = st.s.Now.Add(after)
	for i := range st.s.Sites {
		site := &st.s.Sites[i]
		site.Sidecar.At = st.s.Now
		if st.auto[site.Name] && site.Sidecar.Answered {
			site.Sidecar.Report.Epoch = st.s.Status.Epoch
		}
		if site.Sidecar.Report.GTIDExecuted == "" || st.auto[site.Name] && site.MySQL.Direct {
			site.Sidecar.Report.GTIDExecuted = site.MySQL.Executed.String()
		}
		for j := range site.Sidecar.Report.Vouched {
			site.Sidecar.Report.Vouched[j].AgeMillis += after.Milliseconds()
		}
	}
	before := st.s.Status
	d := Decide(st.s, st.m)
	st.m = d.Memory
	if d.Persist {
		st.s.Status = d.Status
	}
	for _, e := range d.Effects {
		switch e := e.(type) {
		case Announce:
			st.drain(e.Drain)
		case Drain:
			st.drain(e.Site)
		}
	}
	return describe(st.s.Now, before, d)
}

// drain models that the receiver of a reachable site stops when it is asked to.
func (st *story) drain(name string) {
	if name != "" && st.site(name).MySQL.Direct {
		st.site(name).MySQL.ReceiverStopped, st.site(name).MySQL.IORunning = true, false
	}
}

func describe(now time.Time, before Durable, d Decision) string {
	hold := ""
	if d.Hold {
		hold = " hold"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%5.1fs %s %s %s%s: %s\n", now.Sub(factstest.Start).Seconds(), d.Topology, d.Verdict, d.Reason, hold, factstest.Short(d.Message))
	if d.Persist {
		fmt.Fprintf(&b, "       persist epoch %d active %s", d.Status.Epoch, d.Status.ActiveSite)
		if t := d.Status.Transition; t != nil {
			fmt.Fprintf(&b, " %s %s %s->%s", t.Kind, t.Step, t.From, t.To)
		}
		if len(d.Status.Records) > len(before.Records) || lineage.RecordsDiffer(d.Status.Records, before.Records) {
			r := d.Status.Records[0]
			fmt.Fprintf(&b, " record lost=%d exact=%t", r.LostTransactions, r.LossExact)
		}
		if p := d.Status.Planned; p != nil && (before.Planned == nil || !reflect.DeepEqual(*p, *before.Planned)) {
			fmt.Fprintf(&b, "\n       planned %s to %s %s %s answered=%t: %s", p.Cause, p.To, p.Phase, p.Reason, p.Answered, factstest.Short(p.Message))
		}
		b.WriteString("\n")
	}
	for _, e := range d.Effects {
		fmt.Fprintf(&b, "       %s\n", e)
	}
	if d.Stays != nil {
		fmt.Fprintf(&b, "       stays on %s (%s) %s: %s\n", d.Stays.Site, d.Stays.Leaving, d.Stays.Reason, factstest.Short(d.Stays.Message))
	}
	states := make([]string, 0, len(d.Views))
	for _, v := range d.Views {
		state := fmt.Sprintf("%s=%s", v.Name, v.State)
		if v.Healthy {
			state += "+"
		}
		states = append(states, state)
	}
	fmt.Fprintf(&b, "       %s\n", strings.Join(states, " "))
	return b.String()
}

func number(t *testing.T, word string) int64 {
	_, value, _ := strings.Cut(word, "=")
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		t.Fatalf("number in %q: %v", word, err)
	}
	return n
}

func duration(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("duration %q: %v", text, err)
	}
	return d
}
