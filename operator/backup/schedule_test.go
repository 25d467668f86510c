// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func cronOf(t testing.TB, text string, z *time.Location) Cron {
	t.Helper()
	c, err := ParseCron(text, z)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestCron(t *testing.T) {
	tests := map[string]struct {
		zone, cron, after string
		want              []string
	}{
		"every night":                        {"UTC", "0 2 * * *", "2026-11-24T02:00:00Z", []string{"2026-11-25T02:00:00Z", "2026-11-26T02:00:00Z"}},
		"in a time zone":                     {"Europe/Berlin", "0 2 * * *", "2026-07-01T12:00:00Z", []string{"2026-07-02T02:00:00+02:00"}},
		"the hour that is left out":          {"Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00+01:00", []string{"2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"}},
		"within the hour after it":           {"Europe/Berlin", "30 2 * * *", "2026-03-29T03:10:00+02:00", []string{"2026-03-29T03:30:00+02:00"}},
		"two hours, one of them left out":    {"Europe/Berlin", "0 2,3 * * *", "2026-03-29T01:00:00+01:00", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
		"the hour that comes twice":          {"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00+02:00", []string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		"every hour over it":                 {"Europe/Berlin", "0 * * * *", "2026-10-25T01:00:00+02:00", []string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"}},
		"every hour over one left out":       {"Europe/Berlin", "0 * * * *", "2026-03-29T01:00:00+01:00", []string{"2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"}},
		"a clock set by half an hour":        {"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30", []string{"2026-10-04T02:45:00+11:00", "2026-10-05T02:15:00+11:00"}},
		"half an hour left out, in the west": {"America/Caracas", "45 2 * * *", "2016-04-30T12:00:00-04:30", []string{"2016-05-01T03:15:00-04:00", "2016-05-02T02:45:00-04:00"}},
		"after a time of another zone":       {"America/New_York", "0 2 * * *", "2026-11-24T06:30:00Z", []string{"2026-11-24T02:00:00-05:00"}},
		"in another hemisphere":              {"America/Santiago", "30 0 * * *", "2026-09-05T12:00:00-04:00", []string{"2026-09-06T01:30:00-03:00", "2026-09-07T00:30:00-03:00"}},
		"by a word":                          {"UTC", "@weekly", "2026-11-24T00:00:00Z", []string{"2026-11-29T00:00:00Z"}},
		"29th of February, four years off":   {"UTC", "0 0 29 2 *", "2026-11-24T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, now := cronOf(t, tc.cron, zone(t, tc.zone)), at(t, tc.after)
			for _, want := range tc.want {
				if now = c.Next(now); !now.Equal(at(t, want)) {
					t.Fatalf("Next = %s, want %s", now.Format(time.RFC3339), want)
				}
			}
		})
	}
}

func TestCronRefused(t *testing.T) {
	for _, text := range []string{"", "* * * *", "0 0 2 * * *", "61 * * * *", "5-1 * * * *", "@every 1h", "0 0 30 2 *", "0 0 * * FOO", "*/0 * * * *"} {
		if _, err := ParseCron(text, time.UTC); err == nil {
			t.Errorf("%q is admitted", text)
		} else if want := map[string]string{"@every 1h": "@every", "0 0 30 2 *": "never comes"}[text]; !strings.Contains(err.Error(), cmp.Or(want, "cannot be read")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A schedule with an hour of its own runs once a day in every zone, and each Next is later.
func TestADailyScheduleRunsEachDayOnce(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kathmandu", "Africa/Casablanca"}
	rapid.Check(t, func(r *rapid.T) {
		z := zone(t, rapid.SampledFrom(zones).Draw(r, "zone"))
		c := cronOf(t, fmt.Sprintf("%d %d * * *", rapid.IntRange(0, 59).Draw(r, "minute"), rapid.IntRange(0, 22).Draw(r, "hour")), z)
		day := time.Date(2026, 1, 1, 12, 0, 30, 0, z).AddDate(0, 0, rapid.IntRange(0, 700).Draw(r, "day"))
		end := day.AddDate(0, 0, 5)
		var days []int
		for now := c.Next(day); now.Before(end); now = c.Next(now) {
			days = append(days, now.In(z).YearDay())
		}
		seen := map[int]bool{}
		for _, d := range days {
			if seen[d] {
				r.Fatalf("day %d comes twice: %v", d, days)
			}
			seen[d] = true
		}
		if len(days) != 5 {
			r.Fatalf("5 days have %d runs: %v", len(days), days)
		}
	})
}

func TestDue(t *testing.T) {
	daily := cronOf(t, "0 2 * * *", time.UTC)
	often := cronOf(t, "* * * * *", time.UTC)
	const made = "2026-11-24T02:00:00Z"
	tests := map[string]struct {
		cron                 Cron
		suspend              bool
		seen, now            string
		at, missed, seenThen string
	}{
		"not yet":                     {cron: daily, seen: made, now: "2026-11-25T01:59:59Z", seenThen: made},
		"due":                         {cron: daily, seen: made, now: "2026-11-25T02:10:00Z", at: "2026-11-25T02:00:00Z", seenThen: "2026-11-25T02:00:00Z"},
		"due at the deadline":         {cron: daily, seen: made, now: "2026-11-25T03:00:00Z", at: "2026-11-25T02:00:00Z", seenThen: "2026-11-25T02:00:00Z"},
		"too late":                    {cron: daily, seen: made, now: "2026-11-25T03:00:01Z", missed: "2026-11-25T02:00:00Z", seenThen: "2026-11-25T02:00:00.999999999Z"},
		"after days away":             {cron: daily, seen: made, now: "2026-11-28T02:30:00Z", at: "2026-11-28T02:00:00Z", missed: "2026-11-25T02:00:00Z", seenThen: "2026-11-28T02:00:00Z"},
		"several at once, the newest": {cron: often, seen: made, now: "2026-11-24T02:10:59Z", at: "2026-11-24T02:10:00Z", seenThen: "2026-11-24T02:10:00Z"},
		"suspended":                   {cron: daily, suspend: true, seen: made, now: "2026-11-25T02:10:00Z", seenThen: "2026-11-25T02:00:00Z"},
		"suspended for long":          {cron: daily, suspend: true, seen: made, now: "2026-12-25T12:00:00Z", seenThen: made},
		"a clock a little behind":     {cron: daily, seen: made, now: "2026-11-24T01:55:00Z", seenThen: made},
		"a clock that was set back":   {cron: daily, seen: made, now: "2026-11-20T01:30:00Z", seenThen: "2026-11-20T01:30:00Z"},
		"and a time that comes then":  {cron: daily, seen: "2026-11-20T01:30:00Z", now: "2026-11-20T02:10:00Z", at: "2026-11-20T02:00:00Z", seenThen: "2026-11-20T02:00:00Z"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Schedule{Cron: tc.cron, Suspend: tc.suspend, Deadline: time.Hour, Who: "shop/orders/nightly"}
			got := s.Decide(at(t, tc.seen), at(t, tc.now))
			for what, pair := range map[string]struct {
				got  time.Time
				want string
			}{"at": {got.At, tc.at}, "missed": {got.Missed, tc.missed}, "seen": {got.Seen, tc.seenThen}} {
				if pair.want == "" && !pair.got.IsZero() || pair.want != "" && !pair.got.Equal(at(t, pair.want)) {
					t.Errorf("%s = %s, want %q", what, pair.got.Format(time.RFC3339Nano), pair.want)
				}
			}
			if !got.Next.After(at(t, tc.now)) {
				t.Errorf("next look at %s is not later", got.Next)
			}
		})
	}
}

// A schedule does not stand still for as long as a clock was ahead: the next time comes at most a day after the clock was put right.
func TestAScheduleGoesOnAfterAClockThatWasAhead(t *testing.T) {
	s := Schedule{Cron: cronOf(t, "0 2 * * *", time.UTC), Deadline: time.Hour, Who: "shop/orders/nightly"}
	seen, clock := at(t, "2031-01-01T02:00:00Z"), at(t, "2026-11-20T12:00:00Z")
	for range 3 {
		d := s.Decide(seen, clock)
		seen, clock = d.Seen, d.Next
		if clock.Sub(at(t, "2026-11-20T12:00:00Z")) > 3*24*time.Hour {
			t.Fatalf("the next time is %s", clock)
		}
	}
	if want := at(t, "2026-11-22T02:00:00Z"); !seen.Equal(want) {
		t.Errorf("the last time is %s, want %s", seen, want)
	}
}

// However the operator comes and goes, no time is acted upon twice, none early, and none after its deadline.
func TestNoTimeIsActedUponTwice(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cron := cronOf(t, rapid.SampledFrom([]string{"0 2 * * *", "*/15 * * * *", "0 */6 * * *"}).Draw(r, "cron"), time.UTC)
		s := Schedule{Cron: cron, Deadline: time.Duration(rapid.IntRange(60, 7200).Draw(r, "deadline")) * time.Second, Who: rapid.String().Draw(r, "who")}
		now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
		seen, acted := now, map[time.Time]bool{}
		for range 40 {
			now = now.Add(time.Duration(rapid.IntRange(1, 40000).Draw(r, "pause")) * time.Second)
			s.Suspend = rapid.IntRange(0, 9).Draw(r, "suspend") == 0
			d := s.Decide(seen, now)
			if d.Seen.Before(seen) {
				r.Fatalf("seen goes back from %s to %s", seen, d.Seen)
			}
			if !d.At.IsZero() {
				if acted[d.At] || d.At.After(now) || now.Sub(d.At) > s.Deadline || s.Suspend {
					r.Fatalf("acts at %s for %s", now, d.At)
				}
				acted[d.At] = true
			}
			if rapid.Bool().Draw(r, "written") { // or the operator ended before it wrote: asked again, it says the same
				seen = d.Seen
			} else if again := s.Decide(seen, now); again != d {
				r.Fatalf("says %+v, then %+v", d, again)
			} else {
				delete(acted, d.At)
			}
		}
	})
}

// An operator that looks again when Decide says so acts on every time of the schedule, with half of the deadline left, for any name by which starts
// are spread.
func TestWhoLooksInTimeActsOnEveryTime(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cron := cronOf(t, rapid.SampledFrom([]string{"0 2 * * *", "@weekly", "*/15 * * * *", "* * * * *", "30 2,3 * * *"}).Draw(r, "cron"), zone(t, "Europe/Berlin"))
		s := Schedule{Cron: cron, Deadline: time.Duration(rapid.IntRange(60, 7200).Draw(r, "deadline")) * time.Second, Who: rapid.String().Draw(r, "who")}
		seen := time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 1e6).Draw(r, "created")) * time.Second)
		now := s.Decide(seen, seen).Next
		for range 20 {
			want := cron.Next(seen)
			d := s.Decide(seen, now)
			if !d.At.Equal(want) || !d.Missed.IsZero() || now.Sub(d.At) > s.Deadline/2 {
				r.Fatalf("at %s it says %+v, and the time is %s", now, d, want)
			}
			seen, now = d.Seen, d.Next
		}
	})
}

// 200 groups with one minute start at different times, always the same, within ten minutes.
func TestStartsAreSpread(t *testing.T) {
	cron, when := cronOf(t, "0 2 * * *", time.UTC), at(t, "2026-11-24T02:00:00Z")
	minutes := map[int]int{}
	for i := range 200 {
		who := fmt.Sprintf("ns-%d/orders/nightly", i)
		d := cron.Spread(when, who, time.Hour)
		if d != cron.Spread(when, who, time.Hour) || d < 0 || d >= spreadMax {
			t.Fatalf("spread of %s is %s", who, d)
		}
		minutes[int(d/time.Minute)]++
	}
	for m := range 10 {
		if minutes[m] < 8 || minutes[m] > 40 {
			t.Errorf("%d start in minute %d: %v", minutes[m], m, minutes)
		}
	}
	if d := cronOf(t, "* * * * *", time.UTC).Spread(when, "a", time.Hour); d >= 6*time.Second {
		t.Errorf("a schedule of every minute is spread over %s", d)
	}
}

func TestTurn(t *testing.T) {
	var waiting []Waiting
	for i := range 6 {
		waiting = append(waiting, Waiting{Namespace: "shop", Group: fmt.Sprint("g", i/2), Name: fmt.Sprint("b", i), Since: at(t, "2026-11-24T02:00:00Z").Add(-time.Duration(i) * time.Minute)})
	}
	names := func(w []Waiting) (all string) {
		for _, w := range w {
			all += w.Name
		}
		return all
	}
	for name, tc := range map[string]struct {
		running []string
		most    int
		want    string
	}{
		"one of each group, the oldest": {nil, 10, "b5b3b1"},
		"no more than allowed":          {nil, 2, "b5b3"},
		"none beside its own":           {[]string{"shop/g2"}, 10, "b3b1"},
		"those that run count":          {[]string{"a/x", "a/y"}, 3, "b5"},
		"full":                          {[]string{"a/x", "a/y", "a/z"}, 2, ""},
	} {
		if got := names(Turn(waiting, tc.running, tc.most)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A schedule whose next day is more than five years off, as that of the 29th of February before 2100, asks for nothing until then, and nothing is
// overdue.
func TestADayThatDoesNotComeForLong(t *testing.T) {
	leap, done, now := cronOf(t, "0 0 29 2 *", time.UTC), at(t, "2096-02-29T00:10:00Z"), at(t, "2096-06-01T00:00:00Z")
	if d := leap.Spread(at(t, "2096-02-29T00:00:00Z"), "a", time.Hour); d != 0 {
		t.Errorf("spread over %s", d)
	}
	s := Schedule{Cron: leap, Deadline: time.Hour, Who: "a"}
	if d := s.Decide(done, now); !d.At.IsZero() || !d.Missed.IsZero() {
		t.Errorf("%+v", d)
	}
	h := Health{All: []Artifact{{Name: "a", FinishedAt: done, Tried: true, Verified: true}}, HasSchedule: true, Schedule: s,
		VerifiedAt: done, HasVerification: true, Verification: Verification{HasCron: true, Cron: leap}}
	if !h.Ready(now).OK || !h.Verified(now).OK {
		t.Errorf("%+v, %+v", h.Ready(now), h.Verified(now))
	}
}
