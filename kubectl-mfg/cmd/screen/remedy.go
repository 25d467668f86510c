// SPDX-License-Identifier: Apache-2.0

package screen

import "strings"

// remedy is prose with commands in it. On a terminal each command gets a line of its own, whole and with nothing behind it,
// since it is there to be copied: with the words after it a shell would refuse it, or run what stands beside it too.
func (o Options) remedy(indent int, words string) string {
	if o.Width == 0 {
		return o.wrap(indent, "-> "+words)
	}
	var b strings.Builder
	for i, s := range stepsOf(words) {
		switch {
		case i > 0 && s.said != "":
			b.WriteString(strings.Repeat(" ", indent) + o.wrap(indent, s.said))
		case s.said != "":
			b.WriteString(o.wrap(indent, "-> "+s.said))
		case i == 0:
			b.WriteString("-> " + s.command + "\n") // the line is indented already
			continue
		}
		if s.command != "" {
			b.WriteString(strings.Repeat(" ", min(indent, labelWidth)) + s.command + "\n")
		}
	}
	return b.String()
}

// step is what is said, and the command that does it.
type step struct{ said, command string }

const commandBegins = "kubectl "

// stepsOf takes the commands out of prose. Where a command stood in brackets, or in the middle of a sentence, a colon says
// that it follows.
func stepsOf(words string) []step {
	var steps []step
	for words != "" {
		at := commandAt(words)
		if at < 0 {
			return append(steps, step{said: words})
		}
		before, inBrackets := strings.CutSuffix(strings.TrimSpace(words[:at]), "(")
		said := strings.TrimRight(before, " ,;")
		if said != "" && !strings.HasSuffix(said, ":") {
			said += ":"
		}
		end := at + commandEnd(words[at:], inBrackets)
		steps = append(steps, step{said, strings.TrimSpace(words[at:end])})
		words = strings.TrimLeft(words[end:], "),;. ")
	}
	return steps
}

// commandAt is where the first command begins, as a word of its own; -1 if there is none.
func commandAt(words string) int {
	for from := 0; ; {
		at := strings.Index(words[from:], commandBegins)
		if at < 0 {
			return -1
		}
		if at += from; at == 0 || words[at-1] == ' ' || words[at-1] == '(' {
			return at
		}
		from = at + len(commandBegins)
	}
}

// commandEnd is where a command ends: at the bracket that closes around it, or at a comma or semicolon with a blank behind.
// Inside of quotes, and inside of a word, these belong to it.
func commandEnd(words string, inBrackets bool) int {
	quote := rune(0)
	for i, c := range words {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'', c == '"':
			quote = c
		case c == ')' && inBrackets, (c == ',' || c == ';') && (i+1 == len(words) || words[i+1] == ' '):
			return i
		}
	}
	return len(words)
}
