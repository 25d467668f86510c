// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// activeSilent tells of orders without its active site.
func activeSilent(s *story) {
	paris := site("paris", "primary-candidate", 0, 0)
	paris.State, paris.Reachable, paris.SidecarReachable, paris.Writable, paris.Fence = "Unreachable", false, false, false, "unknown"
	g := told("orders", 7, paris, site("frankfurt", "primary-candidate", 0, 0), site("madrid", "dr-only", 0, 0))
	g.Topology, g.Verdict, g.Reason, g.Forecast = "ActiveSilent", "Wait", "ActiveSiteSilent", nil
	s.tell(false, g)
}

// gate is the rule that decides while a lease runs.
func gate(s *story) why {
	return why(Answer{Namespace: "shop", Group: "orders", Deciding: &wire.ExplainedRule{Name: "Gate", Until: s.at.Add(20 * time.Second)}})
}

// TestWhyIsOfThisFailover: what decided an earlier failover, and when its lease ran out, is not shown in the next.
func TestWhyIsOfThisFailover(t *testing.T) {
	s := begin(Options{Group: "orders"})
	activeSilent(s)
	s.send(gate(s))
	if text := s.m.frame().Bare(); !strings.Contains(text, "until another site can open") {
		t.Fatalf("the rule is not shown at all:\n%s", text)
	}
	s.tell(false, told("orders", 7, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0, 0), site("madrid", "dr-only", 0, 0)))
	if s.m.why.Deciding != nil {
		t.Error("it is kept although nothing is decided")
	}
	s.send(gate(s)) // an answer that was late
	s.pass(time.Hour)
	activeSilent(s)
	if text := s.m.frame().Bare(); strings.Contains(text, "Waited") {
		t.Errorf("of the failover an hour ago:\n%s", text)
	}
}

// TestWhyIsNotOlderThanTheNews: an answer from before a lost stream is not shown beside what the operator says afterwards.
func TestWhyIsNotOlderThanTheNews(t *testing.T) {
	s := begin(Options{Group: "orders"})
	activeSilent(s)
	s.send(gate(s))
	s = cut(s, 40*time.Second)
	if s.m.why.Deciding == nil {
		t.Error("dropped, and nothing newer is known")
	}
	activeSilent(s)
	if s.m.why.Deciding != nil {
		t.Errorf("kept: %+v", s.m.why.Deciding)
	}
}
