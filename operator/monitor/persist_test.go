// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"reflect"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/authority"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/groupevents"
	"github.com/mysql-mfg/mfg/operator/monitor/groupstatus"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/signing"
)

var (
	someTime = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	someSet  = gtid.MustParse("aaaaaaaa-0000-0000-0000-000000000001:1-3")
)

// moving is a durable part in which everything is said.
func moving() failover.Durable {
	return failover.Durable{
		Epoch: 3, ActiveSite: "west", ActiveSince: someTime, CooldownUntil: someTime.Add(time.Hour), RowsOutside: 7,
		Outlived: []string{"east", "west"}, Runs: map[string][]failover.Run{"east": {{UID: "east-1", Node: "n1", Lease: time.Second}}},
		Records: []v1alpha1.FailoverRecord{{Epoch: 2, Kind: v1alpha1.FailoverEmergency}},
		Planned: &failover.Planned{From: "east", To: "west", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedMoving, StartedAt: someTime},
		Transition: &failover.Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionOpening, From: "east", To: "west", FromUUID: "u", Reason: "r",
			DetectedAt: someTime, StartedAt: someTime.Add(time.Second), GatePassedAt: someTime.Add(2 * time.Second), FromExecuted: someSet,
			ToExecuted: gtid.MustParse("bbbbbbbb-0000-0000-0000-000000000001:1"), Evidence: []string{"e"}},
	}
}

// TestOnlyOverWhatIsOursI2: an epoch is written over what this loop knows, and never over what it does not.
func TestOnlyOverWhatIsOursI2(t *testing.T) {
	group := func(change func(*v1alpha1.MysqlFailoverGroup)) *v1alpha1.MysqlFailoverGroup {
		g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u", ResourceVersion: "1"}}
		g.Status.Epoch, g.Status.ActiveSite = 3, "east"
		change(g)
		return g
	}
	as := func(*v1alpha1.MysqlFailoverGroup) {}
	away := errors.New("away")
	for name, tc := range map[string]struct {
		stands func(*v1alpha1.MysqlFailoverGroup)
		// wrote is the version that this loop wrote last; others are how often somebody else writes before each try.
		wrote  string
		others int
		refuse error
		// foreign is true if what others write is not ours.
		foreign bool
		want    error
		// writes and reads are how often it is tried, and what stands is read.
		writes, reads int
	}{
		"nobody else writes":                {as, "1", 0, nil, false, nil, 1, 0},
		"what stands is not known":          {as, "", 0, nil, false, nil, 1, 1},
		"somebody wrote before":             {as, "0", 0, nil, false, nil, 1, 1},
		"the controller writes meanwhile":   {as, "1", 1, nil, false, nil, 2, 1},
		"and before":                        {as, "0", 1, nil, false, nil, 2, 2},
		"and again and again":               {as, "0", 9, nil, false, errConflict, persistTries, persistTries},
		"another leader writes meanwhile":   {as, "1", 1, nil, true, errOvertaken, 1, 1},
		"the write fails":                   {as, "1", 0, away, false, away, 1, 0},
		"the write fails after a read":      {as, "0", 0, away, false, away, 1, 1},
		"the group is another one":          {func(g *v1alpha1.MysqlFailoverGroup) { g.UID = "v" }, "", 0, nil, false, errOvertaken, 0, 1},
		"the epoch is another one":          {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Epoch = 4 }, "", 0, nil, false, errOvertaken, 0, 1},
		"another site is active":            {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.ActiveSite = "west" }, "", 0, nil, false, errOvertaken, 0, 1},
		"a transition is under way":         {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Transition = &v1alpha1.Transition{} }, "", 0, nil, false, errOvertaken, 0, 1},
		"another release claimed the group": {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Claim = &v1alpha1.GroupClaim{Lease: "b/l"} }, "", 0, nil, false, errOvertaken, 0, 1},
		"nobody claimed the group":          {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Claim = &v1alpha1.GroupClaim{} }, "", 0, nil, false, nil, 1, 1},
	} {
		api := &apiServer{group: group(tc.stands), refuse: tc.refuse}
		l := testLoop(t, &pushes{}, api)
		l.m.Client, l.m.Lease = api, "a/l"
		l.durable, l.loaded, l.version = failover.Durable{Epoch: 3, ActiveSite: "east"}, true, tc.wrote
		others := tc.others
		api.meanwhile = func() {
			if others > 0 {
				others--
				api.changed()
				if tc.foreign {
					api.group.Status.Epoch = 4
				}
			}
		}
		d := begun(4)
		err := l.persist(t.Context(), group(as), d)
		if conflict := errors.Is(tc.want, errConflict); conflict != apierrors.IsConflict(err) || !conflict && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if api.writes != tc.writes || api.reads != tc.reads {
			t.Errorf("%s: %d writes after %d reads, want %d and %d", name, api.writes, api.reads, tc.writes, tc.reads)
		}
		want := int64(3)
		if err == nil {
			want = 4
		}
		if l.durable.Epoch != want || l.tried.Epoch != 4 || l.loaded != (err == nil) {
			t.Errorf("I9: %s: it takes epoch %d for durable, after it tried %d, and knows what stands: %t", name, l.durable.Epoch, l.tried.Epoch, l.loaded)
		}
		if err == nil && (api.group.Status.Epoch != 4 || api.group.Status.ActiveSite != "west" || l.version != api.group.ResourceVersion) {
			t.Errorf("%s: version %q, what stands is %+v", name, l.version, api.group.Status)
		}
	}
}

// errConflict stands for an error that says that somebody else wrote.
var errConflict = errors.New("conflict")

// TestOnlyTheSameStepIsOursI2: who leads now may be further.
func TestOnlyTheSameStepIsOursI2(t *testing.T) {
	l := testLoop(t, &pushes{}, nil)
	l.durable = failover.Durable{Epoch: 3, Transition: &failover.Transition{Step: v1alpha1.TransitionOpening}}
	for name, tc := range map[string]struct {
		stands *v1alpha1.Transition
		want   bool
	}{
		"the same":     {&v1alpha1.Transition{Step: v1alpha1.TransitionOpening}, true},
		"another step": {&v1alpha1.Transition{Step: v1alpha1.TransitionFencing}, false},
		"it is over":   {nil, false},
	} {
		if got := l.isOurs(v1alpha1.MysqlFailoverGroupStatus{Epoch: 3, Transition: tc.stands}); got != tc.want {
			t.Errorf("I2: %s: ours %t", name, got)
		}
	}
}

// TestWhatMustBeWrittenBeforeItIsActedOnI2: with an unknown outcome only a note leaves the loop with what it knows.
func TestWhatMustBeWrittenBeforeItIsActedOnI2(t *testing.T) {
	l := testLoop(t, &pushes{}, nil)
	l.durable = moving()
	for name, tc := range map[string]struct {
		change func(*failover.Durable)
		want   bool
	}{
		"a note":              {func(d *failover.Durable) { d.Planned = nil }, true},
		"another epoch":       {func(d *failover.Durable) { d.Epoch++ }, false},
		"another active site": {func(d *failover.Durable) { d.ActiveSite = "east" }, false},
		"no transition":       {func(d *failover.Durable) { d.Transition = nil }, false},
	} {
		d := failover.Decision{Status: l.durable}
		tc.change(&d.Status)
		if got := l.onlyNotes(d); got != tc.want {
			t.Errorf("I2: %s is only a note: %t", name, got)
		}
	}
}

// TestWhatALoopBeginsWithI9: all that status says, and a key to sign with.
func TestWhatALoopBeginsWithI9(t *testing.T) {
	l := testLoop(t, &pushes{}, nil)
	group := &v1alpha1.MysqlFailoverGroup{}
	durable := moving()
	durable.Filtered = map[string]string{"west": "u-west", "south": "u-south"}
	group.Status = groupstatus.Of(group, durable, []failover.View{{Name: "east"}, {Name: "west", Filtered: "u-west"}})
	group.Status.Sites[0].Errant, group.Status.Sites[1].Errant = someSet.String(), "?"
	keys := &keyReader{}
	l.m.Keys, l.authority = &signing.Keys{Live: keys, Namespace: "mfg-system"}, authority.New()
	l.signer.authority = l.authority
	l.m.Live = reader{group: group}
	if err := l.load(t.Context(), group); err == nil || l.loaded || l.authority.HasSigner() {
		t.Errorf("without a key: %v, loaded %t", err, l.loaded)
	}
	key := newKey(t)
	keys.key.Store(&key)
	l.m.Live = reader{err: errors.New("away")}
	if err := l.load(t.Context(), group); err == nil || l.loaded {
		t.Errorf("I9: without status: %v, loaded %t", err, l.loaded)
	}
	broken := group.DeepCopy()
	broken.Status.Transition.FromExecuted = "?"
	l.m.Live = reader{group: broken}
	if err := l.load(t.Context(), group); err == nil || l.loaded {
		t.Errorf("I9: with half a status: %v, loaded %t", err, l.loaded)
	}
	l.m.Live = reader{group: group}
	if err := l.load(t.Context(), group); err != nil || !l.loaded || !l.authority.HasSigner() {
		t.Fatalf("%v, loaded %t, signs %t", err, l.loaded, l.authority.HasSigner())
	}
	same(t, "I9: what is durable", durable, l.durable)
	for site, want := range durable.Filtered {
		if got := l.memory.Of(site).Filtered; got != want {
			t.Errorf("I9: the filter of %s is forgotten: %q", site, got)
		}
	}
	told := groupevents.Told{Key: l.key}
	if told.Resume(moving().Planned); !reflect.DeepEqual(l.told, told) {
		t.Errorf("what was told before is told again: %+v", l.told)
	}
	same(t, "I10: diverged", someSet, l.memory.Of("east").Diverged)
	l.m.Live = reader{err: errors.New("away")}
	keys.key.Store(nil)
	if err := l.load(t.Context(), group); err != nil {
		t.Errorf("it reads again what it wrote itself: %v", err)
	}
	// What was compared since says more than status.
	more := gtid.MustParse("aaaaaaaa-0000-0000-0000-000000000001:1-5")
	l.memory.At("east").Diverged, l.memory.At("south").Diverged = more, someSet
	l.loaded, l.m.Live = false, reader{group: group}
	if err := l.load(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	same(t, "I10: diverged", []gtid.Set{more, someSet}, []gtid.Set{l.memory.Of("east").Diverged, l.memory.Of("south").Diverged})
}

// I25: a restore that was asked for since a decision was taken stops what would open an empty database; one that the decision knew of was
// looked at by it.
func TestNothingOpensBeforeARestoreThatWasJustAskedForI25(t *testing.T) {
	group := func(restore bool) *v1alpha1.MysqlFailoverGroup {
		g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u", ResourceVersion: "1"}}
		if restore {
			g.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{Profile: "nightly"}
		}
		return g
	}
	for name, tc := range map[string]struct {
		decidedOn, stands bool
		want              error
	}{
		"asked for since":  {false, true, errOvertaken},
		"known":            {true, true, nil},
		"never asked for":  {false, false, nil},
		"taken back since": {true, false, nil},
	} {
		api := &apiServer{group: group(tc.stands)}
		l := testLoop(t, &pushes{}, api)
		l.m.Client, l.durable, l.loaded = api, failover.Durable{}, true
		if err := l.persist(t.Context(), group(tc.decidedOn), failover.Decision{Status: failover.Durable{Epoch: 1, ActiveSite: "east"}}); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if wrote := api.writes > 0; wrote != (tc.want == nil) {
			t.Errorf("%s: %d writes", name, api.writes)
		}
	}
}

// TestAFilterOfASiteThatLeftOutlivesTheOperatorI7I9: the operator restarts while the site is away. Its volume stayed, and comes back with
// it: rows may be missing there until it is copied.
func TestAFilterOfASiteThatLeftOutlivesTheOperatorI7I9(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{}
	poll := func(l *loop, b func(*failover.Site)) failover.Snapshot {
		sites := []failover.Site{factstest.Seen("a", "A:1-9", 4)}
		sites[0].MySQL.SuperReadOnly, sites[0].MySQL.ReadOnly = false, false
		if b != nil {
			sites = append(sites, factstest.Seen("b", "A:1-9", 4))
			sites[1].MySQL.ReplicaOf, sites[1].MySQL.IORunning, sites[1].MySQL.SQLRunning = "a", true, true
			b(&sites[1])
		}
		s := factstest.World(l.durable, sites...)
		d := failover.Decide(s, l.memory)
		l.memory, l.durable = d.Memory, d.Status
		group.Status = groupstatus.Of(group, d.Status, d.Views)
		return s
	}
	begin := func() *loop {
		l := testLoop(t, &pushes{}, nil)
		key, keys := newKey(t), &keyReader{}
		keys.key.Store(&key)
		l.m.Keys, l.m.Live = &signing.Keys{Live: keys, Namespace: "mfg-system"}, reader{group: group}
		if err := l.load(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		return l
	}
	asIs := func(*failover.Site) {}
	group.Status.Epoch, group.Status.ActiveSite = 4, "a"
	l := begin()
	poll(l, func(b *failover.Site) { b.MySQL.Filtered = true })
	poll(l, nil)
	poll(begin(), nil) // this one never saw the site
	if len(group.Status.Sites) != 1 || len(group.Status.FormerSites) != 1 {
		t.Fatalf("I7: it left: sites %v, former sites %v", group.Status.Sites, group.Status.FormerSites)
	}
	l = begin()
	if s := poll(l, asIs); promotion.IsFiltered(s, l.memory, s.Sites[1]) == "" {
		t.Error("I7: it came back, and passes for whole")
	}
	if len(group.Status.FormerSites) != 0 || group.Status.Sites[1].Filtered == "" {
		t.Errorf("it came back: former sites %v, sites %v", group.Status.FormerSites, group.Status.Sites)
	}
	l = begin()
	if s := poll(l, func(b *failover.Site) { b.MySQL.ServerUUID = "another" }); promotion.IsFiltered(s, l.memory, s.Sites[1]) != "" || len(l.durable.Filtered) != 0 {
		t.Errorf("it was cloned: %v", l.durable.Filtered)
	}
	many := map[string]string{}
	for i := range 2000 {
		many[strconv.Itoa(i)] = "server"
	}
	if got := groupstatus.Of(group, failover.Durable{Filtered: many}, nil).FormerSites; len(got) != 1024 {
		t.Errorf("status names %d former sites, and the schema takes 1024", len(got))
	}
}
