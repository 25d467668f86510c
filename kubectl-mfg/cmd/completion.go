// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// completionScript is the name under which kubectl looks for the completion of `kubectl mfg`.
const completionScript = "kubectl_complete-mfg"

// completionBody asks the plugin itself.
const completionBody = `#!/bin/sh
# Written by: kubectl mfg completion install
# kubectl runs this to complete ` + "`kubectl mfg`" + `.
exec kubectl mfg __complete "$@"
`

func (a *app) completionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell|install",
		Short: "Complete groups and sites on <tab>",
		Long: `Complete verbs, flags, groups and sites on <tab>.

install writes the script ` + completionScript + `, by which kubectl's own completion completes "kubectl mfg", into --dir, or
into the directory of this program. The directory must be in PATH. The others print a completion for the program kubectl-mfg itself.`,
		Example: `  # For "kubectl mfg <tab>", if kubectl's own completion is set up
  kubectl mfg completion install --dir ~/.local/bin

  # For "kubectl-mfg <tab>" in this shell
  source <(kubectl-mfg completion bash)`,
		Args:      exactly("bash|zsh|fish|powershell|install"),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell", "install"},
	}
	dir := cmd.Flags().String("dir", "", "With install: where to write the script. Default: the directory in PATH that holds kubectl-mfg.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		root, out := cmd.Root(), a.env.Out
		switch args[0] {
		case "bash":
			return root.GenBashCompletionV2(out, true)
		case "zsh":
			return root.GenZshCompletion(out)
		case "fish":
			return root.GenFishCompletion(out, true)
		case "powershell":
			return root.GenPowerShellCompletionWithDesc(out)
		case "install":
			return a.installCompletion(*dir)
		}
		return cli.Usage("unknown shell %q: bash, zsh, fish, powershell or install", args[0])
	}
	return cmd
}

// pluginName is the file by which kubectl finds this program.
const pluginName = "kubectl-mfg"

// pluginDir is the directory by which kubectl finds this program. The program itself may be elsewhere: Krew keeps it in its
// store, which is not in PATH and is replaced with each version, and links to it.
func (a *app) pluginDir() string {
	for _, dir := range filepath.SplitList(a.env.Getenv("PATH")) {
		for _, name := range []string{pluginName, pluginName + ".exe"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() && filepath.IsAbs(dir) {
				return dir
			}
		}
	}
	return ""
}

func (a *app) installCompletion(dir string) error {
	if dir == "" {
		if dir = a.pluginDir(); dir == "" {
			return cli.Usage("no directory in PATH holds %s, so it is not known where kubectl would find the completion\n  name a directory in PATH: kubectl mfg completion install --dir ~/.local/bin", pluginName)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // other users run what is in it
		return fmt.Errorf("make directory for completion: %w", err)
	}
	path := filepath.Join(dir, completionScript)
	// Other users run it too, as they run this program.
	if err := os.WriteFile(path, []byte(completionBody), 0o755); err != nil { //nolint:gosec // a program has to be executable
		return fmt.Errorf("write completion: %w", err)
	}
	fmt.Fprintln(a.env.Out, "wrote "+path)
	for _, in := range filepath.SplitList(a.env.Getenv("PATH")) {
		if strings.TrimRight(in, "/") == strings.TrimRight(dir, "/") {
			return nil
		}
	}
	fmt.Fprintf(a.env.ErrOut, "warning: %s is not in PATH, so kubectl will not find it\n", dir)
	return nil
}
