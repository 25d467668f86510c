// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// problems draws what is wrong, each cause before its consequences, and how far to trust that.
func (v groupView) problems(width int) canvas.Block {
	var out canvas.Block
	var follow []string
	for _, p := range v.g.report.Problems {
		switch {
		case p.Consequence:
			follow = append(follow, problemWords(p))
		case !v.g.tells(p):
			out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Problem", Style: canvas.Bad}, problemWords(p), width)...)
		}
	}
	if len(follow) > 0 {
		from := "from that: "
		if len(out) == 0 {
			from = "from the change: "
		}
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Follows", Style: canvas.Faint}, from+strings.Join(follow, ", "), width)...)
	}
	for _, n := range v.g.report.Notes {
		if n.Kind == report.NotePause {
			continue // its countdown is above
		}
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Note", Style: canvas.Warn}, n.Text, width)...)
	}
	return append(out, v.doubts(width)...)
}

func problemWords(p report.Problem) string {
	words := p.Message
	if p.Site != "" {
		words = p.Site + " " + words
	}
	return words + " [" + string(p.Reason) + "]"
}

// doubts says why the screen may not show the truth.
func (v groupView) doubts(width int) canvas.Block {
	var out canvas.Block
	if v.objectErr != "" {
		words := "the dashboard could not read the custom resource yet: "
		if v.objects {
			words = "the API server has not answered for " + paint.Seconds(v.resourceAge()) + ": "
		}
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Old data", Style: canvas.Bad}, words+v.objectErr, width)...)
	}
	if v.g.report.Facts.Source == report.LastKnown && v.link.Error != "" {
		words := "this is the last known status of the custom resource"
		if at := v.g.report.Facts.ObservedAt; at != nil {
			words += ", changed " + v.Ago(*at) + " ago"
		}
		out = append(out, v.Signs.Paragraph(canvas.Span{Text: "Old data", Style: canvas.Warn}, words+": "+v.g.report.Facts.Message, width)...)
	}
	return out
}

// tells is true for a problem that the timeline already tells, or the site's own line. A dead site is named in any case.
func (g *group) tells(p report.Problem) bool {
	if p.Site == "" {
		return g.report.Transition != nil && p.Reason == v1alpha1.ReasonFailingOver
	}
	return p.OfSite && p.Reason != v1alpha1.ReasonSiteUnreachable
}

// hints draws the next commands, as kubectl mfg status names them. A command is made to be copied, so it is drawn whole.
func (v groupView) hints(width int) canvas.Block {
	var out canvas.Block
	for _, h := range v.g.report.Hints {
		hint := v.Signs.Paragraph(canvas.Span{Text: "Hint", Style: canvas.Good}, h.Message+":", width)
		out = append(out, append(hint, v.Command(h.Command, width)...).Whole()...)
	}
	return out
}
