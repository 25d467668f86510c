// SPDX-License-Identifier: Apache-2.0

package gauge

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

const page = `# HELP sidecar_mysql_connections Connections of clients now.
# TYPE sidecar_mysql_connections gauge
sidecar_mysql_connections 42
sidecar_mysql_max_connections 151
sidecar_mysql_threads_running 3
sidecar_volume_size_bytes 1.073741824e+11
sidecar_mysql_statements_total{statement="commit"} 7
`

// TestParse: what a sidecar says is read, and of what it does not say, or says in no number, nothing is made up.
func TestParse(t *testing.T) {
	r := Parse("paris", strings.NewReader(page))
	if r.Error != "" || r.Connections != 42 || r.MaxConnections != 151 || r.Running != 3 {
		t.Errorf("%+v", r)
	}
	for name, body := range map[string]string{
		"Nothing": "", "Garbage": "\x00\x1b[2J<html>", "OtherSeries": "go_goroutines 12\n", "NoNumber": "sidecar_mysql_connections many\n",
		"Negative": "sidecar_mysql_connections -1\n", "Infinite": "sidecar_mysql_connections +Inf\n", "NaN": "sidecar_mysql_connections NaN\n",
		"LongLine": strings.Repeat("x", 1<<17),
	} {
		if r := Parse("paris", strings.NewReader(body)); r.Error == "" || !math.IsNaN(r.Connections) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// endless is an answer that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	e.read += len(p)
	return len(p), nil
}

// TestParseIsBounded: a pod that answers without end costs a bounded read.
func TestParseIsBounded(t *testing.T) {
	e := &endless{}
	if r := Parse("paris", io.MultiReader(strings.NewReader(page), e)); r.Connections != 42 {
		t.Errorf("%+v", r)
	}
	if e.read > 2*MaxBytes {
		t.Errorf("read %d bytes", e.read)
	}
}

const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func TestCounter(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	to := func(n int) string { return fmt.Sprintf("%s:1-%d", uuid, n) }
	const poll = 2 * time.Second
	var c Counter
	if !math.IsNaN(c.PerSecond(at(0), poll)) || !math.IsNaN((*Counter)(nil).PerSecond(at(0), poll)) {
		t.Error("known before anything was seen")
	}
	c.Push(at(0), to(1000))
	if !math.IsNaN(c.PerSecond(at(1), poll)) {
		t.Error("one poll makes no pace")
	}
	for i := 1; i <= 20; i++ {
		c.Push(at(2*i), to(1000+200*i))
	}
	if got := c.PerSecond(at(41), poll); got != 100 {
		t.Errorf("%v a second, not 100", got)
	}
	if got := c.PerSecond(at(44), poll); got <= 0 || got >= 100 {
		t.Errorf("%v a second, 4 s after the last was heard", got)
	}
	if got := c.PerSecond(at(60), poll); got != 0 {
		t.Errorf("%v a second, 20 s after the last was heard", got)
	}
	if len(c.seen) > 5 {
		t.Errorf("%d polls are kept", len(c.seen))
	}
	c.Push(at(40), to(1)) // the same poll again
	for i := range 5 {
		c.Push(at(42+2*i), to(5000))
	}
	if got := c.PerSecond(at(50), poll); got != 0 {
		t.Errorf("%v a second of a site that does nothing", got)
	}
	for name, set := range map[string]string{"Fewer": to(7), "Unread": "x:y", "NotSeen": ""} {
		d := c
		d.Push(at(60), set)
		if got := d.PerSecond(at(60), poll); !math.IsNaN(got) {
			t.Errorf("%s: %v a second", name, got)
		}
	}
}

// TestCounterOfRarePolls: between two polls the pace stays as it was, however long they are apart.
func TestCounterOfRarePolls(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	const poll = 10 * time.Second
	var c Counter
	for i := range 6 {
		c.Push(at(10*i), fmt.Sprintf("%s:1-%d", uuid, 1000+1000*i))
		for s := 10 * i; i > 0 && s <= 10*i+12; s++ { // a poll may be late
			if got := c.PerSecond(at(s), poll); got != 100 {
				t.Errorf("%v a second at %d s", got, s)
			}
		}
	}
	if got := c.PerSecond(at(80), poll); got != 0 {
		t.Errorf("%v a second, three polls after the last news", got)
	}
}

func TestCatchUp(t *testing.T) {
	nan := math.NaN()
	line := func(from, by float64, n int) (out []float64) {
		for i := range n {
			out = append(out, from+by*float64(i))
		}
		return out
	}
	for name, tc := range map[string]struct {
		gaps []float64
		want Trend
		took time.Duration
	}{
		"Nothing":      {nil, Unknown, 0},
		"NotNow":       {append(line(100, -1, 20), nan), Unknown, 0},
		"TooShort":     {line(100, -1, 5), Unknown, 0},
		"JustBack":     {append(line(100, 0, 20), nan, nan, nan, 90, 80), Unknown, 0},
		"CaughtUp":     {line(29, -1, 30), CaughtUp, 0},
		"Closing":      {line(1000, -10, 30), Closing, 71 * time.Second},
		"Steady":       {line(1000, 0, 30), Steady, 0},
		"Jitter":       {line(1000, -0.5, 30), Steady, 0},
		"Growing":      {line(100, 10, 30), Growing, 0},
		"HolesClosing": {append([]float64{nan, nan, nan}, line(1000, -10, 30)...), Closing, 71 * time.Second},
	} {
		got, took := CatchUp(tc.gaps)
		if got != tc.want || took.Round(time.Second) != tc.took {
			t.Errorf("%s: %v in %s", name, got, took)
		}
	}
}
