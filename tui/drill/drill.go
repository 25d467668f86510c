// SPDX-License-Identifier: Apache-2.0

// Package drill draws what is below a site: its pods with their containers and events, and its logs. It is pure: the dashboard asks,
// and passes on the answer.
package drill

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// Kind is what a Question asks for.
type Kind string

// The kinds.
const (
	Pods Kind = "pods"
	Logs Kind = "logs"
)

// Question asks about one site, or with an empty Site about all of a group; for logs about one container, or with "" about all.
type Question struct {
	Kind                              Kind
	Namespace, Group, Site, Container string
}

// Answer is the result, or why it could not be read.
type Answer struct {
	Question Question
	Pods     []Pod
	// Lines are the newest of the logs, the newest last; Note says what is missing.
	Lines []Line
	Note  string
	Error string
}

// Pod is a pod of a site.
type Pod struct {
	Name, Phase, Node string
	Started           time.Time
	// Trouble is why it does not run, or is not ready, in Kubernetes' words.
	Trouble    []string
	Containers []Container
}

// Container is a container of a pod.
type Container struct {
	Name     string
	Ready    bool
	Restarts int32
	// State is how it is now, and Last how it ended before; empty if it never did.
	State, Last string
}

// Line is a line of a log. Level is one of ERROR, WARN, INFO and DEBUG.
type Line struct {
	At                  time.Time
	Source, Level, Text string
}

// Page is what is on the screen, and how the user wants to see it.
type Page struct {
	Question Question
	Answer   Answer
	// Filter leaves only lines that contain it, in any case. Wrap draws lines whole that are wider than the screen.
	Filter string
	Wrap   bool
}

// containerMySQL is where mysqld runs in the pod of a site.
const containerMySQL = "mysql"

// Containers are what Next goes through: "" for all.
var Containers = []string{"", containerMySQL, v1alpha1.ContainerSidecar}

// Next returns the question about the next container.
func (p Page) Next() Question {
	q := p.Question
	for i, c := range Containers {
		if c == q.Container {
			q.Container = Containers[(i+1)%len(Containers)]
			return q
		}
	}
	q.Container = ""
	return q
}

// Title says what is shown.
func (p Page) Title() string {
	q := p.Question
	words := q.Namespace + "/" + q.Group
	if q.Site != "" {
		words += " " + q.Site
	}
	words += " " + string(q.Kind)
	if q.Kind == Logs {
		words += " of " + all(q.Container)
	}
	if p.Filter != "" {
		words += " /" + p.Filter
	}
	return words
}

func all(container string) string {
	if container == "" {
		return "all containers"
	}
	return container
}

// Facts are what the dashboard already knows of the site.
type Facts struct {
	Report report.MysqlFailoverGroupReport
	Events []report.Event
}

// Draw draws the page.
func (p Page) Draw(on paint.Painter, f Facts, width int) canvas.Block {
	switch {
	case p.Answer.Question != p.Question:
		return canvas.Block{nil, {{Text: "  asking the API server" + on.Signs.Ellipsis, Style: canvas.Faint}}}
	case p.Question.Kind == Logs:
		return p.logs(on, width)
	}
	out := append(canvas.Block{nil}, p.site(on, f, width)...)
	out = append(out, p.pods(on, width)...)
	return append(append(out, nil), p.events(on, f, width)...)
}

func (p Page) failure(on paint.Painter, width int) canvas.Block {
	if p.Answer.Error == "" {
		return nil
	}
	return on.Signs.Paragraph(canvas.Span{Text: "Error", Style: canvas.Bad}, p.Answer.Error, width)
}

// site draws all that the operator says of it, uncut.
func (p Page) site(on paint.Painter, f Facts, width int) canvas.Block {
	var out canvas.Block
	for _, s := range f.Report.Sites {
		if s.Name != p.Question.Site {
			continue
		}
		words := s.Name + ", " + s.Role + ", " + paint.OrUnknown(s.StateWord()) + ", fence " + paint.OrUnknown(s.Fence)
		if s.Node != "" {
			words += ", node " + s.Node
		}
		if s.Version != "" {
			words += ", MySQL " + s.Version
		}
		out = append(out, on.Signs.Paragraph(canvas.Span{Text: "Site"}, words, width)...)
		if s.Message != "" {
			out = append(out, on.Signs.Paragraph(canvas.Span{}, s.Message, width)...)
		}
		if s.ErrantSet != "" {
			out = append(out, on.Signs.Paragraph(canvas.Span{Text: "Errant", Style: canvas.Bad}, fmt.Sprintf("%s that the active site lacks: %s", gtid.Transactions(s.Errant), s.ErrantSet), width)...)
		}
	}
	return out
}

func (p Page) pods(on paint.Painter, width int) canvas.Block {
	out := p.failure(on, width)
	if len(p.Answer.Pods) == 0 && p.Answer.Error == "" {
		out = append(out, on.Signs.Paragraph(canvas.Span{Text: "Pod", Style: canvas.Bad}, "there is none", width)...)
	}
	for _, pod := range p.Answer.Pods {
		words := pod.Name + " " + pod.Phase
		if pod.Node != "" {
			words += ", node " + pod.Node
		}
		if !pod.Started.IsZero() {
			words += ", " + on.Ago(pod.Started) + " old"
		}
		out = append(append(out, nil), on.Signs.Paragraph(canvas.Span{Text: "Pod", Style: canvas.Strong}, words, width)...)
		for _, t := range pod.Trouble {
			out = append(out, on.Signs.Paragraph(canvas.Span{Text: "Trouble", Style: canvas.Bad}, t, width)...)
		}
		for _, c := range pod.Containers {
			out = append(out, containerLine(on, c, width)...)
		}
	}
	return append(append(out, nil), p.commands(on, width)...)
}

func containerLine(on paint.Painter, c Container, width int) canvas.Block {
	st, words := canvas.Good, "ready, "
	if !c.Ready {
		st, words = canvas.Warn, ""
	}
	words += c.State
	if c.Restarts > 0 {
		words += fmt.Sprintf(", %d restarts", c.Restarts)
	}
	if c.Last != "" {
		words += "; before that " + c.Last
	}
	return on.Signs.Wrap(canvas.Span{Text: "  " + on.Signs.Pad(c.Name, 16), Style: st}, 19, words, width)
}

// commands draws how to continue in one's own shell.
func (p Page) commands(on paint.Painter, width int) canvas.Block {
	if p.Question.Site == "" {
		return nil
	}
	var out canvas.Block
	for _, c := range []struct{ what, command string }{
		{"a shell beside its MySQL:", p.Question.Shell()},
		{"its MySQL itself:", "kubectl mfg mysql " + p.Question.Group + " " + p.Question.Site + " -n " + p.Question.Namespace},
		{"all of its pods, as Kubernetes has them:", "kubectl describe pods -n " + p.Question.Namespace + " -l " + v1alpha1.MySQLPods(p.Question.Group, p.Question.Site)},
	} {
		out = append(out, on.Signs.Paragraph(canvas.Span{Text: "Next", Style: canvas.Good}, c.what, width)...)
		out = append(out, on.Command(c.command, width)...)
	}
	return out
}

// Shell returns the command for a shell beside the MySQL of a site.
func (q Question) Shell() string {
	return "kubectl exec -it -n " + q.Namespace + " deploy/" + v1alpha1.SiteName(q.Group, q.Site) + " -c " + containerMySQL + " -- bash"
}

// events draws the events of the site's parts, the newest first, with all of their words.
func (p Page) events(on paint.Painter, f Facts, width int) canvas.Block {
	out := canvas.Block{on.Signs.Rule("Events", width)}
	part := v1alpha1.SiteName(p.Question.Group, p.Question.Site)
	for i := len(f.Events) - 1; i >= 0; i-- {
		e := f.Events[i]
		_, name, _ := strings.Cut(e.Object, "/")
		if p.Question.Site != "" && name != part && !strings.HasPrefix(name, part+"-") {
			continue
		}
		st := canvas.Plain
		if e.Type == "Warning" {
			st = canvas.Warn
		}
		words := e.Object + " " + e.Reason + ": " + e.Message
		if e.Count > 1 {
			words += fmt.Sprintf(" (x%d)", e.Count)
		}
		out = append(out, on.Signs.Wrap(canvas.Span{Text: e.Time.UTC().Format("15:04:05"), Style: st}, canvas.LabelWidth, words, width)...)
	}
	if len(out) == 1 {
		out = append(out, canvas.Line{{Text: "no events are kept", Style: canvas.Faint}})
	}
	return out
}

// logs draws the newest lines, the newest at the bottom.
func (p Page) logs(on paint.Painter, width int) canvas.Block {
	out := p.failure(on, width)
	if p.Answer.Note != "" {
		out = append(out, on.Signs.Paragraph(canvas.Span{Text: "Note", Style: canvas.Warn}, p.Answer.Note, width)...)
	}
	source, found := 6, 0
	for _, l := range p.Answer.Lines {
		source = min(24, max(source, canvas.Cells(l.Source)))
	}
	for _, l := range p.Answer.Lines {
		if !p.matches(l) {
			continue
		}
		found++
		st := map[string]canvas.Style{"ERROR": canvas.Bad, "WARN": canvas.Warn}[l.Level]
		head := canvas.Line{{Text: l.At.UTC().Format("15:04:05") + " ", Style: canvas.Faint}, {Text: on.Signs.Pad(l.Source, source) + " "}, {Text: on.Signs.Pad(l.Level, 5) + " ", Style: st}}
		if room := width - head.Width(); canvas.Cells(l.Text) <= room || !p.Wrap {
			out = append(out, append(head, canvas.Span{Text: on.Signs.Clip(l.Text, room)}))
			continue
		}
		out = append(append(out, head), on.Signs.Wrap(canvas.Span{}, canvas.LabelWidth, l.Text, width)...)
	}
	if found == 0 && p.Answer.Error == "" {
		out = append(out, canvas.Line{{Text: "no line of the logs is here", Style: canvas.Faint}})
	}
	return out
}

func (p Page) matches(l Line) bool {
	return p.Filter == "" || strings.Contains(strings.ToLower(l.Source+" "+l.Level+" "+l.Text), strings.ToLower(p.Filter))
}
