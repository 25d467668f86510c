// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestReference: the reference of all commands is what the commands say of themselves. To write it again:
// go test ./kubectl-mfg/cmd -run TestReference -update.
func TestReference(t *testing.T) {
	// Both are in the default of a flag.
	t.Setenv("HOME", "$HOME")
	t.Setenv("KUBECACHEDIR", "")
	golden(t, filepath.Join("..", "..", "docs", "reference", "kubectl-mfg.md"), reference(newApp(cli.Environment{IOStreams: discarded()}).root()))
}

// TestPackagedCompletion: what packages bring along is what `completion install` writes.
func TestPackagedCompletion(t *testing.T) {
	path := filepath.Join("..", "..", "packaging", completionScript)
	golden(t, path, completionBody)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o111 != 0o111 {
		t.Errorf("%v, %v: kubectl could not run it", info, err)
	}
}

// reference is the page with all commands.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# kubectl mfg: reference\n\nMade from the commands; `go test ./kubectl-mfg/cmd -run TestReference -update` writes it again. " +
		"How to use them: [kubectl-mfg.md](../kubectl-mfg.md).\n\n" + prose(root.Long) + "\n\n" + section("Exit codes", cli.ExitCodes))
	b.WriteString("## Commands\n\n| | Command | |\n|---|---|---|\n")
	for _, g := range root.Groups() {
		title := strings.TrimSuffix(g.Title, ":")
		for _, c := range shown(root) {
			if c.GroupID == g.ID {
				fmt.Fprintf(&b, "| %s | [`%s`](#%s) | %s |\n", title, c.Name(), anchor(c), cell(c.Short))
				title = ""
			}
		}
	}
	b.WriteString("\n")
	for _, g := range root.Groups() {
		for _, c := range shown(root) {
			if c.GroupID == g.ID {
				describeCommand(&b, c)
			}
		}
	}
	return b.String() + "## Flags of every command\n\nAs in kubectl.\n\n" + flagTable(root.PersistentFlags())
}

// shown are the commands below one that people are to see.
func shown(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			out = append(out, sub)
		}
	}
	return out
}

func describeCommand(b *strings.Builder, c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "## %s\n\n```text\n%s\n```\n\n%s\n\n", full(c), usageLine(c), prose(text))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "Also called: `%s`.\n\n", strings.Join(c.Aliases, "`, `"))
	}
	if c.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", unindented(c.Example))
	}
	if table := flagTable(c.LocalNonPersistentFlags()); table != "" {
		b.WriteString(table + "\n")
	}
	for _, sub := range shown(c) {
		describeCommand(b, sub)
	}
}

// full is a command as people type it.
func full(c *cobra.Command) string {
	return strings.Replace(c.CommandPath(), "kubectl-mfg", "kubectl mfg", 1)
}

func usageLine(c *cobra.Command) string {
	return strings.Replace(c.UseLine(), "kubectl-mfg", "kubectl mfg", 1)
}

func anchor(c *cobra.Command) string { return strings.ReplaceAll(full(c), " ", "-") }

// prose keeps what stands in angle brackets from being taken for HTML.
func prose(text string) string { return strings.ReplaceAll(text, "<", "&lt;") }

func section(title, text string) string {
	_, lines, _ := strings.Cut(text, "\n")
	return "## " + title + "\n\n```text\n" + unindented(lines) + "\n```\n\n"
}

func unindented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(strings.TrimPrefix(line, "  "), "\n"))
	}
	return strings.Join(lines, "\n")
}

func cell(text string) string { return strings.ReplaceAll(prose(text), "|", `\|`) }

func flagTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if b.Len() == 0 {
			b.WriteString("| Flag | Default | |\n|---|---|---|\n")
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		def := ""
		if f.DefValue != "" && f.DefValue != "[]" {
			def = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, cell(def), cell(strings.ReplaceAll(usage, "\n", " ")))
	})
	return b.String()
}
