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
