// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/robfig/cron/v3"
)

// Cron is when something recurs, in a time zone.
type Cron struct {
	spec *cron.SpecSchedule
	// everyHour is true of schedules without an hour of their own: those also run in the hour that a clock repeats.
	everyHour bool
}

// parser takes five fields, or @daily and the like.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// starBit is set by the parser in a field that is a star.
const starBit = 1 << 63

// ParseCron reads a schedule. Those that never come, as the 30th of February, are errors.
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

// lookback is more than any clock is ever set forward.
const lookback = 3 * time.Hour

// Next is the first time after one. Where clocks are set forward, a time in the hour that is left out comes an hour later; where they are set
// back, it comes once.
func (c Cron) Next(after time.Time) time.Time {
	if c.everyHour {
		return c.spec.Next(after)
	}
	// The library knows clocks that are set by an hour, and not those that are set by half an hour. So this counts in a clock that is
	// never set, and looks up when the zone's clock shows each time.
	steady := *c.spec
	steady.Location = time.UTC
	for wall := steady.Next(asUTC(after, c.spec.Location).Add(-lookback)); !wall.IsZero(); wall = steady.Next(wall) {
		if at := c.shows(wall); at.After(after) {
			return at
		}
	}
	return time.Time{}
}

// shows is when the clock of the zone shows a time first; of one that it skips, when it would have shown it.
func (c Cron) shows(wall time.Time) time.Time {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, c.spec.Location)
	if at.Hour() != wall.Hour() || at.Minute() != wall.Minute() {
		_, before := at.Add(-24 * time.Hour).Zone()
		return wall.Add(-time.Duration(before) * time.Second).In(c.spec.Location)
	}
	return at.Add(-repeated(at, c.spec.Location))
}

// repeated is how long before the clock has shown this time already; zero if it has not.
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

// asUTC is a time in UTC at which the clock there shows what it shows in the zone now.
func asUTC(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// spreadMax is how long after its time a backup starts at the latest, unless it has to wait for another reason.
const spreadMax = 10 * time.Minute

// Spread is how long after its time this one starts: always the same, and different for most others, at most a tenth of the time between two.
func (c Cron) Spread(at time.Time, who string) time.Duration {
	room := min(c.Next(at).Sub(at)/10, spreadMax)
	if room < time.Second {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(who)) // a hash never fails
	return time.Duration(h.Sum64()%uint64(room/time.Second)) * time.Second
}
