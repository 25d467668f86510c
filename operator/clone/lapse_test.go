// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
	"github.com/mysql-mfg/mfg/operator/work/worktest"
)

// I14: an order that waited for its turn is judged again by what is the case then.
func TestOrderLapses(t *testing.T) {
	following := scope.SiteFacts{MysqlUp: true, Following: true, Lasts: true}
	tests := map[string]struct {
		order order
		other scope.SiteFacts
		last  string
		want  work.Verdict
	}{
		"as it was ordered":                    {order{value: "b", from: "a"}, following, "", work.VerdictAdopt},
		"the role has moved":                   {order{value: "b", from: "c"}, following, "", work.VerdictLapse},
		"the role has moved, confirmed":        {order{value: "b:confirm", from: "c"}, following, "", work.VerdictLapse},
		"the role has moved, policy":           {order{value: orderOfPolicy, from: "c"}, following, "", work.VerdictLapse},
		"the role has moved, and it had begun": {order{value: "b:confirm", from: "c", begun: true}, following, "Failed", work.VerdictAdopt},
		"the role has moved, half a clone":     {order{value: "b:confirm", from: "c"}, following, "Failed", work.VerdictAdopt},
		"the other copy is gone":               {order{value: "b", from: "a"}, scope.SiteFacts{}, "", work.VerdictLapse},
		"the other copy is gone, confirmed":    {order{value: "b:confirm", from: "a"}, scope.SiteFacts{}, "", work.VerdictAdopt},
		"the other copy is gone, policy":       {order{value: orderOfPolicy, from: "a"}, scope.SiteFacts{}, "", work.VerdictWait},
		"the other copy is there, policy":      {order{value: orderOfPolicy, from: "a"}, following, "", work.VerdictAdopt},
		"half a clone, policy":                 {order{value: orderOfPolicy, from: "a"}, scope.SiteFacts{}, "Failed", work.VerdictAdopt},
		"the other copy is gone, half a clone": {order{value: "b", from: "a"}, scope.SiteFacts{}, "Failed", work.VerdictAdopt},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl := newPlant(t, history, history)
				defer pl.end(t)
				b := pl.servers["10.0.0.1:33062"]
				b.Answers.HasDatabases, b.Answers.Channels, b.Last = true, 1, mysql.CloneStatus{State: tt.last}
				pl.facts.Set("b", scope.SiteFacts{MysqlUp: true, AdminAddr: "10.0.0.1:33062", Following: true})
				pl.facts.Set("c", tt.other)
				pl.p.begin(scopetest.Group(), "b", tt.order)
				if o := pl.result(t, "b"); o.Verdict != tt.want || o.Copy != (tt.want == work.VerdictWait) {
					t.Errorf("outcome %+v", o)
				}
				if touched := len(b.Calls) > 0; touched != (tt.want == work.VerdictAdopt) {
					t.Errorf("calls %v", b.Calls)
				}
			})
		})
	}
}

// I14: who may lack rows is no copy that has to be kept, so the command that its message names is carried out.
func TestACopyThatLacksRowsIsClonedAgainI14(t *testing.T) {
	for _, filtered := range []bool{false, true} {
		p := newProvisioner(&scope.Base{}, Options{Work: work.New()})
		key := scope.SiteKey{Group: scopetest.Key, Site: "b"}
		g := scope.GroupFacts{ActiveSite: "a", Open: true, Sites: map[string]scope.SiteFacts{"b": {MysqlUp: true, Following: true, Filtered: filtered}}}
		why := p.lapsed(task{group: scopetest.Group(), key: key, order: order{value: "b", from: "a"}}, g, mysql.CloneStatus{})
		if (why == "") != filtered {
			t.Errorf("I14: filtered %t: %q", filtered, why)
		}
	}
}

// I14: an order can be taken back until its clone begins, also while it waits for its turn; after that it stands.
func TestAWithdrawnOrderLapses(t *testing.T) {
	for name, tt := range map[string]struct {
		last  string
		begun bool
		value string
		want  work.Verdict
	}{
		"before anything was done":  {"", false, "b:confirm", work.VerdictLapse},
		"another order of the site": {"", false, "b", work.VerdictAdopt},
		"half a clone":              {"Failed", false, "b:confirm", work.VerdictAdopt},
		"a clone has begun":         {"Failed", true, "b:confirm", work.VerdictAdopt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl := newPlant(t, history, history)
				defer pl.end(t)
				b := pl.servers["10.0.0.1:33062"]
				b.Answers.HasDatabases, b.Last = true, mysql.CloneStatus{State: tt.last}
				pl.facts.Set("b", scope.SiteFacts{MysqlUp: true, AdminAddr: "10.0.0.1:33062"})
				pl.p.withdrawn.note(scope.SiteKey{Group: scopetest.Key, Site: "b"}, tt.value)
				pl.p.begin(scopetest.Group(), "b", order{value: "b:confirm", from: "a", begun: tt.begun})
				o := pl.result(t, "b")
				if touched := len(b.Calls) > 0; o.Verdict != tt.want || touched != (tt.want == work.VerdictAdopt) {
					t.Errorf("outcome %+v, calls %v", o, b.Calls)
				}
			})
		})
	}
}

// I14: while the sidecar hears of the window, the donor may lose its role.
func TestNoCloneBeginsFromASiteThatLostItsRole(t *testing.T) {
	for name, happens := range map[string]func(*scopetest.Facts){
		"another site is active":      func(f *scopetest.Facts) { f.Open("c") },
		"it was active in between":    func(f *scopetest.Facts) { f.Under(2) },
		"the active site is not open": func(f *scopetest.Facts) { f.Closed("a") },
	} {
		synctest.Test(t, func(t *testing.T) {
			pl := newPlant(t, history, history)
			defer pl.end(t)
			b := pl.servers["10.0.0.1:33062"]
			b.Answers.HasDatabases = true
			go func() {
				time.Sleep(time.Second)
				happens(pl.facts)
			}()
			pl.p.begin(scopetest.Group(), "b", order{value: "b:confirm", from: "a"})
			if o := pl.result(t, "b"); !o.Failed || len(b.Calls) != 0 {
				t.Errorf("I14: %s: outcome %+v, calls %v", name, o, b.Calls)
			}
		})
	}
}

// I14: the site is examined against the active site only while that is open, also if it was when the look began.
func TestNoSiteIsExaminedAgainstAClosedOneI14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, uuidA+":1-40")
		defer pl.end(t)
		inner := pl.p.reach.Dial
		pl.p.reach.Dial = func(target mysql.Target) (work.Recipient, error) {
			pl.facts.Closed("a") // while the site is asked
			return inner(target)
		}
		pl.p.begin(scopetest.Group(), "b", order{})
		<-pl.ended
		if o, ok := pl.work.Result(scope.SiteKey{Group: scopetest.Key, Site: "b"}); ok && o.Verdict == work.VerdictAdopt {
			t.Errorf("I14: outcome %+v", o)
		}
	})
}

// I14: what would be left is looked for among the sites that hold the group's data and replicate it now, whatever was so when the work began.
func TestOtherCopyI14(t *testing.T) {
	whole := scope.SiteFacts{MysqlUp: true, Following: true, Lasts: true}
	with := func(change func(*scope.SiteFacts)) scope.SiteFacts {
		f := whole
		change(&f)
		return f
	}
	for name, tt := range map[string]struct {
		facts map[string]scope.SiteFacts
		busy  bool
		want  bool
	}{
		"it replicates":            {map[string]scope.SiteFacts{"c": whole}, false, true},
		"it was added since":       {map[string]scope.SiteFacts{"new": whole}, false, true},
		"only the site itself":     {map[string]scope.SiteFacts{"b": whole}, false, false},
		"only the active site":     {map[string]scope.SiteFacts{"a": whole}, false, false},
		"it does not last":         {map[string]scope.SiteFacts{"c": with(func(f *scope.SiteFacts) { f.Lasts = false })}, false, false},
		"it is down":               {map[string]scope.SiteFacts{"c": with(func(f *scope.SiteFacts) { f.MysqlUp = false })}, false, false},
		"it does not follow":       {map[string]scope.SiteFacts{"c": with(func(f *scope.SiteFacts) { f.Following = false })}, false, false},
		"it has diverged":          {map[string]scope.SiteFacts{"c": with(func(f *scope.SiteFacts) { f.Diverged = true })}, false, false},
		"it may lack rows":         {map[string]scope.SiteFacts{"c": with(func(f *scope.SiteFacts) { f.Filtered = true })}, false, false},
		"it is being cloned":       {map[string]scope.SiteFacts{"c": with(func(f *scope.SiteFacts) { f.Cloning = true })}, false, false},
		"something is done to it":  {map[string]scope.SiteFacts{"c": whole}, true, false},
		"nothing is known of them": {nil, false, false},
	} {
		p := newProvisioner(&scope.Base{}, Options{Work: work.New()})
		if tt.busy {
			p.work.Begin(scope.SiteKey{Group: scopetest.Key, Site: "c"}, func() {}).Hold()
		}
		group := scopetest.Group()
		group.Status.Sites = []v1alpha1.SiteStatus{{Name: "a", Provisioned: true}, {Name: "b", Provisioned: true}, {Name: "c", Provisioned: true}}
		got := p.otherCopy(task{group: group, key: scope.SiteKey{Group: scopetest.Key, Site: "b"}}, scope.GroupFacts{ActiveSite: "a", Open: true, Sites: tt.facts})
		if got != tt.want {
			t.Errorf("I14: %s: %t", name, got)
		}
	}
}

// I14: an applier may take a minute to stop. If the other copy is lost in that minute, the site keeps its data.
func TestNoCloneBeginsOnceTheOtherCopyIsLostI14(t *testing.T) {
	for name, tt := range map[string]struct {
		order order
		lost  bool
		want  bool
	}{
		"policy":                    {order{value: orderOfPolicy, from: "a"}, true, false},
		"policy, it is there":       {order{value: orderOfPolicy, from: "a"}, false, true},
		"ordered":                   {order{value: "b", from: "a"}, true, false},
		"ordered, it is there":      {order{value: "b", from: "a"}, false, true},
		"ordered and confirmed":     {order{value: "b:confirm", from: "a"}, true, true},
		"policy, half cloned since": {order{value: orderOfPolicy, from: "a", begun: true}, true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			pl := newPlant(t, history, history)
			defer pl.end(t)
			b := pl.servers["10.0.0.1:33062"]
			b.Answers.HasDatabases, b.Answers.Channels = true, 1
			pl.facts.Set("b", scope.SiteFacts{MysqlUp: true, AdminAddr: "10.0.0.1:33062", Following: true})
			pl.facts.Set("c", scope.SiteFacts{MysqlUp: true, Following: true, Lasts: true})
			b.Stopped = func() {
				pl.fact("b", func(f *scope.SiteFacts) { f.Following = false })
				if tt.lost {
					pl.fact("c", func(f *scope.SiteFacts) { f.Lasts = false }) // somebody deleted its claim
				}
			}
			pl.p.begin(scopetest.Group(), "b", tt.order)
			o := pl.result(t, "b")
			if cloned := slices.Contains(b.Calls, "clone from 10.0.0.0"); cloned != tt.want || cloned != slices.Contains(b.Calls, "drop replication") {
				t.Errorf("I14: %s: outcome %+v, calls %v", name, o, b.Calls)
			}
			if refused := strings.Contains(o.Message, "not begun"); refused == tt.want {
				t.Errorf("I14: %s: told %q", name, o.Message)
			}
			// The next try would find a site that does not follow, and take it for no copy.
			if lapsed := o.Verdict == work.VerdictLapse; lapsed != (!tt.want && tt.order.value != orderOfPolicy) {
				t.Errorf("I14: %s: outcome %+v", name, o)
			}
		})
	}
}

// I14: only what a person ordered can be taken back with the annotation, and only before a clone has begun under it.
func TestWhatIsNotWithdrawnI14(t *testing.T) {
	for name, tt := range map[string]struct {
		clone v1alpha1.CloneProgress
		asked string
		want  bool
	}{
		"taken off":                 {v1alpha1.CloneProgress{Order: "b:confirm"}, "", true},
		"another site is named now": {v1alpha1.CloneProgress{Order: "b:confirm"}, "c", true},
		"it is still there":         {v1alpha1.CloneProgress{Order: "b:confirm"}, "b:confirm", false},
		"a clone has begun":         {v1alpha1.CloneProgress{Order: "b:confirm", Stage: "FILE COPY"}, "", false},
		"the policy ordered it":     {v1alpha1.CloneProgress{Order: orderOfPolicy}, "", false},
		"nobody ordered anything":   {v1alpha1.CloneProgress{}, "", false},
	} {
		g := scopetest.Group(scopetest.Running)
		g.Annotations = map[string]string{v1alpha1.AnnotationRecloneSite: tt.asked}
		r := New(&scope.Base{}, Options{Work: work.New()})
		r.withdraw(&scope.Scope{Key: scopetest.Key, Group: g, Clones: map[string]*v1alpha1.CloneProgress{"b": &tt.clone}})
		if got := r.provisioner.withdrawn.has(scope.SiteKey{Group: scopetest.Key, Site: "b"}, order{value: tt.clone.Order}); got != tt.want {
			t.Errorf("I14: %s: %t", name, got)
		}
	}
}

// I14 (simulation, seeds 512 and 545): the donor may lose its data, or its openness, in the seconds that a window takes to open.
// A site may write something new in that time.
func TestNoCloneBeginsOnAnOldLook(t *testing.T) {
	const past = uuidA + ":1-90"
	for name, change := range map[string]func(*plant){
		"the donor is not open": func(pl *plant) {
			pl.servers["10.0.0.0:33062"].With(func(s *worktest.Server) { s.Answers.ReadOnly, s.Answers.SuperReadOnly = true, true })
		},
		"the donor lost its data": func(pl *plant) {
			pl.servers["10.0.0.0:33062"].With(func(s *worktest.Server) { s.Answers.Executed = set("") })
		},
		"the role has moved there and back": func(pl *plant) { pl.facts.Under(2) },
		"the donor runs elsewhere": func(pl *plant) {
			pl.mu.Lock()
			pl.servers["10.0.0.9:33062"] = &worktest.Server{Answers: open(past)}
			pl.mu.Unlock()
			pl.facts.Set("a", scope.SiteFacts{MysqlUp: true, Writable: true, AdminAddr: "10.0.0.9:33062"})
		},
		"somebody wrote on the site": func(pl *plant) {
			pl.servers["10.0.0.1:33062"].With(func(s *worktest.Server) { s.Answers.Executed = set(past + "," + uuidB + ":1") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkOldLook(t, change, false) })
		})
		// An applier that is stopped may take a minute over it.
		t.Run(name+", while the replication is stopped", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkOldLook(t, change, true) })
		})
	}
}

func checkOldLook(t *testing.T, change func(*plant), late bool) {
	const past = uuidA + ":1-90"
	pl := newPlant(t, past, past)
	defer pl.end(t)
	b, want := pl.servers["10.0.0.1:33062"], "begin window, end window"
	b.Answers.HasDatabases, b.Last.State = true, "Failed"
	if late {
		b.Stopped, want = func() { change(pl) }, "begin window, stop replication, end window"
	} else {
		go func() {
			time.Sleep(time.Second)
			change(pl)
		}()
	}
	pl.p.begin(scopetest.Group(), "b", order{})
	if o, calls := pl.result(t, "b"), strings.Join(b.Calls, ", "); !o.Failed || calls != want && (late || calls != "") {
		t.Errorf("I14: outcome %+v, calls %s", o, calls)
	}
}
