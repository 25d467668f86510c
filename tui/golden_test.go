// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/exp/golden"
	"github.com/charmbracelet/x/exp/teatest/v2"

	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// sizes are the screens of the golden frames.
var sizes = [][2]int{{80, 24}, {120, 40}, {200, 60}}

// shown runs a model in a whole program of that size, with these keys typed, and returns what it shows at the end.
func shown(t *testing.T, m Model, width, height int, keys ...string) string {
	t.Helper()
	p := teatest.NewTestModel(t, still{m}, teatest.WithInitialTermSize(width, height))
	for _, k := range keys {
		p.Send(press(k))
	}
	p.Send(tea.Quit())
	final := p.FinalModel(t, teatest.WithFinalTimeout(30*time.Second)).(still)
	frame := final.frame()
	exact(t, frame, width, height)
	if dir := os.Getenv("FRAMES"); dir != "" { // for who wants to look at them as a terminal shows them: less -R
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(t.Name())+".txt"), []byte(frame.Draw(true)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return frame.Bare()
}

// still is a dashboard for which time stands still.
type still struct{ Model }

func (s still) Init() tea.Cmd { return nil }

func (s still) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m, cmd := s.Model.Update(msg)
	return still{m.(Model)}, cmd
}

// exact checks that a frame fills the screen and nothing more.
func exact(t *testing.T, frame canvas.Block, width, height int) {
	t.Helper()
	lines := strings.Split(frame.Draw(true), "\n")
	if len(lines) != height {
		t.Errorf("%d lines, not %d", len(lines), height)
	}
	for i, l := range lines {
		if w := lipgloss.Width(l); w != width {
			t.Errorf("line %d is %d wide, not %d: %q", i, w, width, l)
		}
	}
}

func TestFrames(t *testing.T) {
	frames := map[string]struct {
		model func() Model
		keys  []string
	}{
		"list":     {model: func() Model { return begin(Options{}).m }},
		"filter":   {model: func() Model { return begin(Options{}).m }, keys: []string{"/", "o", "r"}},
		"healthy":  {model: func() Model { return begin(Options{}).m }, keys: []string{":", "o", "r", "d", "e", "r", "s", "enter"}},
		"keyrings": {model: func() Model { return begin(Options{}).m }, keys: []string{":", "u", "s", "e", "r", "s", "enter", "j"}},
		"failover": {model: func() Model { return failingOver(begin(Options{Group: "orders"})).m }},
		"ascii":    {model: func() Model { return failingOver(begin(Options{Group: "orders", ASCII: true})).m }},
		"stale":    {model: func() Model { return cut(begin(Options{Group: "orders"}), 8*time.Second).m }},
		"fallen":   {model: func() Model { return cut(begin(Options{Group: "orders"}), 40*time.Second).m }},
		"lost": {model: func() Model {
			s := cut(begin(Options{Group: "orders"}), 40*time.Second)
			s.send(unreadable(s))
			return s.m
		}},
		"hints":      {model: func() Model { return begin(Options{Group: "carts"}).m }},
		"split":      {model: func() Model { return splitBrain(begin(Options{Group: "users"})).m }},
		"split-list": {model: func() Model { return splitBrain(begin(Options{})).m }},
		"cache":      {model: func() Model { return cached(begin(Options{Group: "orders"})).m }},
		"cache-list": {model: func() Model { return cached(begin(Options{})).m }},
		"cache-move": {model: func() Model { return cacheFollows(failingOver(cached(begin(Options{Group: "orders"})))).m }},
		"planned":    {model: func() Model { return planned(begin(Options{Group: "orders"})).m }},
		"moving":     {model: func() Model { return moving(planned(begin(Options{Group: "orders"}))).m }},
		"opening":    {model: func() Model { return opening(failingOver(begin(Options{Group: "orders"}))).m }},
		"loss":       {model: func() Model { return withLoss(failingOver(begin(Options{Group: "orders"}))).m }},
		"blocked":    {model: func() Model { return blocked(begin(Options{Group: "orders"})).m }},
		"ordered":    {model: func() Model { return ordered(blocked(begin(Options{Group: "orders"}))).m }},
		"reverted":   {model: func() Model { return reverted(moving(planned(begin(Options{Group: "orders"})))).m }},
		"taken-back": {model: func() Model { return takenBack(reverted(moving(planned(begin(Options{Group: "orders"}))))).m }},
		"proven":     {model: func() Model { return proven(begin(Options{Group: "orders"})).m }},
		"behind":     {model: func() Model { return catchingUp(begin(Options{Group: "orders"})).m }},
		"backing-up": {model: func() Model { return backingUp(begin(Options{Group: "orders"})).m }},
		"restoring":  {model: func() Model { return restoring(newStory(Options{Group: "orders", Namespace: "shop"})).m }},
		"cache-lost": {model: func() Model { return cacheLost(cached(begin(Options{Group: "orders"}))).m }},
		"pods":       {model: func() Model { return drilled(failingOver(begin(looking(Options{Group: "orders"}))), "d").m }},
		"logs":       {model: func() Model { return drilled(failingOver(begin(looking(Options{Group: "orders"}))), "l").m }},
		"backups":    {model: func() Model { return backedUp(begin(Options{Group: "orders"})).m }},
		"help":       {model: func() Model { return begin(Options{AllowActions: true}).m }, keys: []string{"?"}},
		"read-only":  {model: func() Model { return begin(Options{Group: "orders"}).m }, keys: []string{"j", "f"}},
	}
	for name, f := range frames {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				frame := shown(t, f.model(), size[0], size[1], f.keys...)
				golden.RequireEqual(t, frame)
			})
		}
	}
}

// cut loses the stream and lets time go on.
func cut(s *story, d time.Duration) *story {
	s.send(feed.Changes{Link: &feed.Link{Error: "read the stream: connection reset"}})
	s.pass(d)
	return s
}

// unreadable is what the watch of the custom resources says when the API server is gone.
func unreadable(s *story) feed.Objects {
	return feed.Objects{Error: "the API server does not answer: dial tcp 10.0.0.1:6443: i/o timeout", At: s.at.Add(ahead)}
}

// TestNoMeaningByColourAlone: without colour every frame says the same words.
func TestNoMeaningByColourAlone(t *testing.T) {
	m := failingOver(begin(Options{Group: "orders", Colour: true})).m
	m.width, m.height = 120, 40
	painted := m.frame().Draw(true)
	if !strings.Contains(painted, "\x1b[31m") {
		t.Error("there is no colour to take away")
	}
	var bare strings.Builder
	for rest := painted; rest != ""; {
		before, after, found := strings.Cut(rest, "\x1b[")
		bare.WriteString(before)
		if !found {
			break
		}
		_, rest, _ = strings.Cut(after, "m")
	}
	m.options.Colour = false
	if want := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(m.frame().Draw(false), "\x1b[1m", ""), "\x1b[7m", ""), "\x1b[m", ""); bare.String() != want {
		t.Error("with colour the screen says something else than without")
	}
}

// TestDocumentedFrames: the frames in the documentation are those that the dashboard draws.
func TestDocumentedFrames(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "dashboard.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"list-120x40", "failover-120x40", "healthy-80x24"} {
		frame, err := os.ReadFile(filepath.Join("testdata", "TestFrames", name+".golden"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "```text\n"+string(frame)+"```") {
			t.Errorf("docs/dashboard.md does not show %s as it is", name)
		}
	}
}

// TestAnySize: no size makes a frame that does not fit, or panics.
func TestAnySize(t *testing.T) {
	models := []Model{begin(Options{}).m, failingOver(begin(Options{Group: "orders"})).m, New(Options{Now: noon}), failingOver(begin(Options{Group: "orders", ASCII: true})).m,
		cacheFollows(failingOver(cached(begin(Options{Group: "orders"})))).m}
	for _, m := range models {
		for width := leastWidth; width <= 210; width += 7 {
			for height := leastHeight; height <= 64; height += 5 {
				m.width, m.height = width, height
				exact(t, m.frame(), width, height)
			}
		}
	}
}
