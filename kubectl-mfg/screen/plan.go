// SPDX-License-Identifier: Apache-2.0

package screen

import "strings"

// Line is a label and its text.
type Line struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

// Plan draws what will happen.
func Plan(title string, lines []Line, o Options) string {
	var b strings.Builder
	b.WriteString(o.paint(text{title, bold}) + "\n\n")
	for _, l := range lines {
		b.WriteString(o.paragraph(text{s: l.Label}, l.Text))
	}
	b.WriteString("\n")
	return b.String()
}
