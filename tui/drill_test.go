// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/tui/drill"
	"github.com/mysql-mfg/mfg/tui/feed"
	"github.com/mysql-mfg/mfg/tui/gauge"
)

// TestDrill: pods and logs of the chosen site are asked for when a key wants them, one question at a time, and again while they are shown.
func TestDrill(t *testing.T) {
	var asked []drill.Question
	s := begin(Options{Look: func(q drill.Question) drill.Answer {
		asked = append(asked, q)
		return drill.Answer{Question: q, Lines: []drill.Line{{Source: "east/mysql", Level: "INFO", Text: "one"}, {Source: "east/sidecar", Level: "WARN", Text: "\x1b[2Jtwo"}}}
	}})
	s.m.width, s.m.height = 120, 40
	press1 := func(k string) (answer func()) {
		m, cmd := s.m.Update(press(k))
		s.m = m.(Model)
		if cmd == nil {
			return nil
		}
		return func() { s.send(cmd()) }
	}
	s.typing(":orders\n")
	s.keys("j")
	answer := press1("l")
	if !strings.Contains(s.m.frame().Bare(), "asking the API server") {
		t.Error("what is not known yet is not said")
	}
	if press1("d") != nil || s.m.drill.Question.Kind != drill.Pods {
		t.Error("a second question is asked while the first is under way")
	}
	s.m.drill.Question.Kind = drill.Logs
	answer()
	if frame := s.m.frame(); !strings.Contains(frame.Bare(), "east/mysql") || strings.Contains(frame.Draw(true), "\x1b[2J") {
		t.Errorf("the logs are not shown as they are to be:\n%q", frame.Draw(true))
	}
	if want := (drill.Question{Kind: drill.Logs, Namespace: "shop", Group: "orders", Site: "frankfurt"}); len(asked) != 1 || asked[0] != want {
		t.Errorf("asked %+v", asked)
	}
	s.typing("/WARN\n")
	if frame := s.m.frame().Bare(); strings.Contains(frame, "east/mysql") || !strings.Contains(frame, "east/sidecar") {
		t.Errorf("the filter shows\n%s", frame)
	}
	s.keys("esc")
	if s.m.page != pageDrill || s.m.drill.Filter != "" {
		t.Error("esc does not end the filter first")
	}
	s.m.lookAt = time.Time{}
	drain(s.m.asks())
	if len(asked) != 2 {
		t.Errorf("asked %d times while the logs are shown", len(asked))
	}
	s.m.looking = false
	press1("tab")()
	if last := asked[len(asked)-1]; last.Container != "mysql" {
		t.Errorf("tab asks for %+v", last)
	}
	s.keys("esc")
	n := len(asked)
	s.pass(10 * time.Second)
	drain(s.m.asks())
	if s.m.page != pageGroup || len(asked) != n {
		t.Error("logs are read that nobody looks at")
	}
	s.keys("s")
	if s.m.offer != "kubectl exec -it -n shop deploy/mysql-orders-frankfurt -c mysql -- bash" {
		t.Errorf("a shell: %q", s.m.offer)
	}
}

// TestLateDrill: an answer about what was left meanwhile is not shown as one about what is on the screen.
func TestLateDrill(t *testing.T) {
	s := begin(looking(Options{Group: "orders"}))
	s.keys("l")
	s.m.looking = true
	other := drill.Question{Kind: drill.Logs, Namespace: "shop", Group: "orders", Site: "madrid"}
	m, cmd := s.m.Update(looked(drill.Answer{Question: other, Error: "of another"}))
	s.m = m.(Model)
	if strings.Contains(s.m.frame().Bare(), "of another") {
		t.Error("a late answer is shown")
	}
	if cmd == nil {
		t.Error("the question that was put off is not asked")
	}
}

// TestFiguresAreAskedOnce: while a pod hangs no second question is asked, and the screen says that nobody knows.
func TestFiguresAreAskedOnce(t *testing.T) {
	asked := 0
	s := begin(Options{Figures: func(ns, name string) Answer { asked++; return Named(ns, name) }})
	s.typing(":orders\n")
	s.m.figuresAt = time.Time{}
	cmd := s.m.asks()
	s.m.figuresAt = time.Time{}
	drain(s.m.asks())
	if asked != 0 {
		t.Error("asked again before the answer was there")
	}
	drain(cmd)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	s.send(figures(Answer{Namespace: "shop", Group: "orders"}))
	if s.m.asking {
		t.Error("never asked again")
	}
}

// TestFiguresThatAreNotKnown are question marks, with the reason, also once they are old; never 0.
func TestFiguresThatAreNotKnown(t *testing.T) {
	s := begin(Options{Group: "orders"})
	page := func() string {
		s.m.width, s.m.height = 120, 40
		return oneLine(s.m.frame().Bare())
	}
	if text := page(); !strings.Contains(text, "disk 61% of 100Gi conn 42/151") || strings.Contains(text, "Figures") || !strings.Contains(text, "commits 118/s") {
		t.Errorf("known figures:\n%s", text)
	}
	s.send(figures(Answer{Namespace: "shop", Group: "orders", Figures: []gauge.Reading{reading("paris", 42), gauge.Unread("frankfurt", "it hangs")}}))
	if text := page(); !strings.Contains(text, "disk 61% of 100Gi conn ?") || !strings.Contains(text, "Figures connections are not known of frankfurt: it hangs") {
		t.Errorf("a pod that hangs:\n%s", text)
	}
	s.send(figures(Answer{Namespace: "shop", Group: "orders", Error: "you may not list pods"}))
	if text := page(); strings.Contains(text, "conn 42") || !strings.Contains(text, "Figures connections are not known: you may not list pods") {
		t.Errorf("no right:\n%s", text)
	}
	s.send(figures(Answer{Namespace: "shop", Group: "orders", Figures: []gauge.Reading{reading("paris", 42)}}))
	s.pass(figuresHold + 2*time.Second)
	if text := page(); strings.Contains(text, "conn 42") || strings.Contains(text, "conn 0") {
		t.Errorf("old figures:\n%s", text)
	}
}

// TestTheDiskIsThatOfStatus: the dashboard shows the number that kubectl mfg status shows, as df counts, also to those who may not ask pods.
// Room that only root may take is neither used nor part of the whole. Of a site that does not answer it is not known.
func TestTheDiskIsThatOfStatus(t *testing.T) {
	s := newStory(Options{Namespace: "shop", Group: "orders"})
	s.m.width, s.m.height = 120, 40
	paris, frankfurt, madrid := site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0, 0), site("madrid", "dr-only", 0, 0)
	paris.Volume = &wire.VolumeUse{UsedBytes: 37 << 30, TotalBytes: 100 << 30}
	frankfurt.Volume, frankfurt.Reachable = &wire.VolumeUse{UsedBytes: 50 << 30, TotalBytes: 100 << 30}, false
	madrid.Volume = nil
	s.send(feed.Objects{Whole: true, Changed: []*v1alpha1.MysqlFailoverGroup{object("orders", 7, "paris", "frankfurt", "madrid")}, At: s.at.Add(ahead)})
	s.tell(true, told("orders", 7, paris, frankfurt, madrid))
	s.pass(time.Second)
	text := oneLine(s.m.frame().Bare())
	if !strings.Contains(text, "disk 37% of 100Gi") || strings.Contains(text, "disk 50%") || strings.Contains(text, "conn") {
		t.Errorf("nobody asks pods:\n%s", text)
	}
	s.send(figures(Answer{Namespace: "shop", Group: "orders", Figures: []gauge.Reading{reading("paris", 42)}}))
	if text := oneLine(s.m.frame().Bare()); !strings.Contains(text, "disk 37% of 100Gi conn 42/151") || strings.Count(text, "disk ? conn ?") != 2 {
		t.Errorf("pods are asked:\n%s", text)
	}
}

// TestCatchUpIsShown: of a replica that gains, how long it takes; of one that does not, that.
func TestCatchUpIsShown(t *testing.T) {
	s := catchingUp(begin(Options{Group: "orders"}))
	for _, size := range sizes {
		s.m.width, s.m.height = size[0], size[1]
		if text := s.m.frame().Bare(); !strings.Contains(text, "46 s to go") || !strings.Contains(text, "falls behind") {
			t.Errorf("%v:\n%s", size, text)
		}
	}
}
