// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Window is when turns may begin, in UTC; without spans it is always open.
type Window []Span

// Span is a stretch of hours on some days of the week. One that ends before it begins ends on the next day.
type Span struct {
	Days     [7]bool
	From, To int // minutes of the day, 0 to 1440
	text     string
}

// mostSpans bounds how long a window takes to read.
const mostSpans = 32

var days = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// Never is the window that is never open: its span is of no day.
var Never = Window{{text: "never"}}

// ParseWindow reads a window such as "Mon-Fri 22:00-04:00; Sat,Sun 00:00-24:00", or "never". Without days a span is of every day.
func ParseWindow(text string) (Window, error) {
	if strings.TrimSpace(text) == Never[0].text {
		return Never, nil
	}
	var w Window
	for _, part := range strings.Split(text, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		s, err := parseSpan(part)
		if err != nil {
			return nil, err
		}
		if w = append(w, s); len(w) > mostSpans {
			return nil, fmt.Errorf("more than %d spans", mostSpans)
		}
	}
	return w, nil
}

func parseSpan(part string) (Span, error) {
	bad := fmt.Errorf("%.60q is no span such as Mon-Fri 22:00-04:00, in UTC", part)
	fields := strings.Fields(part)
	s := Span{text: strings.Join(fields, " ")}
	switch len(fields) {
	case 1:
		s.Days = [7]bool{true, true, true, true, true, true, true}
	case 2:
		if !s.readDays(fields[0]) {
			return s, bad
		}
	default:
		return s, bad
	}
	from, to, _ := strings.Cut(fields[len(fields)-1], "-")
	var okFrom, okTo bool
	s.From, okFrom = minutes(from)
	s.To, okTo = minutes(to)
	// One that begins at the end of a day, as 24:00-00:00, might never be open.
	if !okFrom || !okTo || s.From == s.To || s.From == dayEnds {
		return s, bad
	}
	return s, nil
}

func (s *Span) readDays(text string) bool {
	for _, item := range strings.Split(text, ",") {
		from, to, through := strings.Cut(item, "-")
		if !through {
			to = from
		}
		a, b := slices.Index(days, from), slices.Index(days, to)
		if a < 0 || b < 0 {
			return false
		}
		for d := a; ; d = (d + 1) % 7 {
			s.Days[d] = true
			if d == b {
				break
			}
		}
	}
	return true
}

// dayEnds is 24:00, at which a span may end.
const dayEnds = 24 * 60

func minutes(text string) (int, bool) {
	if text == "24:00" {
		return dayEnds, true
	}
	t, err := time.Parse("15:04", text)
	return t.Hour()*60 + t.Minute(), err == nil
}

// Open says whether a turn may begin at a moment.
func (w Window) Open(now time.Time) bool {
	if len(w) == 0 {
		return true
	}
	now = now.UTC()
	m, today := now.Hour()*60+now.Minute(), int(now.Weekday())
	return slices.ContainsFunc(w, func(s Span) bool {
		if s.From < s.To {
			return s.Days[today] && m >= s.From && m < s.To
		}
		return s.Days[today] && m >= s.From || s.Days[(today+6)%7] && m < s.To
	})
}

// Text is the window as ParseWindow reads it.
func (w Window) Text() string {
	var all []string
	for _, s := range w {
		all = append(all, s.text)
	}
	return strings.Join(all, "; ")
}

// String is the window for people.
func (w Window) String() string {
	if len(w) == 0 {
		return "always"
	}
	if w.Text() == Never[0].text {
		return Never[0].text
	}
	return w.Text() + " UTC"
}

// Next is when it is open next: now if it is open, and the zero time if it is not within the next week.
func (w Window) Next(now time.Time) time.Time {
	now = now.UTC()
	if w.Open(now) {
		return now
	}
	var first time.Time
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	for day := range 8 {
		date := today.AddDate(0, 0, day)
		for _, s := range w {
			begin := date.Add(time.Duration(s.From) * time.Minute)
			if s.Days[int(date.Weekday())] && begin.After(now) && (first.IsZero() || begin.Before(first)) {
				first = begin
			}
		}
	}
	return first
}
