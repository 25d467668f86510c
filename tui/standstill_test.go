// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/clock/clocktest"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// ping is a sign of life of the operator, in which it says how old its last look at each group is.
func (s *story) ping(ages map[string]time.Duration) {
	s.send(feed.Changes{At: s.at.Add(ahead), Clock: s.at, Ages: ages, Link: &feed.Link{Up: true, Route: "service proxy"}})
}

// TestLoopThatStandsStill: the operator lives and says so, and has not looked at one group for long. That group is not called live.
func TestLoopThatStandsStill(t *testing.T) {
	s := begin(Options{})
	s.pass(10 * time.Second)
	s.ping(map[string]time.Duration{"shop/orders": 42 * time.Second, "shop/carts": 2 * time.Second, "shop/unknown": time.Hour})
	s.pass(3 * time.Second)
	list := s.m.frame().Bare()
	if !strings.Contains(list, "STALE 45 s") || !strings.Contains(list, ", 1 STALE") || strings.Count(list, "STALE") != 2 {
		t.Errorf("the list:\n%s", list)
	}
	s.m.openGroup("shop/orders")
	page := s.m.frame().Bare()
	if head, _, _ := strings.Cut(page, "\n"); !strings.Contains(head, "STALE for 45 s") || !strings.Contains(oneLine(page), "last looked at this group 42s ago") {
		t.Errorf("the page of the group:\n%s", page)
	}
	s.m.openGroup("shop/carts")
	if head, _, _ := strings.Cut(s.m.frame().Bare(), "\n"); strings.Contains(head, "STALE") {
		t.Errorf("a group beside it: %s", head)
	}
	s.ping(map[string]time.Duration{"shop/orders": time.Second})
	if s.m.fleet.groups["shop/orders"].isStale() {
		t.Error("the operator looks at the group again, and it is still called stale")
	}
}

// TestSuspendedMachine: after a laptop slept, what the operator said before is old, although the monotonic clock stood still.
func TestSuspendedMachine(t *testing.T) {
	now := time.Now()
	c := connection{now: clocktest.Suspended(now, time.Minute), heardAt: now, objectsAt: now, link: feed.Link{Up: true}}
	if quiet, stale := c.stale(); !stale || quiet < time.Minute {
		t.Errorf("called live after a minute of sleep: %s", quiet)
	}
	if age := c.resourceAge(); age < time.Minute {
		t.Errorf("the dashboard shows the custom resource as %s old", age)
	}
	g := &group{told: &feed.Told{}, age: time.Second, agedAt: now, aged: true}
	if age := g.lookedAgo(c.now); age < time.Minute {
		t.Errorf("the dashboard shows the last look as %s ago", age)
	}
}

// TestSitesComeAndGo: a key acts on the site that was chosen, wherever it is in the list, and on no other once it is gone.
func TestSitesComeAndGo(t *testing.T) {
	s, asked := acting(true)
	listed := func(sites ...string) {
		s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{object("orders", 7, sites...)}, At: s.at})
		seen := make([]wire.SiteStatus, 0, len(sites))
		for _, name := range sites {
			seen = append(seen, site(name, "primary-candidate", 0, 0))
		}
		s.tell(false, told("orders", 7, seen...))
	}
	listed("paris", "frankfurt", "madrid")
	s.typing(":orders\njj")
	listed("madrid", "oslo", "paris", "frankfurt")
	s.typing("c")
	if len(*asked) != 1 || (*asked)[0].Argument != "madrid" {
		t.Fatalf("madrid was chosen, and asked was %+v", *asked)
	}
	listed("oslo", "paris", "frankfurt")
	s.typing("cf")
	if len(*asked) != 1 || s.m.notice != "choose a site first" {
		t.Fatalf("madrid is gone, and asked was %+v (%q)", *asked, s.m.notice)
	}
	s.typing("jf")
	if len(*asked) != 2 || (*asked)[1].Argument != "oslo" {
		t.Errorf("asked %+v", *asked)
	}
}

// TestPauseThatIsOver: a pause ends when the operator looks, not when its time is over.
func TestPauseThatIsOver(t *testing.T) {
	s := begin(Options{Group: "orders"})
	o := object("orders", 7, "paris", "frankfurt", "madrid")
	paused(o, s.at.Add(-time.Second))
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{o}, At: s.at})
	if text := oneLine(s.m.frame().Bare()); strings.Contains(text, "0 s left") || !strings.Contains(text, "until its next look, the operator replaces no lost active site") {
		t.Errorf("says:\n%s", text)
	}
}
