// SPDX-License-Identifier: Apache-2.0

// Package main draws docs/failover.svg, the picture of a failover in README.md, out of the frames of docs/dashboard-failover.md.
package main

import (
	"errors"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

// chapter is one moment of the recorded failover: what it shows in a sentence, and the screen.
type chapter struct {
	title, caption string
	screen         []string
}

// Sizes are in pixels, times in seconds.
const (
	columns, rows  = 120, 28
	charWide       = 7.8
	lineHigh       = 17
	margin         = 12
	captionHigh    = 30
	shownFor       = 5
	mostChapters   = 12
	baseline       = 13
	stillByDefault = "The new active site"
)

var (
	section = regexp.MustCompile("(?s)\n## ([^\n]+)\n\n(.*?)\n\n```text\n(.*?)\n```")
	words   = regexp.MustCompile(` {2,}|! \w+|\bfence (open|read-only|unknown)\b|\b(Ready|Primary|Replica|Unreachable|Detached|Diverged|Fenced)\b`)
)

// read finds the chapters of a page.
func read(page string) ([]chapter, error) {
	var all []chapter
	for _, m := range section.FindAllStringSubmatch(page, mostChapters) {
		c := chapter{title: m[1], caption: firstSentences(strings.Join(strings.Fields(m[2]), " ")), screen: strings.Split(m[3], "\n")}
		if len(c.screen) < rows {
			return nil, fmt.Errorf("the frame of %q has %d rows, and the picture needs %d", c.title, len(c.screen), rows)
		}
		all = append(all, c)
	}
	if len(all) < 2 {
		return nil, errors.New("the page has fewer than two frames: was it made by `make docs-frames`?")
	}
	return all, nil
}

// firstSentences is as much of a text as fits above a frame, and at least one sentence.
func firstSentences(text string) string {
	out := ""
	for _, s := range strings.SplitAfter(text, ". ") {
		if out != "" && len(out)+len(s) > columns {
			break
		}
		out += s
	}
	return strings.TrimSpace(out)
}

// draw is the picture. It moves where a viewer can move it; elsewhere it shows the chapter in which writes go on.
func draw(all []chapter) string {
	var b strings.Builder
	width, high := columns*charWide+2*margin, rows*lineHigh+captionHigh+2*margin
	whole := len(all) * shownFor
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img">`+"\n", width, high, width, high)
	b.WriteString("<!-- Made by `make docs-picture` from docs/dashboard-failover.md; not by hand. -->\n")
	b.WriteString("<title>A failover on the dashboard: the active site loses its power, another site takes over</title>\n")
	step := 100 / float64(len(all))
	fmt.Fprintf(&b, "<style>\ntext{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d0d0d0}\n"+
		".say{font-weight:bold;fill:#fff}.good{fill:#5fd787}.bad{fill:#ff5f5f}.wait{fill:#ffd75f}.top{fill:#87afff}\n"+
		".f{opacity:0}.still{opacity:1}\n"+
		"@media (prefers-reduced-motion:no-preference){.f{animation:show %ds step-end infinite}}\n"+
		"@keyframes show{0%%{opacity:1}%.2f%%{opacity:0}100%%{opacity:0}}\n</style>\n", whole, step)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="#1c1c1c"/>`+"\n")
	for i, c := range all {
		class := "f"
		if c.title == stillByDefault {
			class = "f still"
		}
		// A negative delay starts each chapter in the middle of its round, so that never two are shown at once.
		fmt.Fprintf(&b, `<g class="%s" style="animation-delay:-%ds">`+"\n", class, (len(all)-i)%len(all)*shownFor)
		fmt.Fprintf(&b, `<text class="say" x="%d" y="%d">%s</text>`+"\n", margin, margin+baseline, html.EscapeString(c.caption))
		for row, line := range c.screen[:rows] {
			b.WriteString(text(row, line))
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// text is one row of a screen, in pieces. Each has its place and its length, so that boxes close in any font of the viewer, and no viewer
// need know what to do with blanks.
func text(row int, line string) string {
	var b strings.Builder
	put := func(from, to int, class string) {
		piece := line[from:to]
		from += len(piece) - len(strings.TrimLeft(piece, " "))
		if piece = strings.TrimSpace(piece); piece == "" {
			return
		}
		if row == 0 {
			class = "top"
		}
		if class != "" {
			class = fmt.Sprintf(` class="%s"`, class)
		}
		fmt.Fprintf(&b, `<text%s x="%.1f" y="%d" textLength="%.1f">%s</text>`+"\n", class, margin+wide(line[:from]),
			margin+captionHigh+baseline+row*lineHigh, wide(piece), html.EscapeString(piece))
	}
	at := 0
	for _, m := range words.FindAllStringIndex(line, -1) {
		put(at, m[0], "")
		if m[0] != m[1] && strings.TrimSpace(line[m[0]:m[1]]) != "" {
			put(m[0], m[1], colour(line[m[0]:m[1]]))
		}
		at = m[1]
	}
	put(at, len(line), "")
	return b.String()
}

// wide is how many pixels a text takes.
func wide(text string) float64 { return float64(utf8.RuneCountInString(text)) * charWide }

func colour(word string) string {
	switch word {
	case "Ready", "Primary", "Replica", "fence open", "fence read-only":
		return "good"
	case "Unreachable", "fence unknown", "! Unavailable":
		return "bad"
	default:
		return "wait"
	}
}
