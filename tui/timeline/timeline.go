// SPDX-License-Identifier: Apache-2.0

// Package timeline draws changes of the active site: the present one, step by step, with the one countdown that matters; and the last
// one, its steps to scale.
package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// View draws the changes of one group.
type View struct {
	paint.Painter
	Report report.MysqlFailoverGroupReport
	Object *v1alpha1.MysqlFailoverGroup // nil: not read
	// Rule is the deciding rule, as the operator last explained it; nil while unknown.
	Rule *wire.ExplainedRule
	// SilentSince is since when the operator has called a site unreachable; zero if it has not, or if its beginning was not seen.
	SilentSince func(site string) time.Time
}

// transition is the change under way, as it was persisted; nil if there is none.
func (v View) transition() *v1alpha1.Transition {
	if v.Object == nil {
		return nil
	}
	return v.Object.Status.Transition
}

// IsRunning is true while the active site changes, and while a planned failover waits for its target.
func (v View) IsRunning() bool {
	return v.transition() != nil || v.Report.Planned != nil && v.Report.Planned.FinishedAt == nil
}

// Draw draws the change of the active site that is under way, or the last one.
func (v View) Draw(width int) canvas.Block {
	t := v.transition()
	switch {
	case t != nil:
		return append(v.unfolding(*t, width), v.Countdown(width)...)
	case v.IsRunning():
		return append(v.waiting(*v.Report.Planned, width), v.Countdown(width)...)
	case v.Object == nil:
		return nil
	}
	for _, f := range v.Object.Status.Failovers {
		if f.Kind != v1alpha1.FailoverBootstrap {
			return v.past(f, width)
		}
	}
	return nil
}

// state says how far a step is; it is the sign in its brackets.
type state byte

const (
	done    state = 'x'
	now     state = '>'
	next    state = ' '
	unknown state = '?'
)

// kind is one of the steps that changes are made of.
type kind struct{ done, now, next string }

// The steps, in the words for each state: what is under way is not told as if it were done.
var (
	caughtUp = kind{"caught up", "catching up", "catch up"}
	applied  = kind{"applied", "applying", "apply"}
	fenced   = kind{"fenced", "fencing", "fence"}
	opened   = kind{"opened", "opening", "open"}
)

// only is a step that is told once it is done.
func only(name string) kind { return kind{name, name, name} }

// step is one step of a change.
type step struct {
	kind
	words string
	at    time.Time
	state state
}

// name is what the step is called in its state.
func (s step) name() string {
	switch s.state {
	case done:
		return s.done
	case now:
		return s.now
	case next, unknown:
	}
	return s.next
}

// waiting draws a planned failover that has changed nothing yet.
func (v View) waiting(p report.Planned, width int) canvas.Block {
	head := v.Move(p.From, p.To) + ", " + p.Phase
	var began time.Time
	if p.StartedAt != nil {
		began = *p.StartedAt
		head += " for " + v.Ago(began)
	}
	out := v.Signs.Paragraph(canvas.Span{Text: "Planned", Style: canvas.Warn}, head+"; nothing has changed yet", width)
	message := p.Message
	if message == "" {
		message = p.To + " catches up"
	}
	for _, s := range []step{
		{only("asked"), string(p.Cause), began, done},
		{caughtUp, message, time.Time{}, now},
		{fenced, p.From + " takes writes until then", time.Time{}, next},
		{applied, p.To + " will apply the last commits of " + p.From, time.Time{}, next},
		{opened, p.To + " will take writes", time.Time{}, next},
	} {
		out = append(out, v.stepLines(s, began, width)...)
	}
	return out
}

// unfolding draws a change that is under way, step by step as its durable intent says.
func (v View) unfolding(t v1alpha1.Transition, width int) canvas.Block {
	began := t.DetectedAt.Time
	if began.IsZero() {
		began = t.StartedAt.Time
	}
	from := v.Move(t.From, t.To)
	if t.From == t.To {
		from = "failover is taken back: " + t.To + " opens again"
	}
	head := fmt.Sprintf("%s %s under epoch %d, %s so far: %s", strings.ToLower(string(t.Kind)), from, v.Report.Epoch,
		paint.Seconds(max(0, v.Now.Sub(began))), t.Reason)
	out := v.Signs.Paragraph(canvas.Span{Text: "Changing", Style: canvas.Warn}, head, width)
	for _, s := range v.steps(t, began) {
		out = append(out, v.stepLines(s, began, width)...)
		if s.state == now && s.kind == fenced {
			out = append(out, v.fences(width)...)
		}
	}
	return out
}

// gateReasons are the reasons of a decision that waits for proof that the old active site has stopped: by then the target has applied all.
var gateReasons = []v1alpha1.Reason{v1alpha1.ReasonAwaitingFenceProof, v1alpha1.ReasonSiteMayStillVouch, v1alpha1.ReasonLeaseOutlived, v1alpha1.ReasonForeignWriter}

// steps are those of a change under way. A planned failover fences first, since only then nothing can be added to what the target has to
// apply. In an emergency the old active site cannot be asked: what the target received is applied while proof is awaited that it has stopped.
func (v View) steps(t v1alpha1.Transition, began time.Time) []step {
	all := []step{
		{only("detected"), string(t.Reason), began, done},
		{only("decided"), fmt.Sprintf("epoch %d is persisted; no site may open writes", v.Report.Epoch), t.StartedAt.Time, done},
	}
	if t.From == t.To { // a planned failover was given up, and its old active site is opened again
		words := t.To + " does not take writes yet"
		if d := v.Report.Decision; d != nil && d.Message != "" {
			words = d.Message
		}
		return append(all, step{opened, words, time.Time{}, now})
	}
	planned := t.Kind == v1alpha1.FailoverPlanned
	apply := step{applied, t.To + " has applied all that it received", time.Time{}, done}
	fence := step{fenced, "proof that " + paint.OrNone(t.From) + " has stopped", time.Time{}, next}
	open := step{opened, t.To + " will take writes", time.Time{}, next}
	if planned {
		all[0].kind = only("asked")
		fence.words, apply.words = paint.OrNone(t.From)+" takes no writes", t.To+" has applied all that "+t.From+" had"
	}
	d := v.Report.Decision
	switch waits := d != nil && slices.Contains(gateReasons, v1alpha1.Reason(d.Reason)); {
	case t.Step == v1alpha1.TransitionOpening:
		fence.words, fence.state = strings.Join(t.Evidence, "; "), done
		open.words, open.state = t.To+" does not take writes yet", now
		if t.GatePassedAt != nil {
			fence.at = t.GatePassedAt.Time
		}
	case d == nil:
		apply.words, apply.state = "not known: the operator does not answer", unknown
		fence.state = unknown
	case waits && planned:
		fence.words, fence.state = d.Message, now
		apply.words, apply.state = t.To+" will apply the last commits of "+t.From, next
	case waits:
		fence.words, fence.state = d.Message, now
	case planned:
		fence.state = done
		apply.words, apply.state = d.Message, now
	default:
		apply.words, apply.state = d.Message, now
	}
	if planned {
		all = append(all, fence, apply, open)
	} else {
		all = append(all, apply, fence, open)
	}
	if s, has := v.cacheStep(t, began); has {
		all = append(all, s)
	}
	return all
}

// stepLines draws a step with all of its words: everyone looks for what it waits for.
func (v View) stepLines(s step, began time.Time, width int) canvas.Block {
	at := ""
	switch {
	case !s.at.IsZero():
		at = "+" + paint.Millis(s.at.Sub(began).Milliseconds())
	case s.state == now && !began.IsZero():
		at = "+" + paint.Seconds(max(0, v.Now.Sub(began)))
	}
	st := map[state]canvas.Style{done: canvas.Good, now: canvas.Warn, next: canvas.Faint, unknown: canvas.Warn}[s.state]
	label := fmt.Sprintf("  [%c] %-7s %-11s", s.state, at, s.name())
	return v.Signs.Wrap(canvas.Span{Text: label, Style: st}, canvas.Cells(label)+1, s.words, width)
}

// fences says of each site whether it could still accept writes, as the operator sees it.
func (v View) fences(width int) canvas.Block {
	words := make([]string, 0, len(v.Report.Sites))
	for _, s := range v.Report.Sites {
		words = append(words, s.Name+" "+paint.OrUnknown(s.Fence))
	}
	return v.Signs.Wrap(canvas.Span{}, 26, strings.Join(words, ", "), width)
}

// past draws a completed change, its steps to scale.
func (v View) past(f v1alpha1.FailoverRecord, width int) canvas.Block {
	from := f.DetectedAt.Time
	if from.IsZero() {
		from = f.StartedAt.Time
	}
	words := fmt.Sprintf("%s %s, epoch %d, %s ago, took %s, %s", strings.ToLower(string(f.Kind)), v.Move(f.From, f.To), f.Epoch,
		v.Ago(f.OpenedAt.Time), paint.Millis(f.OpenedAt.Sub(from).Milliseconds()), lossWords(f.LostTransactions, f.LossExact))
	if f.WritePauseMillis != nil {
		words += ", writes paused for " + paint.Millis(*f.WritePauseMillis)
	}
	out := v.Signs.Paragraph(canvas.Span{Text: "Failover"}, words+": "+string(f.Reason), width)
	if len(f.Timeline) > 1 {
		out = append(out, canvas.Line{{Text: strings.Repeat(" ", canvas.LabelWidth)}, {Text: v.scale(f.Timeline, width-canvas.LabelWidth)}})
		steps := make([]string, 0, len(f.Timeline))
		for _, t := range f.Timeline {
			steps = append(steps, "+"+paint.Millis(t.Millis)+" "+t.Step)
		}
		out = append(out, v.Signs.Paragraph(canvas.Span{}, strings.Join(steps, ", "), width)...)
	}
	out = append(out, v.cacheBeside(f, from, width)...)
	for _, e := range f.Evidence {
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Evidence", Style: canvas.Faint}, e, width)...)
	}
	if f.LostTransactions > 0 {
		lost := v.Signs.Paragraph(canvas.Span{Text: "Lost", Style: canvas.Bad}, lostWords(f)+":", width)
		out = append(out, append(lost, v.Command("kubectl mfg history "+v.Report.Metadata.Name+" -n "+v.Report.Metadata.Namespace, width)...).Whole()...)
	}
	return out
}

func lossWords(lost int64, exact bool) string {
	switch {
	case exact:
		return fmt.Sprintf("%d lost", lost)
	case lost == 0:
		return "loss not known yet"
	}
	return fmt.Sprintf("at least %d lost", lost)
}

func lostWords(f v1alpha1.FailoverRecord) string {
	words := fmt.Sprintf("%d commits of %s", f.LostTransactions, paint.OrNone(f.From))
	if !f.LossExact {
		words = "at least " + words
	}
	return words + " are missing on " + f.To + "; to list them"
}

// scale draws the time between steps to scale: a bar for each stretch, a mark at each step.
func (v View) scale(steps []v1alpha1.TimelineEntry, width int) string {
	last := steps[len(steps)-1].Millis
	if last <= 0 || width < 2 {
		return ""
	}
	out := []rune(strings.Repeat(v.Signs.Flat, width))
	for _, s := range steps {
		at := int(min(last, max(0, s.Millis)) * int64(width-1) / last)
		out[at] = '|'
	}
	return string(out)
}
