// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// recurrence is what status remembers of something that recurs.
type recurrence struct {
	// schedule is the text of what it recurs by, and since is when that began to hold; nil if nobody noted it.
	schedule string
	since    *metav1.Time
	// last is the last time that was dealt with.
	last *metav1.Time
}

// by is the recurrence by this schedule from now on; empty for what does not recur. A new, changed or resumed schedule has missed nothing: the times
// that it would have had earlier are no missing backups. What a changed one would start now, within the deadline, is started: it may have been due a
// moment ago by both.
func (r recurrence) by(schedule string, deadline time.Duration, now time.Time) recurrence {
	switch {
	case schedule == "":
		return recurrence{}
	case r.last == nil, strings.HasSuffix(r.schedule, suspendedMark) && r.schedule != schedule:
		return recurrence{schedule: schedule, since: timeOf(now), last: timeOf(now)}
	case r.schedule != "" && r.schedule != schedule:
		out := recurrence{schedule: schedule, since: timeOf(now), last: r.last}
		if earliest := now.Add(-deadline); r.last.Time.Before(earliest) {
			out.last = timeOf(earliest)
		}
		return out
	case r.since != nil && r.since.After(now):
		r.since = timeOf(now) // by a clock that was ahead: nothing would be overdue until then
	}
	r.schedule = schedule // an older operator did not note it
	return r
}

// suspendedMark ends the text of a schedule that is suspended.
const suspendedMark = " suspended"

// scheduleText tells schedules apart.
func scheduleText(cron, zone string, suspended bool) string {
	if cron == "" {
		return ""
	}
	text := cron + " " + cmp.Or(zone, "UTC")
	if suspended {
		text += suspendedMark
	}
	return text
}

// schedulesOf returns by what backups of a profile are made, and verified; empty for never.
func schedulesOf(p *v1alpha1.BackupProfile) (texts struct{ made, tried string }) {
	zone := ""
	if s := p.Schedule; s != nil {
		zone = s.TimeZone
		texts.made = scheduleText(s.Cron, zone, s.Suspend)
	}
	if v := p.Verification; v != nil {
		texts.tried = scheduleText(v.Cron, zone, false)
	}
	return texts
}

func timeIn(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
