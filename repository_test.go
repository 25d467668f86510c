// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what these tests read of a workflow of GitHub.
type workflow struct {
	Permissions any
	Jobs        map[string]struct {
		TimeoutMinutes int `json:"timeout-minutes"`
		Steps          []struct{ Uses, Run string }
	}
}

var (
	pinned     = regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9-]+@[0-9a-f]{40}$`)
	pinnedLine = regexp.MustCompile(`uses: \S+@[0-9a-f]{40} # v\d`)
	makeTarget = regexp.MustCompile(`(?m)\bmake ([a-z/-]+)`)
	// injected is text that strangers write, put into a shell.
	injected = regexp.MustCompile(`\$\{\{`)
)

// TestWorkflowsAreBoundToWhatWasRead: actions by commit, no right that is not named, no text of strangers in a shell, an end to every
// job, and targets that the Makefile has.
func TestWorkflowsAreBoundToWhatWasRead(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(raw, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if rights, is := w.Permissions.(map[string]any); !is || len(rights) != 1 || rights["contents"] != "read" {
			t.Errorf("%s: permissions of all jobs are %v: name what a job needs in the job", file, w.Permissions)
		}
		uses := 0
		for name, job := range w.Jobs {
			if job.TimeoutMinutes == 0 || len(job.Steps) == 0 {
				t.Errorf("%s: job %s has no end, or nothing to do", file, name)
			}
			for _, step := range job.Steps {
				if step.Uses != "" {
					uses++
				}
				if step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: %s is not pinned to a commit", file, step.Uses)
				}
				if injected.MatchString(step.Run) {
					t.Errorf("%s: an expression in a shell: pass it by env: %s", file, step.Run)
				}
				for _, m := range makeTarget.FindAllStringSubmatch(step.Run, -1) {
					if !regexp.MustCompile(`(?m)^[a-z/ -]*\b` + m[1] + `[a-z/ -]*:`).Match(makefile) {
						t.Errorf("%s: the Makefile has no %s", file, m[1])
					}
				}
			}
		}
		if got := len(pinnedLine.FindAll(raw, -1)); got != uses {
			t.Errorf("%s: %d of %d actions say beside the commit which version that is", file, got, uses)
		}
	}
}

// TestOwnersOwnWhatIsThere: a path that moved would have no second reviewer, and nobody would notice.
func TestOwnersOwnWhatIsThere(t *testing.T) {
	raw, err := os.ReadFile(".github/CODEOWNERS")
	if err != nil {
		t.Fatal(err)
	}
	paths := 0
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) < 2 {
			t.Errorf("%q has no owner", line)
		}
		if fields[0] == "*" {
			continue
		}
		paths++
		if _, err := os.Stat(strings.Trim(fields[0], "/")); err != nil {
			t.Errorf("%s has owners and is not there", fields[0])
		}
	}
	if paths < 5 {
		t.Errorf("only %d paths", paths)
	}
}

// TestTemplatesAreReadable: GitHub shows a form that it cannot read to nobody, without a word.
func TestTemplatesAreReadable(t *testing.T) {
	for file, keys := range map[string][]string{
		".github/ISSUE_TEMPLATE/bug.yml":     {"name", "description", "body"},
		".github/ISSUE_TEMPLATE/feature.yml": {"name", "description", "body"},
		".github/ISSUE_TEMPLATE/config.yml":  {"contact_links"},
		".github/dependabot.yml":             {"version", "updates"},
		"charts/artifacthub-repo.yml":        {"owners"},
	} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var form map[string]any
		if err := yaml.UnmarshalStrict(raw, &form); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, key := range keys {
			if form[key] == nil {
				t.Errorf("%s has no %s", file, key)
			}
		}
		body, _ := form["body"].([]any)
		for _, one := range body {
			field, _ := one.(map[string]any)
			if kind, _ := field["type"].(string); kind == "" || field["attributes"] == nil {
				t.Errorf("%s: %v", file, one)
			}
		}
	}
}

// On a fresh checkout there is no program yet: one that the demo starts and `make demo` does not compile was found missing after a quarter of an hour.
func TestTheDemoCompilesWhatItStarts(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`(?m)^demo:([^#\n]*)`).FindSubmatch(makefile)
	if rule == nil {
		t.Fatal("the Makefile has no target demo")
	}
	compiled, starts := strings.Fields(string(rule[1])), regexp.MustCompile(`\.Program\("([^"]+)"\)`)
	found := 0
	err = filepath.WalkDir("e2e/demo", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range starts.FindAllSubmatch(source, -1) {
			found++
			if program := "bin/" + string(m[1]); !slices.Contains(compiled, program) {
				t.Errorf("%s starts %s, which the Makefile's target demo does not need", path, program)
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("found %d programs that the demo starts: %v", found, err)
	}
}
