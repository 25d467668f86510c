// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const module = "github.com/mysql-mfg/mfg"

// imagePrograms are the programs with an image of their own; the platforms of images are those below.
var imagePrograms = []string{"operator", "sidecar", "backup"}

// pluginProgram is the one without an image: users get it in archives.
const pluginProgram = "kubectl-mfg"

// imagePlatforms are what images are built for.
var imagePlatforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}}

// charts are the folders below charts/ that are published.
var charts = []string{"mfg", "mysql-failover-group"}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// plan says what is built, from what, and where to.
type plan struct {
	repo, out, registry, helm, authorities string

	// version is without v; tag is with it.
	version, tag string
	// commit has 40 hexadecimal digits. created is its time: that of everything in a release.
	commit  string
	created time.Time
	// source is a clean checkout of the commit, and work a folder for what is no file of the release. Both are removed.
	source, work string
	goreleaser   goreleaser

	log io.Writer
}

// goreleaser is what .goreleaser.yaml says of the plugin: its platforms, and names and content of its archives.
type goreleaser struct {
	Builds []struct {
		Main, Binary string
		Goos, Goarch []string
	} `json:"builds"`
	Archives []struct {
		NameTemplate string `json:"name_template"`
		Files        []any
	} `json:"archives"`
}

// build makes all files, in an order in which each step needs only what former ones have made.
func build(ctx context.Context, p *plan) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(p.work) }()
	var digests map[string]string
	steps := []struct {
		what string
		do   func() error
	}{
		{"programs", func() error { return p.programs(ctx) }},
		{"licences", func() error { return p.licences(ctx) }},
		{"images", func() (err error) { digests, err = p.images(); return err }},
		{"charts", func() error { return p.charts(ctx, digests) }},
		{"install.yaml", func() error { return p.manifest(ctx) }},
		{"plugin", func() error { return p.plugin() }},
		{"bills of materials", func() error { return p.bills() }},
		{"provenance", func() error { return p.provenance(digests) }},
		{"checksums", func() error { return writeSums(p.out) }},
	}
	for _, s := range steps {
		begun := time.Now()
		if err := s.do(); err != nil {
			return fmt.Errorf("make %s: %w", s.what, err)
		}
		fmt.Fprintf(p.log, "made %s in %.1f s\n", s.what, time.Since(begun).Seconds())
	}
	return nil
}

var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// prepare finds out what is to be built, and checks that commit out into a folder of its own.
func (p *plan) prepare(ctx context.Context) error {
	var err error
	for _, path := range []*string{&p.repo, &p.out, &p.helm, &p.authorities} {
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("find a path: %w", err)
		}
	}
	if _, err := os.Stat(p.helm); err != nil {
		return fmt.Errorf("find helm (make bin/helm): %w", err)
	}
	if _, err := os.Stat(p.authorities); err != nil {
		return fmt.Errorf("find the certificates of public authorities (Debian package ca-certificates, or --ca): %w", err)
	}
	if p.commit, err = output(ctx, p.repo, "git", "rev-parse", "HEAD"); err != nil {
		return err
	}
	when, err := output(ctx, p.repo, "git", "show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	if p.created, err = time.Parse(time.RFC3339, when); err != nil {
		return fmt.Errorf("read the time of the commit: %w", err)
	}
	p.created = p.created.UTC()
	if p.version == "" {
		p.version = "0.0.0-g" + p.commit[:12]
		if tag, err := output(ctx, p.repo, "git", "describe", "--exact-match", "--match", "v*", "HEAD"); err == nil {
			p.version = strings.TrimPrefix(tag, "v")
		}
	}
	if !semver.MatchString(p.version) {
		return fmt.Errorf("version %q is not like 1.2.3 or 1.2.3-rc.1", p.version)
	}
	p.tag = "v" + p.version
	if err := errors.Join(os.RemoveAll(p.out), os.MkdirAll(p.out, 0o755)); err != nil {
		return fmt.Errorf("empty %s: %w", p.out, err)
	}
	return p.checkout(ctx)
}

// checkout clones the commit: what is not committed does not get in, and Go stamps it as clean.
func (p *plan) checkout(ctx context.Context) error {
	var err error
	if p.work, err = os.MkdirTemp(filepath.Dir(p.out), ".release-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	p.source = filepath.Join(p.work, "source")
	if _, err := output(ctx, p.repo, "git", "clone", "--quiet", "--shared", "--no-checkout", p.repo, p.source); err != nil {
		return err
	}
	if _, err := output(ctx, p.source, "git", "checkout", "--quiet", "--detach", p.commit); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(p.source, ".goreleaser.yaml"))
	if err != nil {
		return fmt.Errorf("read what the plugin is built for: %w", err)
	}
	if err := yaml.Unmarshal(text, &p.goreleaser); err != nil {
		return fmt.Errorf("read .goreleaser.yaml: %w", err)
	}
	if len(p.goreleaser.Builds) != 1 || len(p.goreleaser.Archives) != 1 {
		return errors.New(".goreleaser.yaml: one build and one archive are known of here")
	}
	return nil
}

// pluginPlatforms are those of .goreleaser.yaml, in its order.
func (p *plan) pluginPlatforms() []platform {
	var all []platform
	for _, goos := range p.goreleaser.Builds[0].Goos {
		for _, arch := range p.goreleaser.Builds[0].Goarch {
			all = append(all, platform{goos, arch})
		}
	}
	return all
}

// binary is where a program lies while the release is built.
func (p *plan) binary(program string, on platform) string {
	return filepath.Join(p.work, "bin", on.String(), program)
}

// each goes through all programs of a release, each for all its platforms.
func (p *plan) each(do func(program string, on platform) error) error {
	for _, program := range imagePrograms {
		for _, on := range imagePlatforms {
			if err := do(program, on); err != nil {
				return err
			}
		}
	}
	for _, on := range p.pluginPlatforms() {
		if err := do(pluginProgram, on); err != nil {
			return err
		}
	}
	return nil
}

// programs compiles all programs. No ldflags: what is in a program is what Go stamps it with, and equal source gives equal bytes.
func (p *plan) programs(ctx context.Context) error {
	return p.each(func(program string, on platform) error { return p.compile(ctx, program, on) })
}

func (p *plan) compile(ctx context.Context, program string, on platform) error {
	begun := time.Now()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-mod=readonly", "-o", p.binary(program, on), "./"+program)
	cmd.Dir = p.source
	// The root module alone, as it is released, and the oldest processors of each architecture, whatever this machine prefers.
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+on.os, "GOARCH="+on.arch, "GOAMD64=v1", "GOARM64=v8.0")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compile %s for %s: %w\n%s", program, on, err, complaint.String())
	}
	fmt.Fprintf(p.log, "  compiled %s for %s in %.1f s\n", program, on, time.Since(begun).Seconds())
	return nil
}

// licenceFolder is where the licences of a program lie while the release is built.
func (p *plan) licenceFolder(program string, on platform) string {
	return filepath.Join(p.work, "licences", on.String(), program)
}

func (p *plan) licences(ctx context.Context) error {
	tool := filepath.Join(p.work, "licences-tool")
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS=", "GOARCH=")
	run := func(args ...string) error {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.Env = p.source, env
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, text)
		}
		return nil
	}
	if err := run("go", "build", "-o", tool, "./hack/licences"); err != nil {
		return err
	}
	return p.each(func(program string, on platform) error {
		return run(tool, "-out", p.licenceFolder(program, on), "-os", on.os, "-arch", on.arch, "./"+program)
	})
}

// thirdParty are the licences of what is in a program: where they go in its image or its archive, and where they lie.
func (p *plan) thirdParty(program string, on platform) (map[string]string, error) {
	files, folder := map[string]string{}, p.licenceFolder(program, on)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(folder, path)
		files[filepath.Join(thirdPartyPath, inside)] = path
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list licences: %w", err)
	}
	return files, nil
}

// output runs a program and gives what it printed, without the last end of line.
func output(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSpace(string(text)), nil
}
