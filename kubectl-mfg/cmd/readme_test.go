// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestREADMECommands: the first commands that anyone types are those that the plugin takes.
func TestREADMECommands(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands, inside := 0, false
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside && strings.HasPrefix(strings.TrimPrefix(line, "$ "), "kubectl mfg "):
			commands++
			checkCommand(t, strings.TrimPrefix(line, "$ "))
		}
	}
	if commands < 4 {
		t.Errorf("README.md has %d commands of the plugin", commands)
	}
}

// TestQuickstartCommands: README's are those of docs/quickstart.md, which a lab test types, but for the file of the backups.
func TestQuickstartCommands(t *testing.T) {
	readme, page := commandsIn(t, "README.md", "## Demo"), commandsIn(t, "docs/quickstart.md", "## What next")
	for _, c := range page {
		if strings.HasPrefix(c, "kubectl mfg ") {
			checkCommand(t, c)
		}
	}
	if len(readme) != 7 || len(page) != 11 {
		t.Fatalf("README.md has %d commands and docs/quickstart.md %d, which promises ten and a look at the row", len(readme), len(page))
	}
	for i, c := range readme {
		if want := strings.TrimSuffix(page[i], " -f backup.yaml"); c != want {
			t.Errorf("command %d of README.md is %q, and of docs/quickstart.md %q", i+1, c, want)
		}
	}
}

// commandsIn are the commands of a page's console blocks up to a heading, each on one line. What is typed before the quickstart, or shown
// with what it prints, is none.
func commandsIn(t *testing.T, file, end string) (commands []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(raw), "\n"+end+"\n")
	inside := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		line, _, _ = strings.Cut(line, " #")
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside && !strings.HasPrefix(line, "$ ") && (strings.HasPrefix(line, "kubectl ") || strings.HasPrefix(line, "helm ") || strings.HasPrefix(line, "go ")):
			commands = append(commands, line)
		}
	}
	return commands
}
