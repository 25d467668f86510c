// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Bounds of the picture, in characters.
const (
	pictureLeast = 24
	pictureMost  = 120
	pictureWidth = 100 // without a terminal
)

// Signs of the picture.
const (
	signArchived = '='
	signGap      = '?'
	signLost     = 'x'
	signPlanned  = 'p'
	signFailover = 'F'
	signProven   = 'v'
	signBackup   = 'b'
	signUseless  = '-'
	signNothing  = ' '
)

// scale is time along a line.
type scale struct {
	from, to time.Time
	cells    int
}

func (s scale) at(t time.Time) int {
	span := s.to.Sub(s.from)
	if span <= 0 {
		return 0
	}
	return min(s.cells-1, max(0, int(float64(t.Sub(s.from))/float64(span)*float64(s.cells-1)+0.5)))
}

// lane is one line of signs.
type lane []rune

func newLane(n int) lane { return lane([]rune(strings.Repeat(string(signNothing), n))) }

func (l lane) fill(s scale, from, to time.Time, sign rune) {
	for i := s.at(from); i <= s.at(to); i++ {
		l[i] = sign
	}
}

// picture shows time from left to right: a line for each site, and what happened below. It needs no colour.
func (o Options) picture(r *report.Timeline) string {
	a := r.Archive
	from, to := spanOf(r)
	if from.IsZero() || !to.After(from) {
		return ""
	}
	label := labelWidth
	for _, e := range a.Epochs {
		label = max(label, width(e.Site)+2)
	}
	total := o.Width
	if total <= 0 {
		total = pictureWidth
	}
	s := scale{from: from, to: to, cells: min(pictureMost, max(pictureLeast, total-label))}
	var b strings.Builder
	line := func(name string, l lane) {
		if text := strings.TrimRight(string(l), " "); text != "" {
			b.WriteString(name + strings.Repeat(" ", max(1, label-width(name))) + text + "\n")
		}
	}
	b.WriteString("\n" + strings.Repeat(" ", label) + axis(s) + "\n")
	for _, site := range sitesOf(a) {
		line(site, siteLane(s, a, site))
	}
	line("Failovers", failoverLane(s, a))
	line("Backups", backupLane(s, r))
	b.WriteString(o.legend(label))
	return b.String()
}

// spanOf returns the time from the oldest backup or commit to the latest point.
func spanOf(r *report.Timeline) (from, to time.Time) {
	take := func(t time.Time) {
		switch {
		case t.IsZero():
			return
		case from.IsZero():
			from, to = t, t
		case t.Before(from):
			from = t
		case t.After(to):
			to = t
		}
	}
	take(r.Archive.Earliest)
	take(r.Archive.Latest)
	for _, e := range r.Archive.Epochs {
		take(e.PromotedAt)
	}
	for _, b := range r.Archive.Backups {
		if b.Reaches {
			take(b.FinishedAt)
		}
	}
	return from, to
}

// axis has the two ends, in the zone of all other times.
func axis(s scale) string {
	form := "2006-01-02 15:04Z"
	if s.to.Sub(s.from) < time.Hour {
		form = "15:04:05Z"
	}
	left, right := s.from.UTC().Format(form), s.to.UTC().Format(form)
	return left + strings.Repeat(" ", max(1, s.cells-len(left)-len(right))) + right
}

func sitesOf(a wire.ArchiveTimeline) (all []string) {
	for _, e := range a.Epochs {
		if e.Site != "" && !slices.Contains(all, e.Site) {
			all = append(all, e.Site)
		}
	}
	return all
}

func siteLane(s scale, a wire.ArchiveTimeline, site string) lane {
	l := newLane(s.cells)
	for i, e := range a.Epochs {
		if e.Site != site || e.Files == 0 {
			continue
		}
		if from, to := spanOfEpoch(a, i); !from.IsZero() && !to.Before(from) {
			l.fill(s, from, to, signArchived)
		}
	}
	for _, g := range a.Gaps {
		if g.Site == site {
			l.fill(s, known(g.After, g.Before), known(g.Before, g.After), signGap)
		}
	}
	for _, e := range a.Epochs {
		if e.Site == site && e.Lost > 0 && !e.Last.IsZero() {
			l[s.at(e.Last)] = signLost
		}
	}
	return l
}

// spanOfEpoch returns from when to when the site of an epoch was open, as far as known.
func spanOfEpoch(a wire.ArchiveTimeline, i int) (from, to time.Time) {
	e := a.Epochs[i]
	from, to = known(e.PromotedAt, e.First), e.SeenAt
	switch {
	case i+1 < len(a.Epochs) && !a.Epochs[i+1].PromotedAt.IsZero():
		to = a.Epochs[i+1].PromotedAt
	case a.Latest.After(to):
		to = a.Latest
	}
	return from, to
}

// known returns the first of two times that is known.
func known(t, other time.Time) time.Time {
	if t.IsZero() {
		return other
	}
	return t
}

func failoverLane(s scale, a wire.ArchiveTimeline) lane {
	l := newLane(s.cells)
	for i, e := range a.Epochs {
		if i == 0 || e.PromotedAt.IsZero() {
			continue
		}
		sign := signFailover
		if e.Kind == "Planned" {
			sign = signPlanned
		}
		if at := s.at(e.PromotedAt); l[at] != signFailover { // if several share a place, it shows the worst
			l[at] = sign
		}
	}
	return l
}

func backupLane(s scale, r *report.Timeline) lane {
	l := newLane(s.cells)
	rank := []rune{signNothing, signUseless, signBackup, signProven}
	for _, b := range r.Archive.Backups {
		if b.FinishedAt.IsZero() || b.FinishedAt.Before(s.from) {
			continue
		}
		sign := signUseless
		switch {
		case b.Reaches && r.Verified[b.Name] == string(v1alpha1.BackupPassed):
			sign = signProven
		case b.Reaches:
			sign = signBackup
		}
		if at := s.at(b.FinishedAt); slices.Index(rank, sign) > slices.Index(rank, l[at]) {
			l[at] = sign
		}
	}
	return l
}

func (o Options) legend(label int) string {
	pieces := []text{{"", plain}}
	for _, words := range []string{"= archived", "? missing", "x lost by a failover", "p planned failover", "F other failover", "v backup, verified", "b backup", "- backup that leads nowhere"} {
		pieces = append(pieces, text{words, dim})
	}
	pieces[0] = text{s: strings.Repeat(" ", label-2)}
	return o.flow(label, pieces...)
}
