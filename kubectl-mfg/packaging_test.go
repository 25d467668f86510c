// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	module = "github.com/mysql-mfg/mfg"
	tag    = "v1.2.3"
)

// root is the folder of the repository.
var root = ".."

// goreleaser is what these tests read of .goreleaser.yaml.
type goreleaser struct {
	Version int      `json:"version"`
	Env     []string `json:"env"`
	Builds  []struct {
		Main, Binary string
		Goos, Goarch []string
		Ldflags      []string
		Flags        []string
	} `json:"builds"`
	Archives []struct {
		NameTemplate    string `json:"name_template"`
		Formats         []string
		FormatOverrides []struct {
			Goos    string
			Formats []string
		} `json:"format_overrides"`
		Files []any
	} `json:"archives"`
	Nfpms []struct {
		Contents []struct{ Src, Dst string }
	} `json:"nfpms"`
	Release struct {
		Github struct{ Owner, Name string }
	} `json:"release"`
}

func readRelease(t *testing.T) goreleaser {
	t.Helper()
	var r goreleaser
	raw, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Builds) != 1 || len(r.Archives) != 1 {
		t.Fatalf("%d builds, %d archives", len(r.Builds), len(r.Archives))
	}
	return r
}

// archives are the names of what a release holds, by platform.
func (r goreleaser) archives(t *testing.T) map[string]string {
	t.Helper()
	name, err := template.New("").Parse(r.Archives[0].NameTemplate)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, goos := range r.Builds[0].Goos {
		for _, arch := range r.Builds[0].Goarch {
			format := r.Archives[0].Formats[0]
			for _, o := range r.Archives[0].FormatOverrides {
				if o.Goos == goos {
					format = o.Formats[0]
				}
			}
			var b strings.Builder
			if err := name.Execute(&b, map[string]string{"Tag": tag, "Os": goos, "Arch": arch}); err != nil {
				t.Fatal(err)
			}
			out[goos+"/"+arch] = b.String() + "." + format
		}
	}
	return out
}

func goTool(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return string(out)
}

// TestReleaseFitsTheRepository: what goreleaser is told to build is there, for platforms that Go knows.
func TestReleaseFitsTheRepository(t *testing.T) {
	r := readRelease(t)
	build := r.Builds[0]
	if got := strings.TrimSpace(goTool(t, r.Env, "list", "-f", "{{.Name}} {{.ImportPath}}", build.Main)); got != "main "+module+"/kubectl-mfg" {
		t.Errorf("%s is %q", build.Main, got)
	}
	if len(build.Ldflags) > 0 || !slices.Contains(build.Flags, "-trimpath") || !slices.Contains(r.Env, "GOWORK=off") || r.Version != 2 {
		t.Errorf("%+v: versions come from Go's build information, and the build is that of the root module", build)
	}
	if home := "https://github.com/" + r.Release.Github.Owner + "/" + r.Release.Github.Name; home != "https://"+module {
		t.Errorf("released to %s, and the module is %s", home, module)
	}
	known := strings.Fields(goTool(t, nil, "tool", "dist", "list"))
	for platform := range r.archives(t) {
		if !slices.Contains(known, platform) {
			t.Errorf("Go knows no platform %s", platform)
		}
		goos, arch, _ := strings.Cut(platform, "/")
		// Fails where a package has no file for the platform.
		goTool(t, append(r.Env, "GOOS="+goos, "GOARCH="+arch), "list", "-deps", "-f", "{{.ImportPath}}", build.Main)
	}
	var files []string
	for _, f := range r.Archives[0].Files {
		switch f := f.(type) {
		case string:
			files = append(files, f)
		case map[string]any:
			files = append(files, fmt.Sprint(f["src"]))
		}
	}
	for _, c := range r.Nfpms[0].Contents {
		files = append(files, c.Src)
	}
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(root, f)); err != nil {
			t.Errorf("an archive or package is to hold it: %v", err)
		}
	}
}

// krewManifest is a manifest as Krew takes it.
type krewManifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct{ Name string }
	Spec       struct {
		Version, Homepage, ShortDescription, Description, Caveats string
		Platforms                                                 []struct {
			Selector struct {
				MatchLabels struct{ OS, Arch string }
			}
			URI, Sha256, Bin string
			Files            []struct{ From, To string }
		}
	}
}

// TestKrewManifest: each archive that a release makes, and no other, is offered for its platform.
func TestKrewManifest(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, ".krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// As krew-release-bot has it: the address is a template itself, and the indent of the second line is always four.
	filled := func(uri, tagName string) (string, error) {
		u, err := template.New("").Parse(uri)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		err = u.Execute(&b, map[string]string{"TagName": tagName})
		return fmt.Sprintf("uri: %s\n    sha256: %s", b.String(), strings.Repeat("a", 64)), err
	}
	var text bytes.Buffer
	whole, err := template.New("").Funcs(template.FuncMap{"addURIAndSha": filled}).Parse(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.Execute(&text, map[string]string{"TagName": tag}); err != nil {
		t.Fatal(err)
	}
	var m krewManifest
	if err := yaml.UnmarshalStrict(text.Bytes(), &m); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	if m.Kind != "Plugin" || m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Metadata.Name != "mfg" || m.Spec.Version != tag || len(m.Spec.ShortDescription) > 50 {
		t.Errorf("%+v", m)
	}
	r := readRelease(t)
	got, want := map[string]string{}, map[string]string{}
	for platform, name := range r.archives(t) {
		want[platform] = "https://" + module + "/releases/download/" + tag + "/" + name
	}
	for _, p := range m.Spec.Platforms {
		goos := p.Selector.MatchLabels.OS
		got[goos+"/"+p.Selector.MatchLabels.Arch] = p.URI
		bin := r.Builds[0].Binary
		if goos == "windows" {
			bin += ".exe"
		}
		if p.Bin != bin || len(p.Files) != 2 || p.Files[0].From != bin || p.Files[1].From != "LICENSE" || len(p.Sha256) != 64 {
			t.Errorf("%s: %+v", goos, p)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(m.Spec.Platforms) != len(got) {
		t.Errorf("archives of %v (-want +got):\n%s", slices.Sorted(maps.Keys(got)), diff)
	}
}

// TestGoInstallTakesTheModule: go install refuses a module whose go.mod says how to build others, and so does our lint; and
// without the workspace all that the plugin needs is required by the root module alone.
func TestGoInstallTakesTheModule(t *testing.T) {
	var mod struct {
		Module           struct{ Path string }
		Replace, Exclude []any
		Toolchain        any
	}
	if err := json.Unmarshal([]byte(goTool(t, nil, "mod", "edit", "-json", "go.mod")), &mod); err != nil {
		t.Fatal(err)
	}
	if mod.Module.Path != module || len(mod.Replace) > 0 || len(mod.Exclude) > 0 {
		t.Errorf("%+v", mod)
	}
	for _, path := range strings.Fields(goTool(t, []string{"GOWORK=off", "GOFLAGS=-mod=readonly"}, "list", "-deps", "-f", "{{if .Module}}{{.Module.Path}}{{end}}", "./kubectl-mfg")) {
		if path == module+"/e2e" {
			t.Error("the plugin needs the module of the tests")
		}
	}
}
