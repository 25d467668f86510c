// SPDX-License-Identifier: Apache-2.0

package wire

import "strings"

// Remedy is one thing that a person can do about a refusal or a cause: words, a command, or words and the command that does what they
// say. Who refuses makes it, once, with the names in it; everybody else only shows it. Of several, the words of the later ones say how
// they go together: "or ...", "then".
type Remedy struct {
	Text    string `json:"text,omitempty"`
	Command string `json:"command,omitempty"`
}

// String is the remedy as words in one line. The command stands last, so that it can be copied.
func (r Remedy) String() string {
	switch {
	case r.Command == "":
		return r.Text
	case r.Text == "":
		return r.Command
	}
	return r.Text + ": " + r.Command
}

// InWords joins remedies to one line.
func InWords(all []Remedy) string {
	words := make([]string, 0, len(all))
	for _, r := range all {
		words = append(words, r.String())
	}
	return strings.Join(words, "; ")
}
