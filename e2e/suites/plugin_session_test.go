// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// sessionPage is executable: what it shows is run.
const sessionPage = "kubectl-mfg-session.md"

var (
	sessionStep = regexp.MustCompile("(?s)<!-- run exit=([0-9|]+)(.*?) -->\n```console\n\\$ ([^\n]+)\n(.*?)```\n")
	// Words may hold quotes: the last one before a space or the end closes them.
	sessionWords = regexp.MustCompile(`says="(.*?)"(?: |$)`)
)

// tempHome is the home of personOf.
var tempHome = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/TestPluginSession[0-9]+/[0-9]+`)

// step is one command of the page.
type step struct {
	command string
	codes   []string
	says    []string
	printed string
}

// session reads the commands of a page.
func session(page string) []step {
	var steps []step
	for _, m := range sessionStep.FindAllStringSubmatch(page, -1) {
		s := step{command: m[3], codes: strings.Split(m[1], "|")}
		for _, w := range sessionWords.FindAllStringSubmatch(m[2], -1) {
			s.says = append(s.says, w[1])
		}
		steps = append(steps, s)
	}
	return steps
}

// The page is run as a person would: by kubectl, which finds the plugin by its name, with a kubeconfig of one's own.
func TestPluginSession(t *testing.T) {
	g, group := whole(t)
	if group.Status.ActiveSite != stage.Sites[0] {
		moveRole(t, g)
		if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
			t.Fatal(err)
		}
	}
	afterCooldown(t)
	raw, err := os.ReadFile(filepath.Join(lab.Repo, "docs", sessionPage))
	if err != nil {
		t.Fatal(err)
	}
	page, env, dir := string(raw), personOf(t), t.TempDir()
	steps := session(page)
	if n := strings.Count(page, "```console\n"); n == 0 || n != len(steps) {
		t.Fatalf("%d of %d commands can be read", len(steps), n)
	}
	t.Cleanup(func() {
		// What a step in the middle has set must not stay.
		_, _ = lab.Lab.Kubectl(context.Background(), "-n", namespace, "patch", "mysqlfailovergroup", name, "--type", "merge", "-p", `{"spec":{"failover":{"mode":"Auto"}}}`)
		_, _ = lab.Lab.Kubectl(context.Background(), "-n", namespace, "annotate", "mysqlfailovergroup", name, "mysql-mfg.io/pause-until-")
	})
	for i := range steps {
		if !t.Run(fmt.Sprintf("%02d %s", i+1, steps[i].command), func(t *testing.T) { steps[i].run(t, env, dir) }) {
			t.Fatal("what follows builds on it")
		}
	}
	// Where this machine keeps its temporary files is nobody's business.
	keep(t, sessionPage, []byte(tempHome.ReplaceAllString(recorded(page, steps), "/home/dba")))
}

// personOf is the environment of somebody whose kubeconfig names the group's namespace.
func personOf(t *testing.T) []string {
	t.Helper()
	program, err := lab.Program("kubectl-mfg")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	config := filepath.Join(home, "config")
	raw, err := lab.Lab.Kubectl(t.Context(), "config", "view", "--raw", "--flatten")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Lab.Kubectl(t.Context(), "--kubeconfig", config, "config", "set-context", "--current", "--namespace", namespace); err != nil {
		t.Fatal(err)
	}
	return append(lab.Lab.Environ(), "KUBECONFIG="+config, "HOME="+home, "LC_ALL=C.UTF-8", "NO_COLOR=1",
		"PATH="+strings.Join([]string{filepath.Dir(program), lab.Lab.Tools(), os.Getenv("PATH")}, ":"))
}

// roleMoves matches the commands that move the role.
var roleMoves = regexp.MustCompile(`^kubectl mfg (failover|switchover|drill) `)

// once runs the command once, and returns its exit code.
func (s *step) once(t *testing.T, env []string, dir string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", s.command)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, dir, &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	s.printed = out.String()
	t.Logf("$ %s\n%s", s.command, s.printed)
	return fmt.Sprint(cmd.ProcessState.ExitCode())
}

// run runs the command and checks what the page promises of it.
func (s *step) run(t *testing.T, env []string, dir string) {
	t.Helper()
	code := s.once(t, env, dir)
	for try := 1; !slices.Contains(s.codes, code) && try < ordersMost; try++ {
		// What moves the role may be taken back on a busy machine, and says so.
		if !roleMoves.MatchString(s.command) || !slices.ContainsFunc(passing, func(reason v1alpha1.Reason) bool { return strings.Contains(s.printed, string(reason)) }) {
			break
		}
		whole(t)
		code = s.once(t, env, dir)
	}
	if !slices.Contains(s.codes, code) {
		t.Errorf("exit code %s, the page says %s", code, strings.Join(s.codes, " or "))
	}
	for _, w := range s.says {
		if !strings.Contains(s.printed, w) {
			t.Errorf("does not say %q", w)
		}
	}
	s.codes = []string{code}
}

// mostLines is how much of an answer the page shows.
const mostLines = 45

// recorded is the page with what its commands printed.
func recorded(page string, steps []step) string {
	i := -1
	return sessionStep.ReplaceAllStringFunc(page, func(block string) string {
		i++
		head, _, _ := strings.Cut(block, "\n$ ")
		lines := strings.Split(strings.TrimRight(steps[i].printed, "\n"), "\n")
		if len(lines) > mostLines {
			lines = append(lines[:mostLines], fmt.Sprintf("... %d more lines", len(lines)-mostLines))
		}
		for j := range lines {
			lines[j] = strings.TrimRight(lines[j], " ")
		}
		text := strings.Join(lines, "\n")
		if text != "" {
			text += "\n"
		}
		if code := steps[i].codes[0]; code != "0" {
			text += "(exit code " + code + ")\n"
		}
		return head + "\n$ " + steps[i].command + "\n" + text + "```\n"
	})
}

// A planned failover is refused while nobody would carry it out, and while its target does not answer; both say what to
// look at, and the group stays as it is.
func TestPluginRefusesWhatCannotBe(t *testing.T) {
	g, before := whole(t)
	to := otherCandidate(t, before)
	t.Run("the target does not answer", func(t *testing.T) {
		if err := lab.Lab.PauseNode(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := lab.Lab.ResumeNode(context.Background(), to); err != nil {
				t.Error(err)
			}
		}()
		awaitChange(t, g, to+" to be missed", func(group *v1alpha1.MysqlFailoverGroup) bool {
			return slices.ContainsFunc(group.Status.Sites, func(s v1alpha1.SiteStatus) bool { return s.Name == to && s.State != v1alpha1.SiteReplica })
		})
		plugin(t, "failover", name, "--to", to, "--yes").want(t, 5, nil).says(t, "refused (", "kubectl ")
	})
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Fatal(err)
	}
	t.Run("no operator runs", func(t *testing.T) {
		withoutOperator(t)
		plugin(t, "failover", name, "--to", to, "--yes").want(t, 5, nil).says(t, "it would not be carried out now", "kubectl get pods -n "+stage.OperatorNamespace)
	})
	after, err := g.AwaitReady(t.Context(), comeBack)
	if err != nil {
		t.Fatal(err)
	}
	if after.Status.ActiveSite != before.Status.ActiveSite || after.Status.Epoch != before.Status.Epoch {
		t.Errorf("%s under epoch %d, before %s under %d", after.Status.ActiveSite, after.Status.Epoch, before.Status.ActiveSite, before.Status.Epoch)
	}
}
