// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// documented runs the commands of a page of docs/ that follow the line `<!-- runbook: NAME -->`, with more in the environment, and
// returns what they print.
func documented(t *testing.T, page, name string, env ...string) string {
	t.Helper()
	return runDocumented(t, name, commandsOf(t, page, name), env...)
}

// commandsOf reads the commands of a page of docs/ that follow the line `<!-- runbook: NAME -->`, which may be within a list.
func commandsOf(t *testing.T, page, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(lab.Repo, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- runbook: " + regexp.QuoteMeta(name) + " -->\n( *)```(?:sh|console|yaml)\n(.*?)\n *```\n").FindSubmatch(text)
	if block == nil {
		t.Fatalf("docs/%s has no commands for %s", page, name)
	}
	return strings.ReplaceAll("\n"+string(block[2]), "\n"+string(block[1]), "\n")[1:]
}

func runDocumented(t *testing.T, name, commands string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), documentedLimit)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", commands)
	cmd.Env = append(lab.Lab.Environ(), env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = lab.Repo, &out, &out
	// The limit ends what bash started too. Otherwise Run waits for that as long as it holds the output.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("the documented commands %s: %v\n%s", name, err, out.String())
	}
	t.Logf("documented commands %s: %s", name, strings.TrimSpace(out.String()))
	return out.String()
}

// documentedLimit is longer than any limit on a page.
const documentedLimit = 12 * time.Minute
