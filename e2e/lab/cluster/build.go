// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// build is a set of binaries made from one Go module outside the workspace.
type build struct {
	name   string
	module string // folder in the repository
	// packages are import paths; each binary is named after the last element, see outputs.
	packages []string
	// output names the one binary of a module whose import path does not.
	output string
	// versioned is the module whose version the binaries report themselves, if any.
	versioned string
}

func builds() []build {
	var kube []string
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet"} {
		kube = append(kube, "k8s.io/kubernetes/cmd/"+name)
	}
	return []build{
		{name: "Kubernetes", module: "e2e/kube", packages: kube, versioned: "k8s.io/kubernetes"},
		{name: "etcd", module: "e2e/etcd", packages: []string{"go.etcd.io/etcd/server/v3"}, output: "etcd"},
		{name: "CoreDNS", module: "e2e/coredns", packages: []string{"."}, output: "coredns"},
		{name: "helm", module: "tools", packages: []string{"helm.sh/helm/v4/cmd/helm"}, output: "helm"},
	}
}

func (b build) outputs() []string {
	if b.output != "" {
		return []string{b.output}
	}
	var names []string
	for _, p := range b.packages {
		names = append(names, filepath.Base(p))
	}
	return names
}

// key names the build's place in the cache: it changes with whatever could change the result.
func (b build) key(repo, goVersion string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, "recipe 1", goVersion, b.packages)
	files, err := filepath.Glob(filepath.Join(repo, b.module, "*.go"))
	if err != nil {
		return "", err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		files = append(files, filepath.Join(repo, b.module, name))
	}
	slices.Sort(files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read build input: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(file), len(raw), raw)
	}
	return filepath.Base(b.module) + "-" + hex.EncodeToString(sum.Sum(nil))[:16], nil
}

var semver = regexp.MustCompile(`^v(\d+)\.(\d+)\.\S+$`)

// versionFlags makes the binaries report the version of the module they come from.
func (b build) versionFlags(gomod string) (string, error) {
	if b.versioned == "" {
		return "", nil
	}
	for line := range strings.Lines(gomod) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(f) < 2 || f[0] != b.versioned {
			continue
		}
		v := semver.FindStringSubmatch(f[1])
		if v == nil {
			continue
		}
		const at = " -X k8s.io/component-base/version."
		return at + "gitVersion=" + v[0] + at + "gitMajor=" + v[1] + at + "gitMinor=" + v[2], nil
	}
	return "", fmt.Errorf("find version: %s is not in go.mod", b.versioned)
}

// ensureBuild returns the folder with the build's binaries, making them if need be.
func (c *Cluster) ensureBuild(ctx context.Context, repo, cache, goVersion string, b build) (string, error) {
	key, err := b.key(repo, goVersion)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, key)
	if used(dir) {
		return dir, nil
	}
	gomod, err := os.ReadFile(filepath.Join(repo, b.module, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("read go.mod: %w", err)
	}
	version, err := b.versionFlags(string(gomod))
	if err != nil {
		return "", err
	}
	part := dir + ".part"
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o755)); err != nil {
		return "", fmt.Errorf("make cache: %w", err)
	}
	c.say("compiling %s (once; later labs take it from %s)", b.name, cache)
	began := time.Now()
	target := part + "/"
	if b.output != "" {
		target = filepath.Join(part, b.output)
	}
	args := append([]string{"build", "-p", "2", "-trimpath", "-ldflags", "-s -w" + version, "-o", target}, b.packages...)
	if err := c.goRun(ctx, filepath.Join(repo, b.module), args, "GOWORK=off"); err != nil {
		return "", fmt.Errorf("compile %s: %w", b.name, err)
	}
	if err := os.Rename(part, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("publish build: %w", err)
	}
	c.say("compiled %s in %s", b.name, time.Since(began).Round(time.Second))
	return dir, nil
}

// goRun runs the Go command for a static build.
func (c *Cluster) goRun(ctx context.Context, dir string, args []string, env ...string) error {
	env = append([]string{"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"}, env...)
	err := c.work(ctx, dir, env, append([]string{"/bin/sh", "-c", hugePages, "huge-pages", "go"}, args...)...)
	if err != nil {
		// A build that was ended had no time to put the machine's setting back.
		err = errors.Join(err, restoreHugePages())
	}
	return err
}

// ensureBuilds puts all binaries into the lab's folders: bin for its own programs, tools for
// those of its user.
func (c *Cluster) ensureBuilds(ctx context.Context, repo, cache string) error {
	goVersion, err := output(ctx, "go", "env", "GOVERSION")
	if err != nil {
		return fmt.Errorf("find the Go toolchain (needed to compile Kubernetes): %w", err)
	}
	for _, b := range builds() {
		dir, err := c.ensureBuild(ctx, repo, cache, strings.TrimSpace(goVersion), b)
		if err != nil {
			return err
		}
		for _, name := range b.outputs() {
			to := []string{filepath.Join(c.dir, "bin", name)}
			if name == "kubectl" || name == "helm" {
				to = append(to, filepath.Join(c.Tools(), name))
			}
			for _, link := range to {
				if err := os.Symlink(filepath.Join(dir, name), link); err != nil && !errors.Is(err, fs.ErrExist) {
					return fmt.Errorf("link %s: %w", name, err)
				}
			}
		}
	}
	return nil
}

// FindRepo finds the checkout of this project that the lab builds from: above the working
// directory, else above the running binary.
func FindRepo() (string, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, dir := range starts {
		for ; dir != "/"; dir = filepath.Dir(dir) {
			raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err == nil && strings.HasPrefix(moduleLine(string(raw)), "module github.com/mysql-mfg/mfg ") {
				return dir, nil
			}
		}
	}
	return "", errors.New("find checkout: neither the working directory nor this binary is inside one; use --repo")
}

// moduleLine returns go.mod's module line with one space at its end.
func moduleLine(gomod string) string {
	for line := range strings.Lines(gomod) {
		if strings.HasPrefix(line, "module ") {
			return strings.TrimSpace(line) + " "
		}
	}
	return ""
}
