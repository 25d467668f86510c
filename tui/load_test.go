// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// The load of issue 5: 200 groups of 3 sites, each of which changes once a second.
const (
	loadGroups = 200
	// budget is the processor time for a second of it: 10 % of one core.
	budget = 100 * time.Millisecond
	// noise is how many times as much it may take here: beside other programs, which take its caches away, each second is dearer.
	noise = 3
)

func loaded(second int) []wire.GroupStatus {
	out := make([]wire.GroupStatus, 0, loadGroups)
	for i := range loadGroups {
		lag := float64((second*7+i)%30) / 10
		g := told(fmt.Sprintf("group-%03d", i), 7, site("paris", "primary-candidate", 0, 0),
			site("frankfurt", "primary-candidate", lag, int64(lag*40)), site("madrid", "dr-only", lag*2, int64(lag*90)))
		g.Sites[1].GTIDExecuted = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-123456789"
		out = append(out, g)
	}
	return out
}

func loadedModel() *story {
	s := newStory(Options{Namespace: "shop", Colour: true})
	o := feed.Objects{Whole: true, At: noon}
	for i := range loadGroups {
		o.Changed = append(o.Changed, object(fmt.Sprintf("group-%03d", i), 7, "paris", "frankfurt", "madrid"))
	}
	s.send(o, tea.WindowSizeMsg{Width: 200, Height: 60})
	s.tell(true, loaded(0)...)
	for i := range 120 { // plots are full
		s.tell(false, loaded(i)...)
		s.pass(time.Second)
	}
	return s
}

// spent is the processor time of this process so far.
func spent(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// second is one second of the load as the source delivers it, every 250 ms, and the clock. Each message is encoded and
// decoded as it is on the wire.
func second(p func(tea.Msg), n int, at time.Time) {
	groups := loaded(n)
	const deliveries = int(time.Second / feed.DeliverEvery)
	for d := range deliveries {
		c := feed.Changes{At: at.Add(ahead), Clock: at, Link: &feed.Link{Up: true}}
		for i := d; i < len(groups); i += deliveries {
			groups[i].ObservedAt = at
			body, _ := json.Marshal(groups[i])
			var heard wire.GroupStatus
			_ = json.Unmarshal(body, &heard)
			c.Groups = append(c.Groups, feed.Told{Status: heard, Clock: at})
		}
		p(c)
	}
	p(tick(at.Add(ahead)))
}

// BenchmarkSecond is a second of 200 groups of 3 sites that all change, drawn on the largest screen.
func BenchmarkSecond(b *testing.B) {
	for name, open := range map[string]bool{"list": false, "group": true} {
		b.Run(name, func(b *testing.B) {
			s := loadedModel()
			if open {
				s.keys("enter")
			}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				s.at = s.at.Add(time.Second)
				second(func(msg tea.Msg) { s.send(msg); _ = s.m.View() }, n, s.at)
			}
		})
	}
}

// TestLoad runs the whole program, terminal drawing included, at many times that load: keys typed meanwhile all arrive, in
// order, and a second of the load takes about a tenth of a second of one core at most.
func TestLoad(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes many times as long")
	}
	const seconds = 10
	for _, page := range []string{"list", "group"} {
		t.Run(page, func(t *testing.T) {
			s := loadedModel()
			if page == "group" {
				s.keys("enter")
			}
			in, out := newKeyboard(), &bytes.Buffer{}
			p := tea.NewProgram(still{s.m}, tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(framesPerSecond),
				tea.WithWindowSize(200, 60), tea.WithoutSignals(), tea.WithEnvironment([]string{"TERM=xterm-256color"}))
			typed := strings.Repeat("abcdefghij", 20)
			go func() {
				in.typing(":")
				for n := range seconds {
					s.at = s.at.Add(time.Second)
					second(p.Send, n, s.at)
					in.typing(typed[n*len(typed)/seconds : (n+1)*len(typed)/seconds])
				}
				in.typing("\x03")
			}()
			before := spent(t)
			final, err := p.Run()
			took := (spent(t) - before) / seconds
			if err != nil {
				t.Fatal(err)
			}
			if got := final.(still).typed; got != typed {
				t.Errorf("typed %q, arrived %q", typed, got)
			}
			t.Logf("%s: a second of %d groups took %s of one core (%.1f %%), %d bytes to the terminal", page, loadGroups, took, float64(took)/float64(time.Second)*100, out.Len())
			if took > noise*budget {
				t.Errorf("a second took %s of one core, more than %d times %s", took, noise, budget)
			}
		})
	}
}

// keyboard is a terminal's input.
type keyboard struct{ keys chan byte }

func newKeyboard() *keyboard { return &keyboard{keys: make(chan byte, 4096)} }

func (k *keyboard) typing(s string) {
	for i := range len(s) {
		k.keys <- s[i]
	}
}

func (k *keyboard) Read(p []byte) (int, error) {
	p[0] = <-k.keys
	return 1, nil
}

// TestManyGroups: all of them can be reached, and the cursor stays on its group while the list changes under it.
func TestManyGroups(t *testing.T) {
	s := loadedModel()
	s.keys("N")
	for range 137 {
		s.keys("j")
	}
	if s.m.cursor != "shop/group-137" {
		t.Errorf("cursor on %s", s.m.cursor)
	}
	bad := loaded(3)[0]
	bad.Sites[2].State, bad.Sites[2].Reachable = "Unreachable", false
	s.keys("S")
	s.tell(false, bad)
	if s.m.cursor != "shop/group-137" || s.m.fleet.order[0] != "shop/group-000" {
		t.Errorf("cursor on %s, first %s", s.m.cursor, s.m.fleet.order[0])
	}
	if !strings.Contains(s.m.frame().Bare(), "> group-137") {
		t.Error("the cursor is not on the screen")
	}
	s.send(feed.Objects{Gone: []string{"shop/group-137"}, At: s.at})
	s.send(feed.Changes{Gone: []string{"shop/group-137"}, At: s.at, Clock: s.at})
	if s.m.cursor == "shop/group-137" || s.m.fleet.groups["shop/group-137"] != nil {
		t.Error("a group that is gone is still there")
	}
}
