// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// TestWhatIsPublishedOfAGroup: it is open while nothing moves and its active site writes; a site has an address, and a password that is
// known, while its pod is there.
func TestWhatIsPublishedOfAGroup(t *testing.T) {
	open := failover.Site{Name: "east", MySQL: failover.MySQL{Direct: true}, Sidecar: failover.Sidecar{Answered: true}, Pod: failover.Pod{Exists: true, UID: "east-1"}}
	shut := open
	shut.MySQL.SuperReadOnly, shut.MySQL.ReadOnly = true, true
	gone := open
	gone.Pod = failover.Pod{}
	const addr = "10.0.0.1:33062"
	for name, tc := range map[string]struct {
		site   failover.Site
		moving *failover.Transition
		link   bool
		ip     string
		open   bool
		addr   string
		serial int64
	}{
		"it is open":                {site: open, link: true, ip: "10.0.0.1", open: true, addr: addr, serial: 4},
		"it is shut":                {site: shut, link: true, ip: "10.0.0.1", addr: addr, serial: 4},
		"the role moves":            {site: open, moving: &failover.Transition{From: "east", To: "west"}, link: true, ip: "10.0.0.1", addr: addr, serial: 4},
		"it is shut while it moves": {site: shut, moving: &failover.Transition{From: "east", To: "west"}, link: true, ip: "10.0.0.1", addr: addr, serial: 4},
		"its pod is gone":           {site: gone, link: true, ip: "10.0.0.1", open: true},
		"its pod has no address":    {site: open, link: true, open: true},
		"nobody spoke to it yet":    {site: open, open: true},
	} {
		l := testLoop(t, nil, nil)
		if tc.link {
			pod := podOf("east", "east-1", "n1", tc.ip)
			link := &siteLink{given: given{podUID: "east-1", source: "east", serial: 4}}
			link.become(&pod)
			l.sites["east"] = link
		}
		s := failover.Snapshot{Sites: []failover.Site{tc.site}, Status: failover.Durable{ActiveSite: "east", Epoch: 3, Transition: tc.moving}}
		l.publishFacts(nil, s, failover.Decision{Status: s.Status, Views: []failover.View{{Name: "east"}}})
		f := l.facts.Load()
		if f.Open != tc.open || f.ActiveSite != "east" || f.Epoch != 3 || len(f.Sites) != 1 {
			t.Errorf("%s: %+v", name, f)
			continue
		}
		if got := f.Sites[0]; got.AdminAddr != tc.addr || got.ReceiverSerial != tc.serial || got.Name != "east" || got.View.Name != "east" {
			t.Errorf("%s: address %q, serial %d", name, got.AdminAddr, got.ReceiverSerial)
		}
		if f.SignedBy != nil || f.Vouch != nil {
			t.Errorf("%s: signed by a key that is not there", name)
		}
	}
}

// TestFactsAreOfALoopThatHasLooked: and they tell the key that signs, which vouches for the one to come.
func TestFactsAreOfALoopThatHasLooked(t *testing.T) {
	l := testLoop(t, nil, nil)
	if f, known := l.m.Facts("shop", "orders"); known {
		t.Errorf("of a group that nobody looks after: %+v", f)
	}
	l.m.loops[l.key] = l
	if f, known := l.m.Facts("shop", "orders"); known {
		t.Errorf("before anybody has looked: %+v", f)
	}
	key, err := signing.New()
	if err != nil {
		t.Fatal(err)
	}
	l.signer.inUse = key
	l.publishFacts(nil, failover.Snapshot{Status: failover.Durable{Epoch: 7}}, failover.Decision{})
	f, known := l.m.Facts("shop", "orders")
	if !known || f.Epoch != 7 || !f.SignedBy.Equal(key.Public()) || f.Vouch == nil {
		t.Errorf("known %t: %+v", known, f)
	}
}

// TestAPollAsksForTheCacheOfATarget: what is noted of it reaches the decision. A poll waits for the answer for a moment only, which may pass on a
// machine that is busy; then the next one asks again.
func TestAPollAsksForTheCacheOfATarget(t *testing.T) {
	l := testLoop(t, &sidecars{}, nil)
	l.m.Client, l.caches.Port = &apiServer{}, &lagging{}
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Annotations = map[string]string{v1alpha1.AnnotationPlannedFailover: "west"}
	group.Spec.Sites = []v1alpha1.Site{{Name: "east"}, {Name: "west"}}
	group.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true}
	behind := ""
	for range 1000 {
		s := l.gather(t.Context(), group)
		if east, _ := s.Site("east"); east.CacheBehind != "" {
			t.Fatalf("east was not asked for: %q", east.CacheBehind)
		}
		west, _ := s.Site("west")
		if behind = west.CacheBehind; behind != "" {
			break
		}
	}
	if behind != "it lags" {
		t.Errorf("west: %q", behind)
	}
}

// TestAnAnnouncementIsOverOnceItIsHeard: it takes no longer than those who answer, and what it began ends with it.
func TestAnAnnouncementIsOverOnceItIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		side := &sidecars{reports: map[string]wire.Report{"10.0.0.1:8090": {Site: "east", PodUID: "east-1", Answered: true}}}
		l := testLoop(t, side, nil)
		api := &apiServer{}
		api.pods = append(api.pods, podOf("east", "east-1", "n1", "10.0.0.1"))
		l.m.Client = api
		l.authority.Set(statement("east", 3, false), nil, time.Now())
		s := failover.Snapshot{Policy: failover.Policy{FenceTimeout: time.Second}, Status: failover.Durable{Epoch: 3},
			Sites: []failover.Site{{Name: "east", Sidecar: failover.Sidecar{Answered: true}, MySQL: failover.MySQL{Direct: true}}}}
		began := time.Now()
		if err := l.announce(t.Context(), &v1alpha1.MysqlFailoverGroup{}, s, failover.Announce{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("everybody answered at once, and it took %s", took)
		}
		l.m.done.Wait()
		if len(side.told) != 1 {
			t.Errorf("told %v", side.told)
		}
	})
}

// TestNobodyIsDrainedOutOfSight: a link that is left from an earlier poll is none to a site of the group.
func TestNobodyIsDrainedOutOfSight(t *testing.T) {
	s := newStage(t)
	s.sites["north"] = s.sites["west"]
	for _, name := range []string{"north", "nobody"} {
		if err := s.drain(t.Context(), s.group, s.seen, name); err == nil || err.Error() != "no connection to "+name {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.servers["west"].was(t, "it was not meant")
}

// TestASelectorOfAnEarlierVersion has no name, and the one of this version keeps its own.
func TestASelectorOfAnEarlierVersion(t *testing.T) {
	now := selector("orders", "east", "")
	before := former(now)
	if _, named := before[v1alpha1.LabelName]; named || len(before) != len(now)-1 || before[v1alpha1.LabelSite] != "east" {
		t.Errorf("%v", before)
	}
	if now[v1alpha1.LabelName] == "" {
		t.Errorf("its own is changed: %v", now)
	}
}

// TestAMySQLThatIsAskedInVainIsTold: why it cannot be asked is told, and no more once it can be.
func TestAMySQLThatIsAskedInVainIsTold(t *testing.T) {
	s := newStage(t)
	told := func() string {
		views := []failover.View{{Name: "east"}}
		s.client.tellRefusals(views)
		return views[0].Message
	}
	s.client.refused(fromMySQL, "east", "the operator cannot ask its MySQL: it refuses our password")
	if got := told(); !strings.Contains(got, "refuses our password") {
		t.Fatalf("told %q", got)
	}
	if status := s.client.query(t.Context(), s.group, s.sites["east"], "east"); status == nil || told() != "" {
		t.Errorf("it answers, and is told to refuse: %q", told())
	}
	s.access.err = errors.New("no Secret")
	s.sites["east"].close()
	if status := s.client.query(t.Context(), s.group, s.sites["east"], "east"); status != nil {
		t.Errorf("nobody leads to it: %+v", status)
	}
}

// TestAGroupThatAwaitsItsRestoreI25: the decision hears of it, and how long it may wait for a cache.
func TestAGroupThatAwaitsItsRestoreI25(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{}
	if p := policy(group); p.AwaitsRestore || p.Cache != (failover.CachePolicy{}) {
		t.Errorf("I25: a group that begins empty: %+v", p)
	}
	group.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{Profile: "nightly"}
	group.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true, Planned: v1alpha1.CachePlanned{OnTimeout: v1alpha1.CacheProceed}}
	if p := policy(group); !p.AwaitsRestore || p.RestoredSite != "" || p.Cache.Refuses {
		t.Errorf("I25: %+v", p)
	}
}
