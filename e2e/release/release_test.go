// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"
)

var when = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// small is a plan whose programs are texts: enough for what does not look into them.
func small(t *testing.T) *plan {
	t.Helper()
	dir := t.TempDir()
	p := &plan{
		out: filepath.Join(dir, "out"), work: filepath.Join(dir, "work"), source: filepath.Join(dir, "source"), authorities: filepath.Join(dir, "ca.crt"),
		version: "1.2.3", tag: "v1.2.3", commit: strings.Repeat("c", 40), created: when, registry: "registry.example.org/mysql-mfg", log: io.Discard,
	}
	put(t, p.authorities, "authorities")
	put(t, filepath.Join(p.source, "LICENSE"), "ours")
	put(t, filepath.Join(p.out, "install.yaml"), "kind: Namespace\n")
	for _, program := range imagePrograms {
		for _, on := range imagePlatforms {
			put(t, p.binary(program, on), program+on.String())
			put(t, filepath.Join(p.licenceFolder(program, on), "example.org/m@v1", "LICENSE"), "theirs")
		}
	}
	return p
}

// signed is a folder with images, provenance, sums and signatures, and who verifies it.
func signed(t *testing.T) *verifier {
	t.Helper()
	p := small(t)
	digests, err := p.images()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.provenance(digests); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(p.out); err != nil {
		t.Fatal(err)
	}
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := sign(p.out, key); err != nil {
		t.Fatal(err)
	}
	public, err := readPublicKey(filepath.Join(p.out, publicKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	return &verifier{dir: p.out, key: public, log: io.Discard, digests: map[string]string{}}
}

// papers are the steps that know nothing of what is in the files.
func (v *verifier) papers() error {
	for _, step := range []func() error{v.checkSums, v.checkSignatures, v.checkProvenance} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// TestForgeriesAreNoticed: whatever is changed, added, removed or signed by another key is an error.
func TestForgeriesAreNoticed(t *testing.T) {
	edit := func(name string, change func(string) string) func(*testing.T, *verifier) {
		return func(t *testing.T, v *verifier) {
			text, err := v.read(name)
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(v.dir, name), change(string(text)))
		}
	}
	// again signs and sums what is there with the key of somebody else, as one would who can replace files but has not the key.
	again := func(t *testing.T, v *verifier) {
		if err := writeSums(v.dir); err != nil {
			t.Fatal(err)
		}
		key, err := newKey()
		if err != nil {
			t.Fatal(err)
		}
		if err := sign(v.dir, key); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		forge func(*testing.T, *verifier)
		says  string
	}{
		"nothing":         {func(*testing.T, *verifier) {}, ""},
		"a changed file":  {edit("install.yaml", func(s string) string { return s + "#" }), "install.yaml has the sum"},
		"one file more":   {func(t *testing.T, v *verifier) { put(t, filepath.Join(v.dir, "more.tgz"), "") }, "listed are"},
		"one file fewer":  {func(_ *testing.T, v *verifier) { _ = os.Remove(filepath.Join(v.dir, "install.yaml")) }, "listed are"},
		"a path in sums":  {edit(sumsFile, func(s string) string { return "00  ../x\n" + s }), "has the line"},
		"changed sums":    {edit(sumsFile, func(s string) string { return strings.Replace(s, "\n", "\n\n", 1) }), "has the line"},
		"another's key":   {again, errSignature.Error()},
		"another payload": {edit(envelopeFile, func(s string) string { return strings.Replace(s, `"payload":"e`, `"payload":"f`, 1) }), errSignature.Error()},
		"another type":    {edit(envelopeFile, func(s string) string { return strings.Replace(s, inTotoType, "text/plain", 1) }), "has the type"},
	} {
		t.Run(name, func(t *testing.T) {
			v := signed(t)
			c.forge(t, v)
			err := v.papers()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, and it should say %q", err, c.says)
			}
		})
	}
}

// TestProvenanceSaysAllOfIt: with the right sums, but a file or a digest that the provenance does not vouch for.
func TestProvenanceSaysAllOfIt(t *testing.T) {
	for name, change := range map[string]func(*statement){
		"a file is missing": func(s *statement) { s.Subject = s.Subject[1:] },
		"another digest":    func(s *statement) { s.Subject[0].Digest["sha256"] = "00" },
		"no commit":         func(s *statement) { s.Predicate.BuildDefinition.ResolvedDependencies = nil },
		"no such file":      func(s *statement) { s.Subject = append(s.Subject, subject{"x", map[string]string{"sha256": "00"}}) },
	} {
		t.Run(name, func(t *testing.T) {
			v := signed(t)
			if err := v.papers(); err != nil {
				t.Fatal(err)
			}
			text, err := v.read(provenanceFile)
			if err != nil {
				t.Fatal(err)
			}
			var s statement
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			change(&s)
			if text, err = json.Marshal(s); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(v.dir, provenanceFile), string(text))
			if err := v.checkProvenance(); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

// TestImagesAreWholeAndTheSameTwice: an index of both architectures, in the same bytes from the same input.
func TestImagesAreWholeAndTheSameTwice(t *testing.T) {
	var archives [2][]byte
	for i := range archives {
		p := small(t)
		digests, err := p.images()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(p.out, imageArchive("sidecar", p.tag))
		if archives[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		index, entry, err := openLayout(file, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if entry.Digest.String() != digests["sidecar"] || entry.Annotations[refName] != p.version {
			t.Errorf("%+v, and the digest is %s", entry, digests["sidecar"])
		}
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		image, err := index.ImageIndex(entry.Digest)
		if err != nil {
			t.Fatal(err)
		}
		m, err := image.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for j, on := range imagePlatforms {
			one, err := image.Image(m.Manifests[j].Digest)
			if err != nil {
				t.Fatal(err)
			}
			files, err := filesIn(one)
			if err != nil {
				t.Fatal(err)
			}
			if m.Manifests[j].Platform.Architecture != on.arch || string(files["sidecar"]) != "sidecar"+on.String() || string(files["licenses/third-party/example.org/m@v1/LICENSE"]) != "theirs" {
				t.Errorf("%v: %v", m.Manifests[j].Platform, files)
			}
			info := &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.org/m", Version: "v1"}}}
			if err := checkLicences(files, licencePath, info); err == nil || !strings.Contains(err.Error(), "no licence of go") {
				t.Errorf("without the licence of Go: %v", err)
			}
			files["licenses/third-party/go/LICENSE"] = nil
			if err := checkLicences(files, licencePath, info); err != nil {
				t.Error(err)
			}
			info.Deps[0].Version = "v2"
			if err := checkLicences(files, licencePath, info); err == nil {
				t.Error("no licence of a module, and it was taken")
			}
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the same input gave other bytes")
	}
}

// TestArchivesHoldTheLicencesOfTheirProgram: an archive of the plugin without one of a module, of Go or of our own is not published.
func TestArchivesHoldTheLicencesOfTheirProgram(t *testing.T) {
	p := small(t)
	if err := yaml.Unmarshal([]byte(`
builds: [{goos: [linux, windows], goarch: [amd64]}]
archives: [{name_template: "{{.Tag}}_{{.Os}}_{{.Arch}}", files: [LICENSE, {src: complete/kubectl_complete-mfg, dst: .}]}]`), &p.goreleaser); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(p.source, "complete/kubectl_complete-mfg"), "complete")
	put(t, filepath.Join(p.source, ".krew.yaml"), "version: {{ .TagName }}\n")
	// This test is the program: Go says what it is made of, too.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil || len(info.Deps) == 0 {
		t.Fatalf("%v, %v", info, err)
	}
	dep := info.Deps[0].Path + "@" + info.Deps[0].Version
	for _, on := range p.pluginPlatforms() {
		put(t, p.binary(pluginProgram, on), "program")
		put(t, filepath.Join(p.licenceFolder(pluginProgram, on), "go", "LICENSE"), "theirs")
		for _, d := range info.Deps {
			put(t, filepath.Join(p.licenceFolder(pluginProgram, on), d.Path+"@"+d.Version, "LICENSE"), "theirs")
		}
	}
	if err := p.plugin(); err != nil {
		t.Fatal(err)
	}
	v := &verifier{dir: p.out}
	for archive, bin := range map[string]string{"v1.2.3_linux_amd64.tar.gz": "kubectl-mfg", "v1.2.3_windows_amd64.zip": "kubectl-mfg.exe"} {
		files, err := v.archive(archive)
		if err != nil {
			t.Fatal(err)
		}
		if string(files[bin]) != "program" {
			t.Fatalf("%s: the program is %q", archive, files[bin])
		}
		files[bin] = program
		if _, err := checkArchive(files, bin); err != nil {
			t.Errorf("%s: %v", archive, err)
		}
		for _, name := range []string{"LICENSE", "licenses/third-party/go/LICENSE", "licenses/third-party/" + dep + "/LICENSE"} {
			fewer := maps.Clone(files)
			delete(fewer, name)
			if _, err := checkArchive(fewer, bin); err == nil || !strings.Contains(err.Error(), "licence") {
				t.Errorf("%s without %s: %v", archive, name, err)
			}
		}
	}
}

// TestFilesOfImagesBelongToRoot: a program that its own user may change, or that runs as its owner, is not published.
func TestFilesOfImagesBelongToRoot(t *testing.T) {
	for name, h := range map[string]tar.Header{
		"another owner": {Name: "x", Mode: 0o755, Uid: 65532}, "writable": {Name: "x", Mode: 0o777}, "setuid": {Name: "x", Mode: 0o4755},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
		if err != nil {
			t.Fatal(err)
		}
		var image v1.Image
		if image, err = mutate.AppendLayers(empty.Image, layer); err != nil {
			t.Fatal(err)
		}
		if _, err := filesIn(image); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

// TestUnpackStaysInItsFolder: an archive may come from anybody.
func TestUnpackStaysInItsFolder(t *testing.T) {
	for name, h := range map[string]tar.Header{
		"above": {Name: "../x", Typeflag: tar.TypeReg}, "absolute": {Name: "/tmp/x", Typeflag: tar.TypeReg}, "link": {Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		archive := filepath.Join(t.TempDir(), "a.tar")
		put(t, archive, b.String())
		if err := unpack(archive, t.TempDir()); err == nil {
			t.Errorf("%s: it was unpacked", name)
		}
	}
}
