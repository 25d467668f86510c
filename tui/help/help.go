// SPDX-License-Identifier: Apache-2.0

// Package help is the page of the dashboard that names its keys, commands and signs.
package help

import "github.com/mysql-mfg/mfg/tui/canvas"

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
	{"N, S", "sort by name, or by status: what needs attention first"},
	{"l", "logs of all of its sites"},
	{"x", "why the operator does, or does not, fail over"},
	{"", "A group"},
	{"j k, arrows", "choose a site; space and ctrl+b scroll"},
	{"tab", "next group; shift+tab the one before"},
	{"d, enter", "pods of the chosen site, with their containers and events"},
	{"l", "logs of the chosen site"},
	{"s", "the command for a shell beside its MySQL"},
	{"x", "why the operator does, or does not, fail over"},
	{"f", "planned failover to the chosen site"},
	{"a", "abort the planned failover that is under way; withdraw an order that accepts data loss"},
	{"c", "copy the chosen site again (reclone)"},
	{"p", "pause the operator for 30m, or resume"},
	{"", "Pods and logs"},
	{"j k, g G", "scroll; logs stay at the newest line while that is on the screen"},
	{"/", "show only lines with what is typed; esc ends it"},
	{"tab, w", "logs: the next container, and lines whole or cut"},
	{"", "Commands"},
	{":GROUP", "open that group"},
	{":groups", "the list; :filter WORD filters it"},
	{":explain", "why"},
	{":pods SITE", "as d; :logs SITE, or :logs for all sites"},
	{":failover SITE", "as f; :abort, :reclone SITE, :pause 10m, :resume"},
	{":quit", "quit"},
	{"", "Signs"},
	{"*", "the active site; > is what is chosen; ! needs attention; ? is not known"},
	{"lag, behind", "value and course, one column a second; in a card also its share of the greatest value shown"},
	{"commits", "transactions a second, from one look of the operator to the next"},
	{"to go", "how long until a replica has caught up at this pace"},
	{"[x] [>] [ ]", "a step that is done, under way, to come; [?] is not known"},
}

// Draw draws the page.
func Draw(signs canvas.Glyphs, allowActions bool, width int) canvas.Block {
	actions := "Actions show their plan and ask before anything happens."
	if !allowActions {
		actions = "This dashboard only looks. Started with --allow-actions it can act; each action shows its plan and asks."
	}
	out := canvas.Block{nil}
	for _, h := range keyHelp {
		if h.keys == "" {
			out = append(out, canvas.Line{{Text: h.what, Style: canvas.Strong}})
			continue
		}
		out = append(out, signs.Wrap(canvas.Span{Text: "  " + h.keys}, 18, h.what, width)...)
	}
	return append(append(out, nil), signs.Wrap(canvas.Span{}, 1, actions, width)...)
}
