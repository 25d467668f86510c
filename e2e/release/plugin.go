// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"
)

const krewFile = "krew-mfg.yaml"

// pluginArchive is the name of the plugin's archive for a platform, as .goreleaser.yaml says it.
func (p *plan) pluginArchive(on platform) (string, error) {
	name, err := template.New("").Option("missingkey=error").Parse(p.goreleaser.Archives[0].NameTemplate)
	if err != nil {
		return "", fmt.Errorf("read the name of archives: %w", err)
	}
	var b strings.Builder
	if err := name.Execute(&b, map[string]string{"Tag": p.tag, "Os": on.os, "Arch": on.arch}); err != nil {
		return "", fmt.Errorf("name an archive: %w", err)
	}
	if on.os == "windows" {
		return b.String() + ".zip", nil
	}
	return b.String() + ".tar.gz", nil
}

// packed is a file of an archive.
type packed struct {
	name, source string
	mode         int64
}

// plugin packs the plugin for each platform, and fills in the manifest of Krew.
func (p *plan) plugin() error {
	for _, on := range p.pluginPlatforms() {
		name, err := p.pluginArchive(on)
		if err != nil {
			return err
		}
		files, err := p.inArchive(on)
		if err != nil {
			return err
		}
		pack := packTar
		if strings.HasSuffix(name, ".zip") {
			pack = packZip
		}
		if err := pack(filepath.Join(p.out, name), p.created, files); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return p.krew()
}

// inArchive is what the archive for a platform holds: the program, what .goreleaser.yaml says, and the licences of what is in the program.
func (p *plan) inArchive(on platform) ([]packed, error) {
	binary := pluginProgram
	if on.os == "windows" {
		binary += ".exe"
	}
	files := []packed{{binary, p.binary(pluginProgram, on), 0o755}}
	for _, f := range p.goreleaser.Archives[0].Files {
		file, err := p.packed(f)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	licences, err := p.thirdParty(pluginProgram, on)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(licences)) {
		files = append(files, packed{name, licences[name], 0o644})
	}
	return files, nil
}

// packed reads an entry of archives.files: a path, or a map with src, which goes to the top.
func (p *plan) packed(entry any) (packed, error) {
	switch e := entry.(type) {
	case string:
		return packed{e, filepath.Join(p.source, e), 0o644}, nil
	case map[string]any:
		if src, is := e["src"].(string); is && e["dst"] == "." {
			return packed{filepath.Base(src), filepath.Join(p.source, src), 0o755}, nil
		}
	}
	return packed{}, fmt.Errorf(".goreleaser.yaml: archives.files has %v, of which nothing is known here", entry)
}

func packTar(path string, when time.Time, files []packed) error {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range files {
		if err := addFile(w, f.name, f.source, tar.Header{Mode: f.mode, ModTime: when}); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

func packZip(path string, when time.Time, files []packed) error {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		text, err := os.ReadFile(f.source)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when}
		h.SetMode(os.FileMode(f.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// krew fills in .krew.yaml, as krew-release-bot does, with the sums of the archives that are there.
func (p *plan) krew() error {
	text, err := os.ReadFile(filepath.Join(p.source, ".krew.yaml"))
	if err != nil {
		return fmt.Errorf("read .krew.yaml: %w", err)
	}
	filled, err := template.New("").Funcs(template.FuncMap{"addURIAndSha": func(uri, tag string) (string, error) {
		u, err := template.New("").Parse(uri)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		if err := u.Execute(&b, map[string]string{"TagName": tag}); err != nil {
			return "", err
		}
		sum, err := sumOf(filepath.Join(p.out, filepath.Base(b.String())))
		return fmt.Sprintf("uri: %s\n    sha256: %s", b.String(), sum), err
	}}).Parse(string(text))
	if err != nil {
		return fmt.Errorf("read .krew.yaml: %w", err)
	}
	var out bytes.Buffer
	if err := filled.Execute(&out, map[string]string{"TagName": p.tag}); err != nil {
		return fmt.Errorf("fill in .krew.yaml: %w", err)
	}
	return os.WriteFile(filepath.Join(p.out, krewFile), out.Bytes(), 0o644)
}

// sumOf is the SHA-256 of a file in hexadecimal digits.
func sumOf(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, in); err != nil {
		return "", fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
