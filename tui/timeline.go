// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
)

// timeline is the change of the active site that is under way, or the last one.
func (m Model) timeline(g *group, width int) canvas.Block {
	out := m.waiting(g.report.Planned, width)
	switch {
	case g.object == nil:
		return out
	case g.object.Status.Transition != nil:
		return append(out, m.unfolding(g, *g.object.Status.Transition, width)...)
	}
	for _, f := range g.object.Status.Failovers {
		if f.Kind != v1alpha1.FailoverBootstrap {
			return append(out, m.past(f, width)...)
		}
	}
	return out
}

// waiting is a planned failover that has changed nothing yet.
func (m Model) waiting(p *report.Planned, width int) canvas.Block {
	if p == nil || p.FinishedAt != nil {
		return nil
	}
	words := fmt.Sprintf("%s, %s", m.move(p.From, p.To), p.Phase)
	if p.StartedAt != nil {
		words += " for " + m.ago(*p.StartedAt)
	}
	if p.Message != "" {
		words += ": " + p.Message
	}
	return m.signs.Paragraph(canvas.Span{Text: "Planned", Style: canvas.Warn}, words, width)
}

// step is one step of a change. Its sign says how far it is: x done, > under way, blank to come.
type step struct {
	name, words string
	at          time.Time
	state       byte
}

const (
	stepDone = 'x'
	stepNow  = '>'
	stepNext = ' '
)

// unfolding draws a change that is under way, step by step as its durable intent says.
func (m Model) unfolding(g *group, t v1alpha1.Transition, width int) canvas.Block {
	began := t.DetectedAt.Time
	if began.IsZero() {
		began = t.StartedAt.Time
	}
	head := fmt.Sprintf("%s %s under epoch %d, %s so far: %s", strings.ToLower(string(t.Kind)), m.move(t.From, t.To), g.report.Epoch,
		seconds(max(0, m.clock().Sub(began))), t.Reason)
	out := m.signs.Paragraph(canvas.Span{Text: "Changing", Style: canvas.Warn}, head, width)
	for _, s := range m.steps(g, t, began) {
		out = append(out, m.stepLine(s, began, width))
		if s.state == stepNow && s.name == "fenced" {
			out = append(out, m.fences(g, width)...)
		}
	}
	return out
}

func (m Model) steps(g *group, t v1alpha1.Transition, began time.Time) []step {
	waits := ""
	if d := g.report.Decision; d != nil {
		waits = d.Message
	}
	all := []step{
		{"detected", string(t.Reason), began, stepDone},
		{"decided", fmt.Sprintf("epoch %d is persisted; no site may open writes", g.report.Epoch), t.StartedAt.Time, stepDone},
		{"fenced", waits, time.Time{}, stepNow},
		{"opened", t.To + " takes writes", time.Time{}, stepNext},
	}
	if t.Step == v1alpha1.TransitionOpening {
		all[2] = step{"fenced", strings.Join(t.Evidence, "; "), time.Time{}, stepDone}
		if t.GatePassedAt != nil {
			all[2].at = t.GatePassedAt.Time
		}
		all[3].state = stepNow
	}
	return all
}

func (m Model) stepLine(s step, began time.Time, width int) canvas.Line {
	at := strings.Repeat(" ", 8)
	switch {
	case !s.at.IsZero():
		at = m.signs.Pad("+"+millis(s.at.Sub(began).Milliseconds()), 8)
	case s.state == stepNow:
		at = m.signs.Pad("+"+seconds(max(0, m.clock().Sub(began))), 8)
	}
	st := map[byte]canvas.Style{stepDone: canvas.Good, stepNow: canvas.Warn, stepNext: canvas.Faint}[s.state]
	l := canvas.Line{{Text: "  [" + string(rune(s.state)) + "] ", Style: st}, {Text: at}, {Text: m.signs.Pad(s.name, 9), Style: st}}
	return append(l, canvas.Span{Text: m.signs.Clip(s.words, width-l.Width())})
}

// fences say of each site whether it could still take writes, as the operator sees it.
func (m Model) fences(g *group, width int) canvas.Block {
	words := make([]string, 0, len(g.report.Sites))
	for _, s := range g.report.Sites {
		words = append(words, s.Name+" "+orUnknown(s.Fence))
	}
	return canvas.Block{{{Text: m.signs.Clip(strings.Repeat(" ", 15)+strings.Join(words, ", "), width), Style: canvas.Faint}}}
}

// past draws a change that is through, its steps to scale.
func (m Model) past(f v1alpha1.FailoverRecord, width int) canvas.Block {
	from := f.DetectedAt.Time
	if from.IsZero() {
		from = f.StartedAt.Time
	}
	words := fmt.Sprintf("%s %s, epoch %d, %s ago, took %s, %s", strings.ToLower(string(f.Kind)), m.move(f.From, f.To), f.Epoch,
		m.ago(f.OpenedAt.Time), millis(f.OpenedAt.Sub(from).Milliseconds()), lossWords(f.LostTransactions, f.LossExact))
	if f.WritePauseMillis != nil {
		words += ", writes paused for " + millis(*f.WritePauseMillis)
	}
	out := m.signs.Paragraph(canvas.Span{Text: "Failover"}, words+": "+string(f.Reason), width)
	if len(f.Timeline) > 1 {
		out = append(out, canvas.Line{{Text: strings.Repeat(" ", canvas.LabelWidth)}, {Text: m.scale(f.Timeline, width-canvas.LabelWidth)}})
		steps := make([]string, 0, len(f.Timeline))
		for _, t := range f.Timeline {
			steps = append(steps, "+"+millis(t.Millis)+" "+t.Step)
		}
		out = append(out, m.signs.Paragraph(canvas.Span{}, strings.Join(steps, ", "), width)...)
	}
	for _, e := range f.Evidence {
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Evidence", Style: canvas.Faint}, e, width)...)
	}
	return out
}

// scale draws the time between steps to scale: a bar for each stretch, a mark at each step.
func (m Model) scale(steps []v1alpha1.TimelineEntry, width int) string {
	last := steps[len(steps)-1].Millis
	if last <= 0 {
		return ""
	}
	out := []rune(strings.Repeat(m.signs.Flat, width))
	for _, s := range steps {
		at := int(min(last, max(0, s.Millis)) * int64(width-1) / last)
		out[at] = '|'
	}
	return string(out)
}

func millis(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%dms", ms)
	}
	return fmt.Sprintf("%.1fs", float64(ms)/1000)
}

// ticker is all that happened to a group, the newest first: what the operator told, and what Kubernetes keeps.
func (m Model) ticker(g *group) []item {
	out := slices.Clone(g.news)
	for _, e := range g.events {
		st := canvas.Plain
		if e.Type == corev1.EventTypeWarning {
			st = canvas.Warn
		}
		words := e.Reason + ": " + e.Message
		if !strings.HasPrefix(e.Object, "MysqlFailoverGroup/") {
			words = e.Object + " " + words
		}
		if e.Count > 1 {
			words += fmt.Sprintf(" (x%d)", e.Count)
		}
		out = append(out, item{at: e.Time, group: g.name, words: words, st: st})
	}
	if g.eventsErr != "" {
		out = append(out, item{at: m.clock(), words: "events cannot be read: " + g.eventsErr, st: canvas.Warn})
	}
	slices.SortStableFunc(out, func(a, b item) int { return cmp.Compare(a.at.UnixMilli(), b.at.UnixMilli()) })
	return out
}

// newsBlock draws the newest items first, one line each.
func (m Model) newsBlock(all []item, rows int, named bool) canvas.Block {
	var out canvas.Block
	for _, i := range slices.Backward(all) {
		if len(out) == rows {
			break
		}
		l := canvas.Line{{Text: i.at.UTC().Format("15:04:05") + "  ", Style: canvas.Faint}}
		if named {
			l = append(l, canvas.Span{Text: i.group + "  ", Style: canvas.Strong})
		}
		out = append(out, append(l, canvas.Span{Text: strings.ReplaceAll(i.words, "\n", " "), Style: i.st}))
	}
	if len(out) == 0 && rows > 0 {
		words := "nothing since the dashboard was opened"
		if m.height == 0 { // one frame was not open for any time
			words = "no events are kept"
		}
		out = append(out, canvas.Line{{Text: words, Style: canvas.Faint}})
	}
	return out
}
