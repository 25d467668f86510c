// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
)

// timelineView draws changes of the active site.
type timelineView struct {
	painter
	g *group
}

// draw is the change of the active site that is under way, or the last one.
func (v timelineView) draw(width int) canvas.Block {
	out := v.waiting(v.g.report.Planned, width)
	switch {
	case v.g.object == nil:
		return out
	case v.g.object.Status.Transition != nil:
		return append(out, v.unfolding(*v.g.object.Status.Transition, width)...)
	}
	for _, f := range v.g.object.Status.Failovers {
		if f.Kind != v1alpha1.FailoverBootstrap {
			return append(out, v.past(f, width)...)
		}
	}
	return out
}

// waiting is a planned failover that has changed nothing yet.
func (v timelineView) waiting(p *report.Planned, width int) canvas.Block {
	if p == nil || p.FinishedAt != nil {
		return nil
	}
	words := fmt.Sprintf("%s, %s", v.move(p.From, p.To), p.Phase)
	if p.StartedAt != nil {
		words += " for " + v.ago(*p.StartedAt)
	}
	if p.Message != "" {
		words += ": " + p.Message
	}
	return v.signs.Paragraph(canvas.Span{Text: "Planned", Style: canvas.Warn}, words, width)
}

// step is one step of a change. Its sign says how far it is: x done, > under way, blank to come.
type step struct {
	name, words string
	at          time.Time
	state       byte
	// fences is true for the step that waits until every site but one is closed.
	fences bool
}

const (
	stepDone = 'x'
	stepNow  = '>'
	stepNext = ' '
)

// unfolding draws a change that is under way, step by step as its durable intent says.
func (v timelineView) unfolding(t v1alpha1.Transition, width int) canvas.Block {
	began := t.DetectedAt.Time
	if began.IsZero() {
		began = t.StartedAt.Time
	}
	head := fmt.Sprintf("%s %s under epoch %d, %s so far: %s", strings.ToLower(string(t.Kind)), v.move(t.From, t.To), v.g.report.Epoch,
		seconds(max(0, v.clock().Sub(began))), t.Reason)
	out := v.signs.Paragraph(canvas.Span{Text: "Changing", Style: canvas.Warn}, head, width)
	steps := v.steps(t, began)
	if s, has := v.cacheStep(t, began); has {
		steps = append(steps, s)
	}
	for _, s := range steps {
		out = append(out, v.stepLine(s, began, width))
		if s.state == stepNow && s.fences {
			out = append(out, v.fences(width)...)
		}
	}
	return out
}

func (v timelineView) steps(t v1alpha1.Transition, began time.Time) []step {
	waits := ""
	if d := v.g.report.Decision; d != nil {
		waits = d.Message
	}
	all := []step{
		{"detected", string(t.Reason), began, stepDone, false},
		{"decided", fmt.Sprintf("epoch %d is persisted; no site may open writes", v.g.report.Epoch), t.StartedAt.Time, stepDone, false},
		{"fenced", waits, time.Time{}, stepNow, true},
		{"opened", t.To + " takes writes", time.Time{}, stepNext, false},
	}
	if t.Step == v1alpha1.TransitionOpening {
		all[2] = step{"fenced", strings.Join(t.Evidence, "; "), time.Time{}, stepDone, true}
		if t.GatePassedAt != nil {
			all[2].at = t.GatePassedAt.Time
		}
		all[3].state = stepNow
	}
	return all
}

func (v timelineView) stepLine(s step, began time.Time, width int) canvas.Line {
	at := strings.Repeat(" ", 8)
	switch {
	case !s.at.IsZero():
		at = v.signs.Pad("+"+millis(s.at.Sub(began).Milliseconds()), 8)
	case s.state == stepNow:
		at = v.signs.Pad("+"+seconds(max(0, v.clock().Sub(began))), 8)
	}
	st := map[byte]canvas.Style{stepDone: canvas.Good, stepNow: canvas.Warn, stepNext: canvas.Faint}[s.state]
	l := canvas.Line{{Text: "  [" + string(rune(s.state)) + "] ", Style: st}, {Text: at}, {Text: v.signs.Pad(s.name, 9), Style: st}}
	return append(l, canvas.Span{Text: v.signs.Clip(s.words, width-l.Width())})
}

// fences say of each site whether it could still take writes, as the operator sees it.
func (v timelineView) fences(width int) canvas.Block {
	words := make([]string, 0, len(v.g.report.Sites))
	for _, s := range v.g.report.Sites {
		words = append(words, s.Name+" "+orUnknown(s.Fence))
	}
	return canvas.Block{{{Text: v.signs.Clip(strings.Repeat(" ", 15)+strings.Join(words, ", "), width), Style: canvas.Faint}}}
}

// past draws a change that is through, its steps to scale.
func (v timelineView) past(f v1alpha1.FailoverRecord, width int) canvas.Block {
	from := f.DetectedAt.Time
	if from.IsZero() {
		from = f.StartedAt.Time
	}
	words := fmt.Sprintf("%s %s, epoch %d, %s ago, took %s, %s", strings.ToLower(string(f.Kind)), v.move(f.From, f.To), f.Epoch,
		v.ago(f.OpenedAt.Time), millis(f.OpenedAt.Sub(from).Milliseconds()), lossWords(f.LostTransactions, f.LossExact))
	if f.WritePauseMillis != nil {
		words += ", writes paused for " + millis(*f.WritePauseMillis)
	}
	out := v.signs.Paragraph(canvas.Span{Text: "Failover"}, words+": "+string(f.Reason), width)
	if len(f.Timeline) > 1 {
		out = append(out, canvas.Line{{Text: strings.Repeat(" ", canvas.LabelWidth)}, {Text: v.scale(f.Timeline, width-canvas.LabelWidth)}})
		steps := make([]string, 0, len(f.Timeline))
		for _, t := range f.Timeline {
			steps = append(steps, "+"+millis(t.Millis)+" "+t.Step)
		}
		out = append(out, v.signs.Paragraph(canvas.Span{}, strings.Join(steps, ", "), width)...)
	}
	out = append(out, v.cacheBeside(f, from, width)...)
	for _, e := range f.Evidence {
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Evidence", Style: canvas.Faint}, e, width)...)
	}
	return out
}

// scale draws the time between steps to scale: a bar for each stretch, a mark at each step.
func (v timelineView) scale(steps []v1alpha1.TimelineEntry, width int) string {
	last := steps[len(steps)-1].Millis
	if last <= 0 {
		return ""
	}
	out := []rune(strings.Repeat(v.signs.Flat, width))
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
