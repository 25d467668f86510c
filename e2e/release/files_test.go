// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

// TestImagesArePinnedInOurValues: in the chart as it is, so that a value that moves is noticed before a release.
func TestImagesArePinnedInOurValues(t *testing.T) {
	text, err := os.ReadFile("../../charts/mfg/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	values := string(text)
	for program, key := range chartValues {
		if values, err = pinImage(values, key, "registry.example.org/mysql-mfg/"+program, "sha256:"+program); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	before := strings.Split(string(text), "\n")
	for i, line := range strings.Split(values, "\n") {
		if line != before[i] {
			got = append(got, line)
		}
	}
	want := []string{
		"  repository: registry.example.org/mysql-mfg/operator", "  digest: sha256:operator",
		"  repository: registry.example.org/mysql-mfg/sidecar", "  digest: sha256:sidecar",
		"  repository: registry.example.org/mysql-mfg/backup", "  digest: sha256:backup",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changed lines (-want +got):\n%s", diff)
	}
	for name, bad := range map[string]string{
		"no such key": "\na:\n  repository: x\n  digest: \"\"\n", "no digest": "\nimage:\n  repository: x\nother:\n  digest: \"\"\n", "a digest already": "\nimage:\n  repository: x\n  digest: sha256:00\n",
	} {
		if _, err := pinImage(bad, "image", "r", "d"); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

// TestOnlyImagesByDigestArePublished: a tag, a foreign image or a missing one in a rendering is an error.
func TestOnlyImagesByDigestArePublished(t *testing.T) {
	v := &verifier{registry: "r.example.org/mfg", digests: map[string]string{"operator": "sha256:1", "sidecar": "sha256:2", "backup": "sha256:3"}}
	good := "          image: r.example.org/mfg/operator@sha256:1\n            - --sidecar-image=r.example.org/mfg/sidecar@sha256:2\n            - --backup-image=r.example.org/mfg/backup@sha256:3\n"
	if err := v.checkPinned(good); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]string{
		"a tag": strings.Replace(good, "@sha256:1", ":1.2.3", 1), "another registry": strings.Replace(good, "r.example.org/mfg/sidecar", "mfg/sidecar", 1),
		"another digest": strings.Replace(good, "sha256:3", "sha256:4", 1), "one more": good + "        - image: busybox\n", "one fewer": strings.Replace(good, "--backup-image", "--x", 1),
	} {
		if err := v.checkPinned(bad); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

// TestManifestsAreReadStrictly: what the API server would drop without a word is an error.
func TestManifestsAreReadStrictly(t *testing.T) {
	v := &verifier{dir: t.TempDir()}
	good := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: mfg-system\n"
	for _, doc := range []string{
		"apiextensions.k8s.io/v1\nkind: CustomResourceDefinition", "apps/v1\nkind: Deployment", "rbac.authorization.k8s.io/v1\nkind: ClusterRole", "v1\nkind: ServiceAccount", "v1\nkind: Service",
	} {
		good += "---\napiVersion: " + doc + "\nmetadata:\n  name: x\n"
	}
	for name, c := range map[string]struct{ text, says string }{
		"good":                 {good, ""},
		"a field of no type":   {strings.Replace(good, "kind: Service\nmetadata:", "kind: Service\nspek: {}\nmetadata:", 1), "spek"},
		"a field twice":        {strings.Replace(good, "  name: mfg-system", "  name: a\n  name: mfg-system", 1), "already set"},
		"an unknown kind":      {strings.Replace(good, "kind: Deployment", "kind: Deploiment", 1), "Deploiment"},
		"no definitions":       {strings.Replace(good, "apiextensions.k8s.io/v1\nkind: CustomResourceDefinition", "v1\nkind: ConfigMap", 1), "no CustomResourceDefinition"},
		"the namespace at end": {strings.TrimPrefix(good, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: mfg-system\n---\n") + "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: mfg-system\n", "first"},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, filepath.Join(v.dir, "install.yaml"), c.text)
			err := v.checkManifest()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, and it should say %q", err, c.says)
			}
		})
	}
}

// TestChartsGoThroughARepackUnchanged: but for the times, which are those of the release.
func TestChartsGoThroughARepackUnchanged(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "Chart.yaml"), "apiVersion: v2\nname: mfg\nversion: 1.2.3\ndescription: what it is\n")
	if err := packTar(filepath.Join(dir, "a.tgz"), when.AddDate(1, 0, 0), []packed{{"mfg/Chart.yaml", filepath.Join(dir, "Chart.yaml"), 0o600}}); err != nil {
		t.Fatal(err)
	}
	var files [2][]byte
	for i, from := range []string{"a.tgz", "b.tgz"} {
		if err := repack(filepath.Join(dir, from), filepath.Join(dir, "b.tgz"), when); err != nil {
			t.Fatal(err)
		}
		var err error
		if files[i], err = os.ReadFile(filepath.Join(dir, "b.tgz")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the same chart gave other bytes")
	}
	image, err := chartImage(filepath.Join(dir, "b.tgz"), when)
	if err != nil {
		t.Fatal(err)
	}
	m, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if m.Config.MediaType != chartConfigType || len(m.Layers) != 1 || m.Layers[0].MediaType != chartContentType || m.Annotations["org.opencontainers.image.version"] != "1.2.3" {
		t.Errorf("%+v", m)
	}
	config, err := image.RawConfigFile()
	if err != nil || !strings.Contains(string(config), `"description":"what it is"`) {
		t.Errorf("%s, %v", config, err)
	}
}

// TestBillsNameWhatIsInTheProgram: that of another program, or one that leaves a module out, is an error.
func TestBillsNameWhatIsInTheProgram(t *testing.T) {
	info := &buildinfo.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: module, Version: "v1.2.3"}, Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v1.0.0", Sum: "h1:x"}, {Path: "example.org/b", Version: "v2.0.0+incompatible"},
	}}
	name := billFile("operator", "v1.2.3", imagePlatforms[0])
	v := &verifier{dir: t.TempDir(), version: "1.2.3", sums: map[string]string{name: "x"}, programs: map[string]*buildinfo.BuildInfo{name: info}, log: io.Discard}
	bom := bill("operator", "1.2.3", info, when)
	if err := writeBill(filepath.Join(v.dir, name), bom); err != nil {
		t.Fatal(err)
	}
	if err := v.checkBills(); err != nil {
		t.Fatal(err)
	}
	all := *bom.Components
	fewer := all[1:]
	bom.Components = &fewer
	if err := writeBill(filepath.Join(v.dir, name), bom); err != nil {
		t.Fatal(err)
	}
	if err := v.checkBills(); err == nil {
		t.Error("a bill without a module was taken")
	}
	more := append([]cdx.Component{{BOMRef: "x", Type: cdx.ComponentTypeLibrary, PackageURL: "pkg:golang/x@v1"}}, all...)
	bom.Components = &more
	if err := writeBill(filepath.Join(v.dir, name), bom); err != nil {
		t.Fatal(err)
	}
	if err := v.checkBills(); err == nil {
		t.Error("a bill with a module that is not in the program was taken")
	}
	v.sums["backup_v1.2.3_linux_amd64.cdx.json"] = "x"
	if err := v.checkBills(); err == nil || !strings.Contains(err.Error(), "of no program") {
		t.Errorf("a bill of no program: %v", err)
	}
}

// TestStampsAreThoseOfTheCommit: what was built with changes, for another platform or with cgo is not published.
func TestStampsAreThoseOfTheCommit(t *testing.T) {
	v := &verifier{commit: strings.Repeat("c", 40)}
	on := platform{"linux", "arm64"}
	stamp := func(change, value string) *buildinfo.BuildInfo {
		info := &buildinfo.BuildInfo{Main: debug.Module{Path: module}}
		for key, is := range map[string]string{"vcs.revision": v.commit, "vcs.modified": "false", "GOOS": "linux", "GOARCH": "arm64", "CGO_ENABLED": "0", "-trimpath": "true"} {
			if key == change {
				is = value
			}
			info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: is})
		}
		return info
	}
	if err := v.checkStamp(stamp("", ""), on); err != nil {
		t.Error(err)
	}
	for key, value := range map[string]string{"vcs.revision": "d", "vcs.modified": "true", "GOOS": "darwin", "GOARCH": "amd64", "CGO_ENABLED": "1", "-trimpath": ""} {
		if err := v.checkStamp(stamp(key, value), on); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s=%s: %v", key, value, err)
		}
	}
}
