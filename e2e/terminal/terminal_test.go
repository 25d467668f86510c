// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

// TestCast: the format as players read it, and no character is torn.
func TestCast(t *testing.T) {
	var b bytes.Buffer
	c := NewCast(&b, Header{Width: 80, Height: 24, Title: "a <failover>"}, noon)
	arrow := []byte("→")
	c.Output(noon.Add(1500*time.Millisecond), append([]byte("\x1b[H<a "), arrow[:2]...))
	c.Mark(noon.Add(time.Second), "killed") // came late to the lock
	c.Output(noon.Add(2*time.Second), append(arrow[2:], " b\r\n"...))
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	want := `{"version":2,"width":80,"height":24,"timestamp":1793707200,"title":"a <failover>"}
[1.5,"o","\u001b[H<a "]
[1.5,"m","killed"]
[2,"o","→ b\r\n"]
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h, events, err := ReadCast(&b)
	if err != nil || h.Width != 80 || len(events) != 3 || events[2] != (Event{2, Output, "→ b\r\n"}) {
		t.Errorf("%v: %+v %+v", err, h, events)
	}
}

func TestReadCastRefuses(t *testing.T) {
	head := `{"version":2,"width":80,"height":24}` + "\n"
	for name, text := range map[string]string{
		"empty": "", "no header": `[1,"o","x"]`, "other version": `{"version":3,"width":1,"height":1}`,
		"no list": head + `{}`, "too short": head + `[1,"o"]`, "too long": head + `[1,"o","x",2]`,
		"back in time": head + `[2,"o","x"]` + "\n" + `[1,"o","x"]`,
	} {
		if _, _, err := ReadCast(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read", name)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestCastKeepsTheFirstError(t *testing.T) {
	c := NewCast(full{}, Header{}, noon)
	c.Output(noon, []byte("x"))
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Error(err)
	}
}

// TestSession: what a program draws is seen, recorded from the first byte, and it gets the keys that are pressed.
func TestSession(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("the Debian package tmux is not here; the tests of the lab install it")
	}
	var b bytes.Buffer
	record := NewCast(&b, Header{Width: 60, Height: 10}, time.Now())
	s, err := Start(t.Context(), Options{
		Width: 60, Height: 10, Record: record, Env: append(os.Environ(), "LC_ALL=C"),
		Argv: []string{"sh", "-c", `printf 'east → west\n%s\n' "$(stty size)"; read -r word; echo "heard $word"; exit 3`},
	})
	if err != nil {
		t.Fatal(err)
	}
	shows(t, s, "east → west\n10 60")
	if err := s.Type(t.Context(), "failover west"); err != nil {
		t.Fatal(err)
	}
	if err := s.Keys(t.Context(), "Enter"); err != nil {
		t.Fatal(err)
	}
	shows(t, s, "heard failover west")
	// What it says last can be on the screen before it has ended.
	for {
		code, ended, err := s.Ended(t.Context())
		if err != nil || ended {
			if err != nil || code != 3 {
				t.Errorf("ended %v with code %d (%v), want 3", ended, code, err)
			}
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	dir := s.dir
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
	_, events, err := ReadCast(&b)
	var text strings.Builder
	for _, e := range events {
		text.WriteString(e.Data)
	}
	if err != nil || !strings.HasPrefix(strings.TrimLeft(text.String(), "\r\n"), "east → west\r\n10 60\r\n") || !strings.Contains(text.String(), "heard failover west") {
		t.Errorf("%v: recorded %q", err, text.String())
	}
}

// TestReplay: a recording played to a chapter leaves the screen of that moment.
func TestReplay(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("the Debian package tmux is not here; the tests of the lab install it")
	}
	events := []Event{{0, Output, "\x1b[2J\x1b[2;3Hone\r\n"}, {1, Marker, "two"}, {2, Output, "\x1b[2;3Htwo"}}
	for chapter, want := range map[string]string{"two": "\n  one\n", "": "\n  two\n"} {
		got, err := Replay(t.Context(), Header{Width: 20, Height: 5}, events, chapter)
		if err != nil || got != want {
			t.Errorf("to %q: %v, %q, want %q", chapter, err, got, want)
		}
	}
}

func shows(t *testing.T, s *Session, words string) {
	t.Helper()
	frame := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		if frame, err = s.Frame(t.Context()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(frame, words) {
			return
		}
	}
	t.Fatalf("never showed %q:\n%s", words, frame)
}

func TestStartWithoutAProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if s, err := Start(t.Context(), Options{Width: 10, Height: 10, Argv: []string{"true"}}); err == nil || s != nil {
		t.Errorf("%v %v", s, err)
	}
}
