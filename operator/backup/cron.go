// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/robfig/cron/v3"
)

// Cron says when something recurs, in a time zone.
type Cron struct {
	spec *cron.SpecSchedule
	// everyHour is true for schedules without a fixed hour: those also run in the hour that a clock repeats.
	everyHour bool
}

// parser takes five fields, or @daily and the like.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// starBit is what the parser sets in a field that is a star.
const starBit = 1 << 63

// ParseCron reads a schedule. One that never comes, such as the 30th of February, is an error.
func ParseCron(text string, zone *time.Location) (Cron, error) {
	parsed, err := parser.Parse(text)
	if err != nil {
		return Cron{}, fmt.Errorf("cron %.128q cannot be read: %w", text, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Cron{}, fmt.Errorf("cron %.128q: @every depends on when the operator started: use minute, hour, day, month and day of the week", text)
	}
	spec.Location = zone
	c := Cron{spec: spec, everyHour: spec.Hour&starBit != 0}
	if c.spec.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, zone)).IsZero() {
		return Cron{}, errors.New("the day that cron names never comes: correct day of the month and month")
	}
	return c, nil
}

// lookback is longer than any step forward of a clock.
const lookback = 3 * time.Hour

// Next returns the first time after another. When clocks are set forward, a time in the skipped hour comes an hour later; when they are set
// back, a repeated time comes once.
func (c Cron) Next(after time.Time) time.Time {
	if c.everyHour {
		return c.spec.Next(after)
	}
	// The library handles clock changes of an hour, but not of half an hour. So this counts with a clock that never changes, and
	// looks up when the zone's clock shows each time.
	steady := *c.spec
	steady.Location = time.UTC
	for wall := steady.Next(asUTC(after, c.spec.Location).Add(-lookback)); !wall.IsZero(); wall = steady.Next(wall) {
		if at := c.shows(wall); at.After(after) {
			return at
		}
	}
	return time.Time{}
}

// shows returns when the clock of the zone first shows a time; for one that it skips, when it would have shown it.
func (c Cron) shows(wall time.Time) time.Time {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, c.spec.Location)
	if at.Hour() != wall.Hour() || at.Minute() != wall.Minute() {
		_, before := at.Add(-24 * time.Hour).Zone()
		return wall.Add(-time.Duration(before) * time.Second).In(c.spec.Location)
	}
	return at.Add(-repeated(at, c.spec.Location))
}

// repeated is how long ago the clock has already shown this time; zero if it has not.
func repeated(t time.Time, zone *time.Location) time.Duration {
	for _, back := range []time.Duration{30 * time.Minute, time.Hour} {
		_, then := t.Add(-back).In(zone).Zone()
		_, now := t.In(zone).Zone()
		if time.Duration(then-now)*time.Second == back {
			return back
		}
	}
	return 0
}

// asUTC returns the time at which a UTC clock shows what the zone's clock shows now.
func asUTC(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// spreadMax is the longest time from its due time to a backup's start, unless it waits for another reason.
const spreadMax = 10 * time.Minute

// Spread is how long after its time this one starts: always the same, different for most others, and at most a tenth of the interval and most.
func (c Cron) Spread(at time.Time, who string, most time.Duration) time.Duration {
	room := min(c.Next(at).Sub(at)/10, spreadMax, most)
	if room < time.Second {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(who)) // a hash never fails
	return time.Duration(h.Sum64()%uint64(room/time.Second)) * time.Second
}
