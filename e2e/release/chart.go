// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// What helm calls a chart in a registry.
const (
	chartConfigType  = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	chartContentType = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

// chartPath is where charts lie below the registry's path: their names are not to meet those of images.
const chartPath = "charts"

const namespace = "mfg-system"

// chartValues are the values of the chart mfg that name an image, by program.
var chartValues = map[string]string{"operator": "image", "sidecar": "sidecarImage", "backup": "backupImage"}

func chartFile(chart, version string) string    { return chart + "-" + version + ".tgz" }
func chartArchive(chart, version string) string { return "chart-" + chart + "-" + version + ".oci.tar" }

// charts packages the charts, as files and as what a registry holds of them. That of the operator names its images in full, by digest.
func (p *plan) charts(ctx context.Context, digests map[string]string) error {
	for _, chart := range charts {
		dir := filepath.Join(p.source, "charts", chart)
		if chart == "mfg" {
			if err := p.pin(dir, digests); err != nil {
				return err
			}
		}
		packed := filepath.Join(p.work, "packed")
		if _, err := p.runHelm(ctx, "package", dir, "--version", p.version, "--app-version", p.version, "--destination", packed); err != nil {
			return err
		}
		file := filepath.Join(p.out, chartFile(chart, p.version))
		if err := repack(filepath.Join(packed, chartFile(chart, p.version)), file, p.created); err != nil {
			return fmt.Errorf("repack %s: %w", chart, err)
		}
		artifact, err := chartImage(file, p.created)
		if err != nil {
			return fmt.Errorf("make an artifact of %s: %w", chart, err)
		}
		err = writeLayout(filepath.Join(p.out, chartArchive(chart, p.version)), p.created, func(l layout.Path) error {
			return l.AppendImage(artifact, layout.WithAnnotations(map[string]string{refName: p.version}))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pin writes into the checkout's chart where its images are, and lists them for Artifact Hub.
func (p *plan) pin(dir string, digests map[string]string) error {
	file := filepath.Join(dir, "values.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the values: %w", err)
	}
	values := string(text)
	var images strings.Builder
	images.WriteString("  artifacthub.io/images: |\n")
	for _, program := range imagePrograms {
		if values, err = pinImage(values, chartValues[program], p.registry+"/"+program, digests[program]); err != nil {
			return err
		}
		fmt.Fprintf(&images, "    - name: %s\n      image: %s/%s@%s\n      platforms: [linux/amd64, linux/arm64]\n", program, p.registry, program, digests[program])
	}
	if strings.Contains(p.version, "-") {
		images.WriteString("  artifacthub.io/prerelease: \"true\"\n")
	}
	about := filepath.Join(dir, "Chart.yaml")
	chart, err := os.ReadFile(about)
	if err != nil {
		return fmt.Errorf("read the chart: %w", err)
	}
	before, after, found := strings.Cut(string(chart), "\nannotations:\n")
	if !found {
		return errors.New("no annotations in Chart.yaml to add the images to")
	}
	return errors.Join(
		os.WriteFile(file, []byte(values), 0o600),
		os.WriteFile(about, []byte(before+"\nannotations:\n"+images.String()+after), 0o600))
}

// pinImage sets repository and digest of one image in the text of values: comments are the chart's documentation, and stay.
func pinImage(values, key, repository, digest string) (string, error) {
	before, block, found := strings.Cut(values, "\n"+key+":\n")
	if !found {
		return "", fmt.Errorf("the values have no %s", key)
	}
	// The block ends where the next line does not begin with a blank.
	end := len(block)
	for at := 0; at < len(block); {
		line, _, _ := strings.Cut(block[at:], "\n")
		if !strings.HasPrefix(line, " ") {
			end = at
			break
		}
		at += len(line) + 1
	}
	lines, changed := strings.Split(block[:end], "\n"), 0
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "  repository: "):
			lines[i] = "  repository: " + repository
			changed++
		case line == `  digest: ""`:
			lines[i] = "  digest: " + digest
			changed++
		}
	}
	if changed != 2 {
		return "", fmt.Errorf("%s has no repository and no empty digest to set", key)
	}
	return before + "\n" + key + ":\n" + strings.Join(lines, "\n") + block[end:], nil
}

// repack writes a .tgz again with the time of the release in place of today's.
func repack(from, to string, when time.Time) (err error) {
	in, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(in))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	// By this extra field helm's own packages are known.
	zipped.Extra, zipped.Comment = unzipped.Extra, unzipped.Comment
	w := tar.NewWriter(zipped)
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: h.Typeflag, Name: h.Name, Mode: 0o644, Size: h.Size, ModTime: when, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}

// chartImage is a packaged chart as registries hold it.
func chartImage(file string, when time.Time) (v1.Image, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text, err := fileOf(content, "/Chart.yaml")
	if err != nil {
		return nil, err
	}
	config, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("read Chart.yaml: %w", err)
	}
	var about struct{ Name, Version, Description string }
	if err := json.Unmarshal(config, &about); err != nil {
		return nil, fmt.Errorf("read Chart.yaml: %w", err)
	}
	return &artifact{config: config, layers: []v1.Layer{static.NewLayer(content, chartContentType)}, annotations: map[string]string{
		"org.opencontainers.image.title":       about.Name,
		"org.opencontainers.image.version":     about.Version,
		"org.opencontainers.image.description": about.Description,
		"org.opencontainers.image.source":      "https://" + module,
		"org.opencontainers.image.created":     when.Format(time.RFC3339),
	}}, nil
}

// fileOf gives a file of a chart's .tgz, named by how its path ends below the folder of the chart.
func fileOf(tgz []byte, suffix string) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(tgz))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", suffix, err)
		}
		if strings.HasSuffix(h.Name, suffix) && strings.Count(h.Name, "/") == strings.Count(suffix, "/") {
			return io.ReadAll(io.LimitReader(r, 10<<20))
		}
	}
}

// manifest renders install.yaml: the chart with its defaults and the namespace, for kubectl apply --server-side.
func (p *plan) manifest(ctx context.Context) error {
	text, err := p.runHelm(ctx, "template", "mfg", filepath.Join(p.out, chartFile("mfg", p.version)), "--namespace", namespace)
	if err != nil {
		return err
	}
	head := "# SPDX-License-Identifier: Apache-2.0\n# mfg " + p.version + ": kubectl apply --server-side -f install.yaml\n" +
		"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + namespace + "\n  labels:\n    pod-security.kubernetes.io/enforce: restricted\n"
	return os.WriteFile(filepath.Join(p.out, "install.yaml"), []byte(head+text), 0o644)
}

func (p *plan) runHelm(ctx context.Context, args ...string) (string, error) {
	return runHelm(ctx, p.helm, p.work, args...)
}

// runHelm runs helm with a home of its own, and without a cluster.
func runHelm(ctx context.Context, helm, home string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, helm, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG=/dev/null")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return string(out), nil
}
