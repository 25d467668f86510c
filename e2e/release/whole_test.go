// SPDX-License-Identifier: Apache-2.0

//go:build helm

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWholeReleaseOfSmallPrograms makes a release of this repository's charts, licence and manifests with programs of three lines,
// and does all that `make rehearse` does with it: in seconds, where the real programs take many minutes.
func TestWholeReleaseOfSmallPrograms(t *testing.T) {
	repo := t.TempDir()
	for _, path := range []string{"charts/mfg", "charts/mysql-failover-group", "hack/licences", "packaging", "docs/reference/kubectl-mfg.md", "LICENSE", ".goreleaser.yaml", ".krew.yaml"} {
		copyTree(t, filepath.Join("../..", path), filepath.Join(repo, path))
	}
	put(t, filepath.Join(repo, "go.mod"), "module "+module+"\n\ngo 1.26.0\n")
	for _, program := range append([]string{"kubectl-mfg"}, imagePrograms...) {
		put(t, filepath.Join(repo, program, "main.go"), "package main\n\nfunc main() { println(\""+program+"\") }\n")
	}
	for _, args := range []string{"init -q", "config user.name test", "config user.email test@example.org", "add -A", "commit -qm first"} {
		cmd := exec.CommandContext(t.Context(), "git", strings.Fields(args)...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	var log strings.Builder
	p := &plan{
		repo: repo, out: filepath.Join(repo, "out", "release"), version: "1.2.3-rc.1", registry: "registry.example.org/mysql-mfg",
		helm: "../../bin/helm", authorities: certificates(t), log: &log,
	}
	if err := rehearse(t.Context(), p); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	first, err := os.ReadFile(filepath.Join(p.out, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\n%s", log.String(), first)
	// A second time, with something in the checkout that is not committed.
	put(t, filepath.Join(repo, "operator", "main.go"), "package main\n\nfunc main() {}\n")
	if err := build(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(filepath.Join(p.out, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Errorf("the second time gave other files:\n%s\n%s", first, second)
	}
	left, err := filepath.Glob(filepath.Join(repo, "out", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// certificates is a file like that of the Debian package ca-certificates, which not every machine has.
func certificates(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	put(t, path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	return path
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		put(t, filepath.Join(to, inside), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
