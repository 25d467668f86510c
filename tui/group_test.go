// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// oneLine is a page without its line breaks.
func oneLine(page string) string { return strings.Join(strings.Fields(page), " ") }

// TestSplitBrainComesFirst: two writers stand above an outage and a failover, and the news do not call the second one fenced.
func TestSplitBrainComesFirst(t *testing.T) {
	s := splitBrain(failingOver(begin(Options{})))
	if s.m.fleet.order[0] != "shop/users" {
		t.Errorf("the order is %v", s.m.fleet.order)
	}
	s.m.width, s.m.height = 120, 40
	frame := s.m.frame().Bare()
	for _, want := range []string{"! SplitBrain", "SeveralWritableSites", "frankfurt: Replica -> Writable: is writable although it is not active"} {
		if !strings.Contains(frame, want) {
			t.Errorf("no %q in\n%s", want, frame)
		}
	}
}

// TestHintsAreWhole: a command is on the screen as it is to be typed, whatever the screen's width: a shell reads the lines as one.
func TestHintsAreWhole(t *testing.T) {
	const log = "kubectl logs -c sidecar --tail=100 -n shop -l mysql-mfg.io/failover-group=users,mysql-mfg.io/site=frankfurt,app.kubernetes.io/name=mysql"
	s := splitBrain(begin(Options{Group: "users"}))
	for _, width := range []int{40, 80, 105, 110, 120, 200} {
		s.m.width, s.m.height = width, 200
		frame := strings.ReplaceAll(s.m.frame().Bare(), "\\\n", "")
		for _, command := range []string{"kubectl mfg explain users -n shop", log} {
			if !strings.Contains(frame, command+"\n") {
				t.Errorf("%d columns: no %q in\n%s", width, command, frame)
			}
		}
	}
	if frame := s.m.Once(80); !strings.Contains(frame, log+"\n") {
		t.Errorf("no log in\n%s", frame)
	}
}

// TestTheDeadSiteComesFirst: of a failover the problem and the hint are those of the site that is lost; what its replicas do without it
// follows from that.
func TestTheDeadSiteComesFirst(t *testing.T) {
	s := failingOver(begin(Options{Group: "orders"}))
	for _, size := range sizes {
		s.m.width, s.m.height = size[0], size[1]
		text := oneLine(s.m.frame().Bare())
		dead, follows := strings.Index(text, "Problem paris is unreachable: neither the sidecar nor MySQL answers [SiteUnreachable]"), strings.Index(text, "Follows from that: madrid is fenced")
		if dead < 0 || follows < dead {
			t.Errorf("%v: the cause at %d, what follows at %d:\n%s", size, dead, follows, text)
		}
		if change := strings.Index(text, "Changing emergency paris → frankfurt"); change < 0 || change > dead {
			t.Errorf("%v: the change at %d, the cause at %d", size, change, dead)
		}
	}
	s.m.page, s.m.width, s.m.height = pageList, 120, 40
	if text := oneLine(s.m.frame().Bare()); !strings.Contains(text, "SiteUnreachable paris") {
		t.Errorf("the list:\n%s", text)
	}
}

// TestHoldWithoutChange: a hold outlasts what began it, so what it says holds true of a group that is blocked.
func TestHoldWithoutChange(t *testing.T) {
	s := begin(Options{Group: "orders"})
	g := told("orders", 7, site("paris", "primary-candidate", 0, 0))
	g.Hold, g.Topology, g.Verdict, g.Reason, g.Message = true, "ActiveSilent", "Blocked", "LossBudget", "frankfurt lacks at least 9 transactions"
	s.tell(false, g)
	frame := oneLine(s.m.Once(120))
	if !strings.Contains(frame, "Hold the operator lets no site open now; a site that is open stays open") {
		t.Error(frame)
	}
}

// TestForecastThatIsBlocked says of the site that it would not, as kubectl mfg status does.
func TestForecastThatIsBlocked(t *testing.T) {
	for message, want := range map[string]string{
		"cooldown until noon":       "If lost frankfurt would take over, but: cooldown until noon [Cooldown]",
		"":                          "If lost frankfurt would take over [Cooldown]",
		"frankfurt has just failed": "If lost frankfurt would take over, but: frankfurt has just failed [Cooldown]",
	} {
		s := begin(Options{Group: "orders"})
		g := told("orders", 7, site("paris", "primary-candidate", 0, 0))
		g.Forecast = &wire.Forecast{Site: "frankfurt", BlockedBy: "Cooldown", Message: message}
		s.tell(false, g)
		if frame := oneLine(s.m.Once(120)); !strings.Contains(frame, want) {
			t.Errorf("no %q in %s", want, frame)
		}
	}
}

// TestForecastThatIsOld: once only the custom resource is left, the forecast is the last known one.
func TestForecastThatIsOld(t *testing.T) {
	s := begin(Options{Group: "orders"})
	o := object("orders", 7, "paris", "frankfurt", "madrid")
	o.Status.Forecast = &v1alpha1.Forecast{Site: "frankfurt", LostTransactions: "<10"}
	s = cut(s.changed(o), 40*time.Second)
	if frame, want := oneLine(s.m.Once(120)), "If lost last known: frankfurt would take over; <10 transactions would be lost"; !strings.Contains(frame, want) {
		t.Errorf("no %q in %s", want, frame)
	}
}

// TestOneFrameTellsWhatHappened: a frame was open for no time, so what happened is what Kubernetes keeps.
func TestOneFrameTellsWhatHappened(t *testing.T) {
	kept := []report.Event{{Time: noon, Type: "Normal", Reason: "Promoted", Object: "MysqlFailoverGroup/orders", Message: "paris takes writes"}}
	for name, want := range map[string]string{"orders": "Promoted: paris takes writes", "users": "no events are kept", "": "GROUP"} {
		asked := 0
		m := New(Options{Namespace: "shop", Group: name, Now: noon, Events: func(namespace, group string) Answer {
			asked++
			h := Named(namespace, group)
			if group == "orders" {
				h.Events = kept
			}
			return h
		}})
		m = Gather(t.Context(), m, Feeds{Watch: func(_ context.Context, deliver func(feed.Objects)) {
			deliver(feed.Objects{Whole: true, Changed: []*v1alpha1.MysqlFailoverGroup{object("orders", 7, "paris"), object("users", 7, "paris")}, At: noon})
		}})
		if frame := m.Once(120); !strings.Contains(frame, want) || strings.Contains(frame, "since the dashboard was opened") || asked > 0 != (name != "") {
			t.Errorf("%q: asked %d times, no %q in\n%s", name, asked, want, frame)
		}
	}
}

// TestFailure: one frame of a group that nobody knows is no frame, whoever answered.
func TestFailure(t *testing.T) {
	read := feed.Objects{Whole: true, Changed: []*v1alpha1.MysqlFailoverGroup{object("orders", 7, "paris")}, At: noon}
	heard := feed.Changes{Whole: true, At: noon, Clock: noon, Link: &feed.Link{Up: true}, Groups: []feed.Told{{Status: told("orders", 7, site("paris", "", 0, 0)), Clock: noon}}}
	denied := feed.Objects{Error: "you may not list groups", At: noon}
	for name, tc := range map[string]struct {
		group string
		heard []any
		want  string
	}{
		"Known":               {"orders", []any{read}, ""},
		"KnownToTheOperator":  {"orders", []any{heard, denied}, ""},
		"All":                 {"", []any{read}, ""},
		"AllAreNone":          {"", []any{feed.Objects{Whole: true, At: noon}}, ""},
		"Typo":                {"ordres", []any{heard, read}, `no group "ordres" in namespace "shop"` + "\n  list all groups: kubectl mfg status -A"},
		"TypoAndDenied":       {"ordres", []any{heard, denied}, "you may not list groups"},
		"TypoAndNotRead":      {"ordres", []any{heard}, `the operator tells nothing of group "ordres"`},
		"ReadOnceAndNoLonger": {"ordres", []any{read, denied}, "you may not list groups"},
		"Nothing":             {"", nil, "neither the API server nor the operator answered"},
	} {
		s := newStory(Options{Namespace: "shop", Group: tc.group})
		for _, msg := range tc.heard {
			s.send(msg)
		}
		if got := s.m.Failure(); !strings.HasPrefix(got, tc.want) || got != "" && tc.want == "" {
			t.Errorf("%s: %q, not %q", name, got, tc.want)
		}
	}
}
