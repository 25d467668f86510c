// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// The transcripts in testdata tell stories in domain words:
//
//	site NAME ...             add sites with caches that have no pod yet
//	mysql NAME epoch=N [KIND [done]] what MySQL's failover has decided; with a kind (Planned, Emergency) the role moves right now, or has moved
//	route SITE                the Service for applications names a site; route labels: it follows the labels; route ?: it leads nowhere
//	see NAME WORD ...         what is seen of a cache from now on: pod, gone, silent, full (it refuses the operator for that), crowded (so that it
//	                          would refuse another client), crowded=no, master, replica=NAME, down, syncing, loading, failing-over,
//	                          run=R, keys=N, offset=N, leaving=WHY, removed
//	status active=NAME run=R  what status.cache says
//	ask NAME / withdraw       a person asks for a master, or takes that back
//	hold WHY / release        the group is paused, or no longer
//	budget D                  of an emergency
//	hang TEXT                 actions that begin with the text have no effect and fail from now on; without a text all work again
//	restart                   the operator restarts: what it remembers is gone
//	tick D                    time passes, one look is decided, persisted and performed
//
// What is performed has its effect on what is seen: a take-over changes roles, labels stand.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "rapid") {
			return // failing draws that rapid kept
		}
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for line := range strings.Lines(d.Cmd + "\n" + d.Input) {
				words := strings.Fields(line)
				if len(words) == 0 || words[0] == "do" || strings.HasPrefix(words[0], "#") {
					continue
				}
				out.WriteString(w.command(t, words))
			}
			return out.String()
		})
	})
}

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a group with caches that do as they are told.
type world struct {
	s    Snapshot
	m    Memory
	hang string
}

func newWorld() *world {
	return &world{s: Snapshot{Now: start, Policy: Policy{EmergencyBudget: 3 * time.Second}}}
}

func (w *world) pod(site string) *Pod {
	for i := range w.s.Pods {
		if w.s.Pods[i].Site == site {
			return &w.s.Pods[i]
		}
	}
	panic("no site " + site)
}

func (w *world) command(t *testing.T, words []string) string {
	t.Helper()
	rest := words[1:]
	switch words[0] {
	case "site":
		for _, name := range rest {
			w.s.Pods = append(w.s.Pods, Pod{Site: name})
		}
	case "mysql":
		from := w.s.MySQL.Active
		w.s.MySQL = MySQL{Active: rest[0], Epoch: number64(t, rest[1])}
		if len(rest) > 2 {
			w.s.MySQL.Moving, w.s.MySQL.Kind = len(rest) == 3, v1alpha1.FailoverKind(rest[2])
		}
		if w.s.MySQL.Moving {
			w.s.MySQL.From = from
		}
	case "see":
		for _, word := range rest[1:] {
			w.see(t, w.pod(rest[0]), word)
		}
	case "status":
		for _, word := range rest {
			if run, is := strings.CutPrefix(word, "run="); is {
				w.s.Status.ActiveRun = run
			} else {
				w.s.Status.ActiveSite = strings.TrimPrefix(word, "active=")
			}
		}
	case "route":
		w.s.Route = strings.TrimPrefix(rest[0], "labels")
	case "ask":
		w.s.Request = &Request{Site: rest[0], ID: "1"}
	case "withdraw":
		w.s.Request = nil
	case "hold", "release":
		w.s.Policy.Held = strings.Join(rest, " ")
	case "budget":
		w.s.Policy.EmergencyBudget = duration(t, rest[0])
	case "hang":
		w.hang = strings.Join(rest, " ")
	case "restart":
		w.m = Memory{}
	case "tick":
		return w.tick(t, duration(t, rest[0]))
	default:
		t.Fatalf("unknown command %q", words[0])
	}
	return ""
}

func (w *world) see(t *testing.T, p *Pod, word string) {
	t.Helper()
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "pod":
		*p = Pod{Site: p.Site, Exists: true}
	case "gone":
		*p = Pod{Site: p.Site}
	case "silent":
		p.Reachable, p.Full = false, false
	case "full":
		p.Reachable, p.Full = false, true
	case "crowded":
		p.Reachable, p.Full = true, value != "no"
	case "master":
		p.Exists, p.Reachable, p.Role, p.Following, p.Linked = true, true, v1alpha1.CacheMaster, "", false
		p.FailingOver, p.Loading, p.Full = false, false, false
	case "replica":
		p.Exists, p.Reachable, p.Role, p.Following, p.Linked = true, true, v1alpha1.CacheReplica, value, true
		p.FailingOver, p.Loading, p.Full = false, false, false
	case "down":
		p.Linked = false
	case "syncing":
		p.Syncing = value != "no"
	case "loading":
		p.Loading = true
	case "failing-over":
		p.FailingOver = true
	case "run":
		p.Run = value
	case "keys":
		p.Keys = number64(t, word)
	case "offset":
		p.Offset = number64(t, word)
	case "leaving":
		p.Leaving = value
	case "removed":
		p.Removed = true
	default:
		t.Fatalf("unknown word %q", word)
	}
}

func (w *world) tick(t *testing.T, d time.Duration) string {
	t.Helper()
	w.s.Now = w.s.Now.Add(d)
	got := Decide(w.s, w.m)
	if err := got.Check(w.s); err != nil {
		t.Fatalf("%s: %v", got.describe(w.s), err)
	}
	text := got.describe(w.s)
	w.m, w.s.Status = got.Memory, got.Status
	if got.Answer != nil {
		w.s.Request = nil
	}
	for _, a := range got.Actions {
		if w.hang != "" && strings.HasPrefix(a.String(), w.hang) {
			return text + "       ! " + a.String() + " fails\n"
		}
		w.act(a)
	}
	return text
}

// act has an action take its effect.
func (w *world) act(action Action) {
	switch a := action.(type) {
	case TrafficOff:
		w.pod(a.Site).Traffic, w.pod(a.Site).TrafficOffAt = false, w.s.Now
	case TrafficOn:
		p := w.pod(a.Site)
		p.Traffic, p.RoleLabel, p.TrafficOnAt = true, v1alpha1.CacheMaster, w.s.Now
	case Route:
		w.s.Route = a.Site
	case TakeOver:
		from, to := w.pod(a.From), w.pod(a.To)
		to.Role, to.Following, to.Linked, to.Keys, to.Offset = v1alpha1.CacheMaster, "", false, from.Keys, from.Offset
		from.Role, from.Following, from.Linked = v1alpha1.CacheReplica, a.To, true
	case Promote:
		p := w.pod(a.Site)
		p.Role, p.Following, p.Linked, p.FailingOver = v1alpha1.CacheMaster, "", false, false
	case Follow:
		p, m := w.pod(a.Site), w.pod(a.Master)
		p.Role, p.Following, p.Linked, p.FailingOver = v1alpha1.CacheReplica, a.Master, true, false
		p.Keys, p.Offset = m.Keys, m.Offset
	case CutClients:
		w.pod(a.Site).CutAt = w.s.Now
	case Label:
		w.pod(a.Site).RoleLabel = a.Role
	}
}

// describe is a decision as the transcripts show it.
func (d Decision) describe(s Snapshot) string {
	var out strings.Builder
	word := "not ready"
	if d.Ready {
		word = "ready"
	}
	if d.Keep {
		word = "as before"
	}
	fmt.Fprintf(&out, "%5.1fs %s %s: %s\n", s.Now.Sub(start).Seconds(), word, d.Reason, d.Message)
	if d.Persist {
		fmt.Fprintf(&out, "       persist active %s", orNone(d.Status.ActiveSite))
		if t := d.Status.Transition; t != nil {
			fmt.Fprintf(&out, " %s %s -> %s by %s %s", t.Kind, orNone(t.From), t.To, t.Method, t.Reason)
		}
		out.WriteString("\n")
	}
	for _, e := range d.Events {
		fmt.Fprintf(&out, "       event %s: %s\n", e.Reason, e.Message)
	}
	if a := d.Answer; a != nil {
		fmt.Fprintf(&out, "       answer done=%t failed=%t %s: %s\n", a.Done, a.Failed, a.Reason, a.Message)
	}
	for _, a := range d.Actions {
		fmt.Fprintf(&out, "       %s\n", a)
	}
	for _, y := range d.Synced {
		if !y.Yes {
			fmt.Fprintf(&out, "       not synced %s\n", y.Why)
		}
	}
	return strings.ReplaceAll(out.String(), " \n", "\n")
}

func orNone(site string) string {
	if site == "" {
		return "nobody"
	}
	return site
}

func number64(t *testing.T, word string) int64 {
	t.Helper()
	_, value, _ := strings.Cut(word, "=")
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func duration(t *testing.T, word string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(word)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
