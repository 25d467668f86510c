// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"github.com/mysql-mfg/mfg/tui/canvas"
)

// whyPage is what the operator says of its decision, as kubectl mfg explain draws it.
func (m Model) whyPage(width int) canvas.Block {
	if m.why.name() != m.open {
		return canvas.Block{nil, {{Text: "  asking the operator" + m.signs.Ellipsis, Style: canvas.Faint}}}
	}
	if m.why.Error != "" {
		return append(canvas.Block{nil}, m.signs.Paragraph(canvas.Span{Text: "Error", Style: canvas.Bad}, m.why.Error, width)...)
	}
	out := canvas.Block{nil}
	for l := range strings.SplitSeq(strings.TrimRight(m.why.Why, "\n"), "\n") {
		out = append(out, canvas.Line{{Text: l}})
	}
	return out
}

// keyHelp is every key, by page.
var keyHelp = []struct{ keys, what string }{
	{"", "Everywhere"},
	{"?", "this page"},
	{":", "a command, see below"},
	{"esc", "back; in the list, end the filter"},
	{"q, ctrl+c", "quit"},
	{"", "List of groups"},
	{"j k, arrows", "choose a group; g and G go to the ends, space and ctrl+b page"},
	{"enter", "open it"},
	{"/", "show only what matches: name, status or active site"},
	{"s", "sort by name, or what needs attention first"},
	{"x", "why the operator does, or does not, fail over"},
	{"", "A group"},
	{"j k, arrows", "choose a site; space and ctrl+b scroll"},
	{"tab", "next group; shift+tab the one before"},
	{"x", "why the operator does, or does not, fail over"},
	{"f", "planned failover to the chosen site"},
	{"a", "abort the planned failover that is under way; withdraw an order that accepts data loss"},
	{"c", "copy the chosen site again (reclone)"},
	{"p", "pause the operator for 30m, or resume"},
	{"", "Commands"},
	{":GROUP", "open that group"},
	{":groups", "the list; :filter WORD filters it"},
	{":explain", "why"},
	{":failover SITE", "as f; :abort, :reclone SITE, :pause 10m, :resume"},
	{":quit", "quit"},
	{"", "Signs"},
	{"*", "the active site; > is what is chosen; ! needs attention; ? is not known"},
	{"lag, behind", "value, share of the greatest value shown, and its course, one column a second"},
	{"[x] [>] [ ]", "a step that is done, under way, to come"},
}

func (m Model) helpPage(width int) canvas.Block {
	actions := "Actions show their plan and ask before anything happens."
	if !m.options.AllowActions {
		actions = "This dashboard only looks. Started with --allow-actions it can act; each action shows its plan and asks."
	}
	out := canvas.Block{nil}
	for _, h := range keyHelp {
		if h.keys == "" {
			out = append(out, canvas.Line{{Text: h.what, Style: canvas.Strong}})
			continue
		}
		out = append(out, m.signs.Wrap(canvas.Span{Text: "  " + h.keys}, 18, h.what, width)...)
	}
	return append(append(out, nil), m.signs.Wrap(canvas.Span{}, 1, actions, width)...)
}
