// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// TestFallsBack: what the operator said is dropped after a while, and believed again when it is back.
func TestFallsBack(t *testing.T) {
	s := begin(Options{Group: "orders"})
	cut(s, fallBackAfter+2*time.Second)
	g := s.m.fleet.groups["shop/orders"]
	if !s.m.fleet.fellBack || g.report.Facts.Source != "LastKnown" || g.report.Sites[1].LagSeconds != nil {
		t.Errorf("still believed: %+v", g.report.Facts)
	}
	o := object("orders", 8, "paris", "frankfurt", "madrid")
	o.Status.ActiveSite = "frankfurt"
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{o}, At: s.at})
	if g.report.ActiveSite != "frankfurt" {
		t.Error("the custom resource is not followed")
	}
	live := told("orders", 8, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0.5, 3))
	live.ActiveSite = "frankfurt"
	s.tell(true, live)
	if s.m.fleet.fellBack || g.report.Facts.Source != "Live" {
		t.Error("the operator is back and not believed")
	}
	if _, stale := s.m.fleet.stale(); stale {
		t.Error("still called stale")
	}
}

// TestQuiet: a connection that says nothing is called stale although it stands.
func TestQuiet(t *testing.T) {
	s := begin(Options{})
	s.pass(quietAfter + 2*time.Second)
	if text := s.m.frame().Bare(); !strings.Contains(text, "STALE for 1") {
		t.Errorf("not called stale:\n%s", text)
	}
}

// TestStaleOnNarrowScreens: no screen is so narrow that it does not say that it is old.
func TestStaleOnNarrowScreens(t *testing.T) {
	fallen, lost := cut(begin(Options{}), 40*time.Second), cut(begin(Options{Group: "orders"}), 100*time.Second)
	lost.send(unreadable(lost))
	for name, m := range map[string]Model{"cut": cut(begin(Options{}), 8*time.Second).m, "fallen": fallen.m, "lost": lost.m} {
		for m.width = leastWidth; m.width <= 80; m.width++ {
			head, _, _ := strings.Cut(m.frame().Bare(), "\n")
			if !strings.Contains(head, "STALE for") || !strings.Contains(head, "mfg") && m.width > 50 {
				t.Errorf("%s, %d columns: %q", name, m.width, head)
			}
		}
	}
}
