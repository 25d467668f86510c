// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
)

const (
	uuidA = "aaaaaaaa-0000-0000-0000-000000000001"
	uuidB = "bbbbbbbb-0000-0000-0000-000000000002"
)

func set(text string) gtid.Set { return gtid.MustParse(text) }

// fenced and open are servers as the fence leaves them.
func fenced(executed string) mysql.Status {
	return mysql.Status{ReadOnly: true, SuperReadOnly: true, Executed: set(executed)}
}

func open(executed string) mysql.Status { return mysql.Status{Executed: set(executed)} }

func TestExamine(t *testing.T) {
	const history = uuidA + ":1-100"
	with := func(st mysql.Status, change func(*mysql.Status)) mysql.Status {
		change(&st)
		return st
	}
	databases := func(st *mysql.Status) { st.HasDatabases = true }
	purged := with(open(history), func(st *mysql.Status) { st.Purged = set(uuidA + ":1-50") })
	completed := mysql.CloneStatus{State: "Completed"}
	failed := mysql.CloneStatus{State: "Failed", ErrorNo: 3862}
	tests := map[string]struct {
		reason       string
		site, active mysql.Status
		last         mysql.CloneStatus
		want         work.Verdict
	}{
		"new site": {"nothing is lost", fenced(""), open(history), mysql.CloneStatus{}, work.VerdictClone},
		"new group": {
			"also when the active site has written nothing yet", fenced(""), open(""), mysql.CloneStatus{}, work.VerdictClone,
		},
		"cloned": {"it has the data", fenced(history), open(history), completed, work.VerdictAdopt},
		"cloned from an empty site": {
			"an empty set after a clone is the whole history", fenced(""), open(""), completed, work.VerdictAdopt,
		},
		"clone was long": {"the active site went on meanwhile", fenced(uuidA + ":1-90"), open(history), completed, work.VerdictAdopt},
		"kept volume":    {"an earlier member goes on", fenced(uuidA + ":1-90"), open(history), mysql.CloneStatus{}, work.VerdictAdopt},
		"clone goes on":  {"asking again is enough", fenced(""), open(history), mysql.CloneStatus{State: "In Progress"}, work.VerdictWait},
		"clone begins":   {"asking again is enough", fenced(""), open(history), mysql.CloneStatus{State: "Not Started"}, work.VerdictWait},
		"clone failed": {
			"half a clone proves nothing", with(fenced(""), func(st *mysql.Status) { st.Executed = set(history) }), open(history), failed, work.VerdictClone,
		},
		"clone failed, databases left": {
			"MySQL would refuse without a window", with(fenced(history), databases), open(history), failed, work.VerdictReclone,
		},
		"clone failed, errant": {
			"what is only here may be needed", with(fenced(uuidB+":1"), databases), open(history), failed, work.VerdictRefuse,
		},
		"errant": {"never destroy what may exist nowhere else", fenced(history + "," + uuidB + ":1"), open(history), mysql.CloneStatus{}, work.VerdictRefuse},
		"errant after a clone": {
			"the active site changed during the clone", fenced(history + "," + uuidB + ":1"), open(history), completed, work.VerdictRefuse,
		},
		"retrieved only": {
			"the relay log may be the only copy", with(fenced(uuidA+":1-40"), func(st *mysql.Status) { st.Retrieved = set(uuidA + ":41-101") }),
			open(history), mysql.CloneStatus{}, work.VerdictRefuse,
		},
		"purged, retrieved only": {
			"the relay log may be the only copy", with(fenced(uuidA+":1-40"), func(st *mysql.Status) { st.Retrieved = set(uuidA + ":90-101") }),
			purged, mysql.CloneStatus{}, work.VerdictRefuse,
		},
		"clone failed, retrieved only": {
			"the relay log may be the only copy", with(fenced(""), func(st *mysql.Status) { st.Retrieved = set(uuidB + ":1") }),
			open(history), failed, work.VerdictRefuse,
		},
		"unknown data": {"nobody knows whose it is", with(fenced(""), databases), open(history), mysql.CloneStatus{}, work.VerdictRefuse},
		"purged": {
			"it can never catch up, and has nothing of its own", with(fenced(uuidA+":1-40"), databases), purged, mysql.CloneStatus{}, work.VerdictReclone,
		},
		"purged but retrieved": {
			"its relay log has what was purged", with(fenced(uuidA+":1-40"), func(st *mysql.Status) { st.Retrieved = set(uuidA + ":41-60") }),
			purged, mysql.CloneStatus{}, work.VerdictAdopt,
		},
		"purged and errant": {"never destroy what may exist nowhere else", fenced(uuidB + ":1"), purged, mysql.CloneStatus{}, work.VerdictRefuse},
		"active site fenced": {
			"another may be about to become active", fenced(""), fenced(history), mysql.CloneStatus{}, work.VerdictWait,
		},
		"site writable": {"what is written there would be lost", open(""), open(history), mysql.CloneStatus{}, work.VerdictWait},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, message := examine(tt.site, tt.active, tt.last, order{})
			if got != tt.want {
				t.Errorf("%s: got %s (%s), want %s", tt.reason, got, message, tt.want)
			}
			if message == "" {
				t.Error("no message")
			}
		})
	}
}

// I14: whatever is seen, a site is cloned only if it is fenced, the active site is open and holds everything the site has.
func TestExamineNeverDestroysWhatIsOnlyThere(t *testing.T) {
	sets := rapid.SampledFrom([]string{"", uuidA + ":1-10", uuidA + ":1-20", uuidB + ":1", uuidA + ":1-10," + uuidB + ":1"})
	states := rapid.SampledFrom([]string{"", "Not Started", "In Progress", "Completed", "Failed", "Cancelled"})
	rapid.Check(t, func(t *rapid.T) {
		status := func(name string) mysql.Status {
			ro := rapid.Bool().Draw(t, name+" fenced")
			return mysql.Status{
				ReadOnly: ro, SuperReadOnly: ro, Executed: set(sets.Draw(t, name+" executed")),
				Purged: set(sets.Draw(t, name+" purged")), Retrieved: set(sets.Draw(t, name+" retrieved")),
				HasDatabases: rapid.Bool().Draw(t, name+" databases"), Cloning: rapid.Bool().Draw(t, name+" cloning"),
			}
		}
		site, active := status("site"), status("active")
		last := mysql.CloneStatus{State: states.Draw(t, "clone")}
		o := order{value: rapid.SampledFrom([]string{"", "b", "b:confirm", orderOfPolicy}).Draw(t, "order"), over: rapid.Bool().Draw(t, "over"),
			begun: rapid.Bool().Draw(t, "begun")}
		got, _ := examine(site, active, last, o)
		mayLose := o.discards() && !o.over && !(o.begun && last.State == cloneCompleted)
		if got != work.VerdictClone && got != work.VerdictReclone {
			return
		}
		if site.Writable() || !active.Writable() || site.Cloning {
			t.Fatalf("%s of %+v from %+v", got, site, active)
		}
		if !mayLose && !active.Executed.Contains(site.Executed.Union(site.Retrieved)) {
			t.Fatalf("%s of %+v from %+v", got, site, active)
		}
		if !mayLose && site.Executed.IsEmpty() && site.HasDatabases && last.State != "Failed" && last.State != "Cancelled" &&
			active.Purged.IsEmpty() {
			t.Fatalf("%s of data that nobody knows: %+v", got, site)
		}
		if got == work.VerdictClone && site.HasDatabases {
			t.Fatal("MySQL refuses a clone into a server with databases outside a window")
		}
	})
}

func TestStranded(t *testing.T) {
	base := func(change func(*scope.SiteFacts, *scope.GroupFacts)) scope.GroupFacts {
		site := scope.SiteFacts{
			MysqlUp: true, AdminAddr: "10.0.0.2:33062", IOErrno: 13114,
			Executed: set(uuidA + ":1-40"),
		}
		g := scope.GroupFacts{ActiveSite: "a", Open: true, Sites: map[string]scope.SiteFacts{
			"a": {MysqlUp: true, Writable: true, AdminAddr: "10.0.0.1:33062", Executed: set(uuidA + ":1-100"), Purged: set(uuidA + ":1-50")},
		}}
		change(&site, &g)
		g.Sites["b"] = site
		return g
	}
	tests := map[string]struct {
		reason string
		g      scope.GroupFacts
		want   bool
	}{
		"stranded":       {"what comes next is gone", base(func(*scope.SiteFacts, *scope.GroupFacts) {}), true},
		"no error":       {"it may only be slow", base(func(s *scope.SiteFacts, _ *scope.GroupFacts) { s.IOErrno = 0 }), false},
		"follows":        {"it gets what it needs", base(func(s *scope.SiteFacts, _ *scope.GroupFacts) { s.Following = true }), false},
		"retrieved":      {"its relay log has what was purged", base(func(s *scope.SiteFacts, _ *scope.GroupFacts) { s.Retrieved = set(uuidA + ":41-60") }), false},
		"diverged":       {"it has what the active site lacks", base(func(s *scope.SiteFacts, _ *scope.GroupFacts) { s.Executed = set(uuidB + ":1") }), false},
		"relay log":      {"what it retrieved may be the only copy", base(func(s *scope.SiteFacts, _ *scope.GroupFacts) { s.Retrieved = set(uuidB + ":1") }), false},
		"found diverged": {"a person decides", base(func(s *scope.SiteFacts, _ *scope.GroupFacts) { s.Diverged = true }), false},
		"not down":       {"nothing is known of it", base(func(s *scope.SiteFacts, _ *scope.GroupFacts) { s.MysqlUp = false }), false},
		"writable":       {"what is written there would be lost", base(func(s *scope.SiteFacts, _ *scope.GroupFacts) { s.Writable = true }), false},
		"active fenced":  {"another may be about to become active", base(func(_ *scope.SiteFacts, g *scope.GroupFacts) { g.Open = false }), false},
		"is active":      {"it is the source", base(func(_ *scope.SiteFacts, g *scope.GroupFacts) { g.ActiveSite = "b" }), false},
		"being cloned":   {"it is helped already", base(func(s *scope.SiteFacts, _ *scope.GroupFacts) { s.Cloning = true }), false},
		"nothing purged": {"the error is another", base(func(_ *scope.SiteFacts, g *scope.GroupFacts) {
			a := g.Sites["a"]
			a.Purged = gtid.Set{}
			g.Sites["a"] = a
		}), false},
		"active unheard":  {"its sets are old", base(func(_ *scope.SiteFacts, g *scope.GroupFacts) { a := g.Sites["a"]; a.MysqlUp = false; g.Sites["a"] = a }), false},
		"no longer there": {"nothing is known of it", scope.GroupFacts{ActiveSite: "a", Open: true}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stranded("b", tt.g); got != tt.want {
				t.Errorf("%s: %v", tt.reason, got)
			}
		})
	}
}
