// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// noted is a runner that does nothing.
type noted struct{ outcome string }

func (noted) Run() error { return nil }

func (noted) SetStdin(io.Reader) {}

func (noted) SetStdout(io.Writer) {}

func (noted) SetStderr(io.Writer) {}

func (n noted) Outcome() string { return n.outcome }

// acting is a story whose actions are noted.
func acting(allowed bool) (*story, *[]Action) {
	var asked []Action
	s := begin(Options{AllowActions: allowed, Perform: func(a Action) Runner {
		asked = append(asked, a)
		return noted{"asked for"}
	}})
	return s, &asked
}

func TestActions(t *testing.T) {
	for name, c := range map[string]struct {
		keys string
		want Action
		says string
	}{
		"failover to the chosen site":  {":orders\nj f", Action{VerbFailover, "shop", "orders", "frankfurt"}, "kubectl mfg failover orders -n shop --to frankfurt"},
		"reclone of the chosen site":   {":orders\njjc", Action{VerbReclone, "shop", "orders", "madrid"}, "kubectl mfg reclone orders madrid -n shop"},
		"abort":                        {":orders\na", Action{VerbAbort, "shop", "orders", ""}, "kubectl mfg failover orders -n shop --abort"},
		"command abort":                {"j:abort\n", Action{VerbAbort, "shop", "orders", ""}, "kubectl mfg failover orders -n shop --abort"},
		"pause":                        {":orders\np", Action{VerbPause, "shop", "orders", "30m"}, "kubectl mfg pause orders -n shop --for 30m"},
		"command failover in the list": {"j:failover madrid\n", Action{VerbFailover, "shop", "orders", "madrid"}, "kubectl mfg failover orders -n shop --to madrid"},
		"command pause":                {"j:pause 5m\n", Action{VerbPause, "shop", "orders", "5m"}, "kubectl mfg pause orders -n shop --for 5m"},
		"command resume":               {"j:resume\n", Action{VerbResume, "shop", "orders", ""}, "kubectl mfg resume orders -n shop"},
	} {
		t.Run(name, func(t *testing.T) {
			s, asked := acting(true)
			s.typing(c.keys)
			if len(*asked) != 1 || (*asked)[0] != c.want {
				t.Errorf("asked %+v", *asked)
			}
			s, asked = acting(false)
			s.typing(c.keys)
			if len(*asked) != 0 {
				t.Errorf("a dashboard that only looks did %+v", *asked)
			}
			if s.m.offer != c.says {
				t.Errorf("says %q, %q", s.m.notice, s.m.offer)
			}
			for _, size := range [][2]int{{40, 24}, {80, 24}, {120, 40}} {
				s.m.width, s.m.height = size[0], size[1]
				if text := strings.ReplaceAll(s.m.frame().Bare(), "\\\n", ""); !strings.Contains(text, c.says) {
					t.Errorf("%d columns: the command is not whole:\n%s", size[0], text)
				}
			}
		})
	}
}

// typing types a text, in which a line end is enter, and a blank outside of a prompt is left out.
func (s *story) typing(keys string) {
	for _, r := range keys {
		switch {
		case r == '\n':
			s.keys("enter")
		case r == ' ' && s.m.prompt == promptNone:
		default:
			s.keys(string(r))
		}
	}
}

func TestPausedGroupIsResumed(t *testing.T) {
	s, asked := acting(true)
	o := object("orders", 7, "paris", "frankfurt", "madrid")
	paused(o, noon.Add(time.Hour))
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{o}, At: s.at})
	s.typing(":orders\np")
	if len(*asked) != 1 || (*asked)[0].Verb != VerbResume {
		t.Errorf("asked %+v", *asked)
	}
	if text := s.m.frame().Bare(); !strings.Contains(text, "Paused    59m left") {
		t.Errorf("no countdown:\n%s", text)
	}
}

// TestAbortIsOffered where there is something to give up, and only there.
func TestAbortIsOffered(t *testing.T) {
	s := begin(Options{Group: "orders"})
	offered := func() bool { return strings.Contains(s.m.frame().Bare(), "a abort") }
	if offered() {
		t.Error("offered without anything to give up")
	}
	o := object("orders", 7, "paris", "frankfurt", "madrid")
	o.Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "paris", To: "frankfurt", Phase: v1alpha1.PlannedWaiting}
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{o}, At: s.at})
	if !offered() {
		t.Error("a planned failover under way cannot be given up")
	}
	o = object("orders", 7, "paris", "frankfurt", "madrid")
	o.Annotations = map[string]string{v1alpha1.AnnotationForceFailover: "frankfurt"}
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{o}, At: s.at})
	if !offered() {
		t.Error("a pending order cannot be withdrawn")
	}
}

// TestScrollEnds: whoever held a key down gets back with the first key up.
func TestScrollEnds(t *testing.T) {
	for _, page := range []string{":orders\n", "?"} {
		s := begin(Options{})
		s.m.height = 16
		s.typing(page)
		for range 50 {
			s.keys("pgdown")
			s.keys("j")
		}
		last := s.m.frame().Bare()
		s.keys("K")
		if s.m.frame().Bare() == last {
			t.Errorf("%q: scrolled to %d, and K shows the same", page, s.m.scroll)
		}
	}
}

// TestBlind: when neither feed says anything, every page says how old it is, and why.
func TestBlind(t *testing.T) {
	s := begin(Options{})
	s.send(unreadable(s))
	if text := s.m.frame().Bare(); strings.Contains(text, "this is old") {
		t.Errorf("the operator is heard:\n%s", text)
	}
	cut(s, 40*time.Second)
	for page, wants := range map[string][]string{
		"":          {"STALE for 4", "custom resource 100 s", "this is old: the API server does not"},
		":orders\n": {"STALE for 4", "custom resource 100 s", "has not answered for 100 s: the API server"},
	} {
		s.typing(page)
		text := s.m.frame().Bare()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%q lacks %q:\n%s", page, want, text)
			}
		}
		s.typing(":groups\n")
	}
	s.send(feed.Objects{Whole: true, Changed: []*v1alpha1.MysqlFailoverGroup{object("orders", 7, "paris", "frankfurt")}, At: s.at.Add(ahead)})
	if text := s.m.frame().Bare(); strings.Contains(text, "this is old") || !strings.Contains(text, "custom resource only") {
		t.Errorf("it is read again:\n%s", text)
	}
}

func TestOutcome(t *testing.T) {
	s, _ := acting(true)
	s.send(done{action: Action{Verb: VerbPause, Group: "orders"}, words: "asked for: paused until noon"})
	if !strings.Contains(s.m.frame().Bare(), "pause orders: asked for: paused until noon") {
		t.Error("the outcome is not shown")
	}
	s.send(done{action: Action{Verb: VerbPause, Group: "orders"}, err: errors.New("no terminal")})
	if !strings.Contains(s.m.frame().Bare(), "no terminal") {
		t.Error("the error is not shown")
	}
	s.pass(noticeFor + 2*time.Second)
	if s.m.notice != "" {
		t.Error("the outcome stays for ever")
	}
}

func TestPages(t *testing.T) {
	s := begin(Options{})
	steps := []struct {
		keys string
		want string
	}{
		{"jj", "> users"},
		{"k", "> orders"},
		{"k k", "> carts"},
		{"G", "> users"},
		{"g", "> carts"},
		{"?", "Everywhere"},
		{"?", "> carts"},
		{"\n", "shop/carts"},
		{"?", "Everywhere"},
		{"x:groups\n", "> carts"},
		{"/ser\n", "filter /ser"},
		{"\n", "shop/users"},
		{":carts\n", "shop/carts"},
		{":shop/orders\n", "shop/orders"},
		{":nothing\n", "no such command or group: nothing"},
		{":failover\n", ":failover SITE"},
		{":filter \n", "> orders"},
	}
	for _, step := range steps {
		s.typing(step.keys)
		if text := s.m.frame().Bare(); !strings.Contains(text, step.want) {
			t.Fatalf("after %q there is no %q:\n%s", step.keys, step.want, text)
		}
	}
	s.keys("enter", "tab")
	if s.m.open != "shop/users" {
		t.Errorf("tab opened %s", s.m.open)
	}
	s.keys("esc", "esc")
	if s.m.page != pageList {
		t.Error("esc does not lead back")
	}
}

func TestPrompt(t *testing.T) {
	s := begin(Options{})
	s.typing("/orderz")
	s.keys("backspace")
	s.typing("s")
	if s.m.fleet.filter != "orders" || len(s.m.fleet.order) != 1 {
		t.Errorf("filter %q shows %v", s.m.fleet.filter, s.m.fleet.order)
	}
	s.send(tea.PasteMsg{Content: "\x1b[31m\n"})
	if strings.ContainsAny(s.m.typed, "\x1b\n") {
		t.Errorf("typed %q", s.m.typed)
	}
	s.keys("esc")
	if s.m.fleet.filter != "" || s.m.prompt != promptNone || len(s.m.fleet.order) != 3 {
		t.Error("esc does not end the filter")
	}
	s.typing(":q")
	if _, cmd := s.m.Update(press("enter")); !quits(cmd) {
		t.Error(":q does not quit")
	}
	for _, k := range []string{"q", "ctrl+c"} {
		if _, cmd := begin(Options{}).m.Update(press(k)); !quits(cmd) {
			t.Errorf("%s does not quit", k)
		}
	}
	s.keys("esc")
	s.typing("/q")
	if s.m.fleet.filter != "q" {
		t.Error("q typed into a filter is no letter")
	}
}

func quits(cmd tea.Cmd) bool {
	if cmd == nil {
		return false
	}
	_, is := cmd().(tea.QuitMsg)
	return is
}

// TestAsks: what is asked about a group is asked only while it is open, and its decision only while there is one.
func TestAsks(t *testing.T) {
	events, whys := 0, 0
	o := Options{
		Events: func(ns, name string) Answer { events++; return Named(ns, name) },
		Why:    func(ns, name string) Answer { whys++; return Named(ns, name) },
	}
	s := begin(o)
	drain(s.m.asks())
	if events+whys != 0 {
		t.Errorf("the list asks %d, %d times", events, whys)
	}
	s.typing(":orders\n")
	drain(s.m.asks())
	if events != 1 || whys != 0 {
		t.Errorf("a healthy group: asked for events %d, why %d times", events, whys)
	}
	s = failingOver(s)
	s.m.whyAt = time.Time{}
	drain(s.m.asks())
	if whys != 1 {
		t.Errorf("a group that fails over: asked why %d times", whys)
	}
}

// drain runs a command and those in it.
func drain(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	if batch, is := cmd().(tea.BatchMsg); is {
		for _, c := range batch {
			drain(c)
		}
	}
}

// TestHostileText: nothing that a server or anybody in the cluster writes reaches the terminal as a control sequence.
func TestHostileText(t *testing.T) {
	s := begin(Options{Group: "orders", Colour: true})
	evil := site("frankfurt", "primary-candidate", 0, 0)
	evil.State, evil.Message, evil.Node = "Detached", "\x1b]0;owned\a\x1b[2J\u202eevil\r\n\x9b31m", "n\x1b[1m"
	g := told("orders", 7, site("paris", "primary-candidate", 0, 0), evil)
	g.Verdict, g.Message = "Alert", "\x1b[41m"
	s.tell(false, g)
	for _, size := range sizes {
		s.m.width, s.m.height = size[0], size[1]
		exact(t, s.m.frame(), size[0], size[1])
		drawn := s.m.frame().Draw(true)
		for _, bad := range []string{"\x1b]", "\a", "\x1b[2J", "\r", "\u202e", "\x9b", "\x1b[41m"} {
			if strings.Contains(drawn, bad) {
				t.Errorf("%q is in the frame", bad)
			}
		}
	}
}

// TestSnapshotForgets: a group that a new snapshot does not name, and the API server does not either, is gone.
func TestSnapshotForgets(t *testing.T) {
	s := newStory(Options{Namespace: "shop"})
	s.tell(true, told("orders", 7, site("paris", "primary-candidate", 0, 0)), told("carts", 3, site("paris", "primary-candidate", 0, 0)))
	if len(s.m.fleet.order) != 2 {
		t.Fatalf("%v", s.m.fleet.order)
	}
	s.tell(true, told("orders", 7, site("paris", "primary-candidate", 0, 0)))
	if len(s.m.fleet.order) != 1 || s.m.fleet.groups["shop/carts"] != nil {
		t.Errorf("%v", s.m.fleet.order)
	}
}

// TestObjectsForget: only a list of all objects says that one is gone by not naming it.
func TestObjectsForget(t *testing.T) {
	s := newStory(Options{Namespace: "shop"})
	carts, orders := object("carts", 3, "paris"), object("orders", 7, "paris")
	s.send(feed.Objects{Whole: true, Changed: []*v1alpha1.MysqlFailoverGroup{carts, orders}, At: s.at})
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{orders}, At: s.at})
	if len(s.m.fleet.order) != 2 {
		t.Errorf("a change of another one: %v", s.m.fleet.order)
	}
	s.send(feed.Objects{Whole: true, Changed: []*v1alpha1.MysqlFailoverGroup{orders}, At: s.at})
	if len(s.m.fleet.order) != 1 || s.m.fleet.groups["shop/carts"] != nil {
		t.Errorf("a whole list without it: %v", s.m.fleet.order)
	}
}

// TestUnknownGroupIsNotHealthy: a script that asks for a group that there is not must not be told that all is well.
func TestUnknownGroupIsNotHealthy(t *testing.T) {
	for group, want := range map[string]bool{"": true, "orders": true, "ordres": false} {
		s := newStory(Options{Namespace: "shop", Group: group})
		s.send(feed.Objects{Whole: true, Changed: []*v1alpha1.MysqlFailoverGroup{object("orders", 7, "paris", "frankfurt")}, At: s.at.Add(ahead)})
		s.tell(true, told("orders", 7, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0, 0)))
		if got := s.m.Healthy(); got != want {
			t.Errorf("group %q: healthy %t", group, got)
		}
	}
}

// TestLateWhy: an answer about a group that was left meanwhile is not shown as one about the next.
func TestLateWhy(t *testing.T) {
	s := begin(Options{Group: "orders"})
	s.send(why(Named("shop", "orders")))
	if s.m.why.name() != "shop/orders" {
		t.Errorf("why of %q", s.m.why.name())
	}
	if s.send(why(Named("shop", "carts"))); s.m.why.name() != "shop/orders" {
		t.Errorf("why of %q", s.m.why.name())
	}
}

// TestEndedWhileAVerbRuns: who ended the process while a verb had the terminal meant the dashboard too.
func TestEndedWhileAVerbRuns(t *testing.T) {
	s := begin(Options{})
	if _, cmd := s.m.Update(done{err: ErrEnded}); cmd == nil || !quits(cmd) {
		t.Error("the dashboard goes on")
	}
	if _, cmd := s.m.Update(done{err: io.EOF}); cmd != nil {
		t.Error("the failure of a verb ends the dashboard")
	}
}
