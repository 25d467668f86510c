// SPDX-License-Identifier: Apache-2.0

// Package gauge knows the figures of a site that its status does not have: how many commits a second, how many connections it has, and when
// a replica has caught up. It is pure. A figure that could not be read is unknown, never 0.
package gauge

import (
	"bufio"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// MaxBytes bounds how much of an answer is read: a sidecar has some hundred series in some 30 kB, and a larger answer is not a sidecar's.
const MaxBytes = 1 << 20

// Reading is what a sidecar says of its mysqld. Figures are NaN if it does not say.
type Reading struct {
	Site string
	// Error is why nothing could be read; the figures are unknown then.
	Error string

	Connections, MaxConnections, Running float64
}

// Unread returns a reading that has only the reason why there is none.
func Unread(site, why string) Reading {
	nan := math.NaN()
	return Reading{Site: site, Error: why, Connections: nan, MaxConnections: nan, Running: nan}
}

// Parse reads the answer of a sidecar's /metrics, and no more of it than MaxBytes. A value that is no number, not finite or below 0 is unknown.
func Parse(site string, body io.Reader) Reading {
	r := Unread(site, "")
	into := map[string]*float64{
		"sidecar_mysql_connections": &r.Connections, "sidecar_mysql_max_connections": &r.MaxConnections, "sidecar_mysql_threads_running": &r.Running,
	}
	lines, found := bufio.NewScanner(io.LimitReader(body, MaxBytes)), 0
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		to := into[name]
		if to == nil {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && v >= 0 && !math.IsInf(v, 0) {
			*to = v
			found++
		}
	}
	switch err := lines.Err(); {
	case found > 0: // what was read counts, even if the answer broke off
	case err != nil:
		r.Error = "its answer cannot be read: " + err.Error()
	default:
		r.Error = "its answer has no figures of mysqld"
	}
	return r
}

// window is the least time over which commits are counted: two and a half polls of the operator, as often as it polls by default, give a
// steady number.
const window = 5 * time.Second

// windowOf is how long without news it takes until a site has committed nothing: two and a half polls, and no less than window.
func windowOf(poll time.Duration) time.Duration { return max(window, poll*5/2) }

// Counter turns the transactions that a site has executed, as the operator sees them at each of its polls, into commits a second.
type Counter struct {
	seen []count
	set  string
}

type count struct {
	at    time.Time
	total int64
}

// Push takes the GTID set of a poll. If a set cannot be read, or has fewer than before, counting begins again: the site has other data.
func (c *Counter) Push(at time.Time, executed string) {
	total := int64(0)
	switch n := len(c.seen); {
	case executed == "":
		*c = Counter{} // not seen
		return
	case n > 0 && executed == c.set:
		total = c.seen[n-1].total
	default:
		set, err := gtid.Parse(executed)
		if err != nil {
			*c = Counter{}
			return
		}
		total = set.Count()
	}
	n := len(c.seen)
	if n > 0 && (total < c.seen[n-1].total || !at.After(c.seen[n-1].at)) {
		if !at.After(c.seen[n-1].at) {
			return
		}
		c.seen = c.seen[:0]
	}
	c.set, c.seen = executed, append(c.seen, count{at, total})
	old := 0
	for old+2 < len(c.seen) && at.Sub(c.seen[old+1].at) >= window {
		old++
	}
	c.seen = slices.Delete(c.seen, 0, old)
}

// PerSecond returns how many commits a second there were until now; NaN until that is known. The operator looks once a poll, and repeats no
// unchanged set, so a site without news for more than two polls has committed nothing since.
func (c *Counter) PerSecond(now time.Time, poll time.Duration) float64 {
	if c == nil || len(c.seen) < 2 {
		return math.NaN()
	}
	first, last, most := c.seen[0], c.seen[len(c.seen)-1], windowOf(poll)
	end := last.at
	if quiet := now.Sub(end); quiet > most {
		return 0
	} else if quiet > most/2 {
		end = now.Add(-most / 2)
	}
	return float64(last.total-first.total) / end.Sub(first.at).Seconds()
}

// Trend says how the gap between a replica and the active site changes.
type Trend int

// The trends.
const (
	Unknown Trend = iota
	CaughtUp
	Closing
	Steady
	Growing
)

// least is how many seconds of a gap it takes to know its trend.
const least = 10

// CatchUp reads the trend from the gaps of the last seconds, the newest last, and for a closing gap, how long that takes at this pace.
func CatchUp(gaps []float64) (Trend, time.Duration) {
	known := slices.DeleteFunc(slices.Clone(gaps), math.IsNaN)
	n := len(known)
	if len(gaps) == 0 || math.IsNaN(gaps[len(gaps)-1]) {
		return Unknown, 0
	}
	last := known[n-1]
	if last == 0 {
		return CaughtUp, 0
	}
	if n < least || slices.ContainsFunc(gaps[len(gaps)-least:], math.IsNaN) {
		return Unknown, 0
	}
	// It compares halves, not two samples: a late poll is no trend.
	half := n / 2
	pace := (mean(known[:half]) - mean(known[n-half:])) / float64(n-half)
	switch {
	case pace*float64(n) > last/20 && pace > 0:
		return Closing, time.Duration(last / pace * float64(time.Second))
	case -pace*float64(n) > last/20:
		return Growing, 0
	}
	return Steady, 0
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(len(all))
}
