// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// leastPlatforms is for how many platforms the plugin is there at least: two architectures of three systems.
const leastPlatforms = 6

// checkPlugin: Krew's manifest names archives that are there, by their sums, and each holds the program for its platform.
func (v *verifier) checkPlugin() error {
	text, err := v.read(krewFile)
	if err != nil {
		return err
	}
	var m struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, Sha256, Bin string
				Selector         struct{ MatchLabels struct{ OS, Arch string } }
			}
		}
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("read %s: %w", krewFile, err)
	}
	if m.Spec.Version != "v"+v.version || len(m.Spec.Platforms) < leastPlatforms {
		return fmt.Errorf("%s is of version %q for %d platforms", krewFile, m.Spec.Version, len(m.Spec.Platforms))
	}
	for _, p := range m.Spec.Platforms {
		on, archive := platform{p.Selector.MatchLabels.OS, p.Selector.MatchLabels.Arch}, filepath.Base(p.URI)
		if v.sums[archive] == "" || v.sums[archive] != p.Sha256 {
			return fmt.Errorf("%s says %s of %s, whose sum is %q", krewFile, p.Sha256, archive, v.sums[archive])
		}
		files, err := v.archive(archive)
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		info, err := checkArchive(files, p.Bin)
		if err == nil {
			err = v.checkStamp(info, on)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		v.programs[billFile(pluginProgram, "v"+v.version, on)] = info
	}
	return nil
}

// checkArchive: beside the program are its completion and the licences of what is in it. It gives what the program is made of.
func checkArchive(files map[string][]byte, program string) (*buildinfo.BuildInfo, error) {
	if len(files["kubectl_complete-mfg"]) == 0 {
		return nil, fmt.Errorf("it has only %v", slices.Sorted(maps.Keys(files)))
	}
	info, err := buildinfo.Read(bytes.NewReader(files[program]))
	if err != nil {
		return nil, fmt.Errorf("read what %s is made of: %w", program, err)
	}
	return info, checkLicences(files, ownLicence, info)
}

// archive reads a .tar.gz or a .zip.
func (v *verifier) archive(name string) (map[string][]byte, error) {
	text, err := v.read(name)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return nil, err
		}
		for _, f := range z.File {
			in, err := f.Open()
			if err != nil {
				return nil, err
			}
			files[f.Name], err = io.ReadAll(io.LimitReader(in, mostEntry))
			if err = errors.Join(err, in.Close()); err != nil {
				return nil, err
			}
		}
		return files, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(io.LimitReader(r, mostEntry)); err != nil {
			return nil, err
		}
	}
}

// checkBills: one for each program, with exactly the modules that Go stamped the published program with.
func (v *verifier) checkBills() error {
	for name := range v.sums {
		if strings.HasSuffix(name, ".cdx.json") && v.programs[name] == nil {
			return fmt.Errorf("%s is of no program", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.programs)) {
		if err := v.checkBill(name, v.programs[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (v *verifier) checkBill(name string, info *buildinfo.BuildInfo) error {
	text, err := v.read(name)
	if err != nil {
		return err
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	if bom.Components == nil || bom.Metadata == nil || bom.Metadata.Component == nil || bom.Metadata.Component.Version != v.version {
		return errors.New("it is empty, or of another version")
	}
	want := []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, d := range info.Deps {
		want = append(want, purl(d.Path, d.Version))
	}
	var got []string
	for _, c := range *bom.Components {
		if c.Type == cdx.ComponentTypeLibrary {
			got = append(got, c.PackageURL)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("it lists %v, and the program is made of %v", got, want)
	}
	return nil
}

// imageInManifest finds what is run, and what the operator is told to run.
var imageInManifest = regexp.MustCompile(`(?m)^\s*(?:- )?(?:image: |- --(?:sidecar|backup)-image=)"?(\S+?)"?$`)

// checkPinned: a rendering names our three images in full and by their digests, and no others.
func (v *verifier) checkPinned(rendered string) error {
	var got, want []string
	for _, m := range imageInManifest.FindAllStringSubmatch(rendered, -1) {
		got = append(got, m[1])
	}
	for program, digest := range v.digests {
		want = append(want, v.registry+"/"+program+"@"+digest)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("its images are %v, and %v were built", got, want)
	}
	return nil
}

func (v *verifier) checkCharts(ctx context.Context) error {
	home, err := os.MkdirTemp("", "mfg-helm-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(home) }()
	for _, chart := range charts {
		file := filepath.Join(v.dir, chartFile(chart, v.version))
		if _, err := runHelm(ctx, v.helm, home, "lint", "--strict", file); err != nil {
			return err
		}
		text, err := runHelm(ctx, v.helm, home, "template", "mfg", file, "--namespace", namespace)
		if err != nil {
			return err
		}
		if chart == "mfg" {
			err = v.checkPinned(text)
		}
		if err == nil {
			err = v.checkArtifact(chart, filepath.Join(home, "layout-"+chart))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", chart, err)
		}
	}
	return nil
}

// checkArtifact: what a registry gets of a chart is the file.
func (v *verifier) checkArtifact(chart, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	index, entry, err := openLayout(filepath.Join(v.dir, chartArchive(chart, v.version)), dir)
	if err != nil {
		return err
	}
	if err := validate.Index(index, validate.Fast); err != nil {
		return fmt.Errorf("its layout is not whole: %w", err)
	}
	image, err := index.Image(entry.Digest)
	if err != nil {
		return fmt.Errorf("open it: %w", err)
	}
	m, err := image.Manifest()
	if err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	if m.Config.MediaType != chartConfigType || len(m.Layers) != 1 || m.Layers[0].MediaType != chartContentType || m.Layers[0].Digest.Hex != v.sums[chartFile(chart, v.version)] {
		return fmt.Errorf("its artifact is of %s, and its content %v is not the chart", m.Config.MediaType, m.Layers)
	}
	return nil
}

// checkManifest decodes install.yaml into the types of Kubernetes, strictly: a field that does not exist, or is there twice, fails.
func (v *verifier) checkManifest() error {
	text, err := v.read("install.yaml")
	if err != nil {
		return err
	}
	if err := v.checkPinned(string(text)); err != nil {
		return err
	}
	types := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(types), apiextensionsv1.AddToScheme(types)); err != nil {
		return fmt.Errorf("know the types: %w", err)
	}
	decoder := serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
	kinds := map[string]int{}
	for i, document := range strings.Split("\n"+string(text), "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		object, kind, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			return fmt.Errorf("document %d: %w", i, err)
		}
		if ns, is := object.(*corev1.Namespace); is && (i > 0 || ns.Name != namespace) {
			return fmt.Errorf("the namespace %s is document %d: it has to be there first", ns.Name, i)
		}
		kinds[kind.Kind]++
	}
	for _, kind := range []string{"Namespace", "CustomResourceDefinition", "Deployment", "ClusterRole", "ServiceAccount", "Service"} {
		if kinds[kind] == 0 {
			return fmt.Errorf("it has no %s, only %v", kind, kinds)
		}
	}
	return nil
}
