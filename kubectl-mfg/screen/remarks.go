// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// What is wrong, and what to do next?

// remarks draws problems, notes and hints.
func (o Options) remarks(r report.MysqlFailoverGroupReport) string {
	var b strings.Builder
	b.WriteString(o.problems(r.Problems, r.Transition))
	for _, n := range r.Notes {
		b.WriteString(o.paragraph(text{"Note", warn}, n.Text))
	}
	for _, h := range r.Hints {
		b.WriteString(o.hint(h))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

// problems leaves out the change of the active site, which has a line of its own.
func (o Options) problems(all []report.Problem, t *report.Transition) string {
	var b strings.Builder
	for _, p := range all {
		if p.Reason == v1alpha1.ReasonFailingOver && t != nil {
			continue
		}
		words := p.Message
		if p.Site != "" {
			words = p.Site + " " + words
		}
		b.WriteString(o.paragraph(text{"Problem", bad}, words+" ["+string(p.Reason)+"]"))
	}
	return b.String()
}

// told is true if a problem already says a message.
func told(problems []report.Problem, message string) bool {
	return slices.ContainsFunc(problems, func(p report.Problem) bool { return p.Message == message })
}

// hint never breaks a command: people copy it.
func (o Options) hint(h report.Hint) string {
	message := o.paragraph(text{"Hint", good}, h.Message+":")
	if o.Width == 0 {
		return strings.TrimSuffix(message, "\n") + " " + h.Command + "\n"
	}
	return message + strings.Repeat(" ", labelWidth) + h.Command + "\n"
}
