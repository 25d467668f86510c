// SPDX-License-Identifier: Apache-2.0

// Command licences copies the licences and notices of all modules that a program is made of, out of the module cache, for its
// image: most of them are to go along with every copy of the program. A module without one is an error, for a person to look at.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

func main() {
	out := flag.String("out", "", "folder to write, one folder for each module")
	goos := flag.String("os", "linux", "GOOS of the program")
	arch := flag.String("arch", runtime.GOARCH, "GOARCH of the program")
	flag.Parse()
	if *out == "" || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: licences -out FOLDER [-os OS] [-arch ARCH] PACKAGE")
		os.Exit(2)
	}
	packages, err := list(context.Background(), *goos, *arch, flag.Arg(0))
	var files map[string]string
	if err == nil {
		files, err = collect(packages)
	}
	if err == nil {
		err = write(*out, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// pkg is what is needed of `go list -json`.
type pkg struct {
	Dir      string
	Standard bool
	Root     string
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// list gives all packages of a program, its own too.
func list(ctx context.Context, goos, arch, program string) ([]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,Standard,Root,Module", program)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w", program, err)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the packages of %s: %w", program, err)
		}
		all = append(all, p)
	}
}

// legal are the names of files that licences ask to pass on.
var legal = regexp.MustCompile(`(?i)^(licen[sc]es?|copying|notice|patents|copyright|unlicense)([.-].*)?$`)

// code are the endings of programs: license.go is no licence.
var code = regexp.MustCompile(`\.(go|s|c|h|py|sh)$`)

// collect finds what is to be copied: where to, below the folder, and from where.
func collect(packages []pkg) (map[string]string, error) {
	files, licensed := map[string]string{}, map[string]bool{}
	for _, p := range packages {
		name, top := "go", p.Root
		if !p.Standard {
			if p.Module == nil || p.Module.Main {
				continue
			}
			name, top = p.Module.Path+"@"+p.Module.Version, p.Module.Dir
		}
		atTop, err := collectPackage(files, name, top, p.Dir)
		if err != nil {
			return nil, err
		}
		licensed[name] = licensed[name] || atTop
	}
	var without []string
	for _, name := range slices.Sorted(maps.Keys(licensed)) {
		if !licensed[name] {
			without = append(without, name)
		}
	}
	if len(without) > 0 {
		return nil, fmt.Errorf("no licence at the top of %s: look what may be passed on, and how", strings.Join(without, ", "))
	}
	return files, nil
}

// collectPackage adds the licences of one package: in its own folder and in those above it, up to that of its module, because copied code
// keeps its own. It tells whether the module has one at its top.
func collectPackage(files map[string]string, name, top, dir string) (atTop bool, err error) {
	for ; ; dir = filepath.Dir(dir) {
		found, err := legalFiles(dir)
		if err != nil {
			return false, err
		}
		for _, file := range found {
			inside, err := filepath.Rel(top, file)
			if err != nil {
				return false, fmt.Errorf("place %s: %w", file, err)
			}
			files[filepath.Join(name, inside)] = file
		}
		if dir == top || !strings.HasPrefix(dir, top) {
			return dir == top && len(found) > 0, nil
		}
	}
}

func legalFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for licences: %w", err)
	}
	var found []string
	for _, e := range entries {
		if e.Type().IsRegular() && legal.MatchString(e.Name()) && !code.MatchString(e.Name()) {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found, nil
}

func write(out string, files map[string]string) error {
	for to, from := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("read a licence: %w", err)
		}
		path := filepath.Join(out, to)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return fmt.Errorf("write a licence: %w", err)
		}
	}
	return nil
}
