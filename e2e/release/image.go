// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Where things are in an image; the Dockerfile puts them into the same places. Archives of the plugin have thirdPartyPath too, and our own
// licence at the top.
const (
	authoritiesPath = "etc/ssl/certs/ca-certificates.crt"
	licencePath     = "licenses/" + ownLicence
	thirdPartyPath  = "licenses/third-party"
	ownLicence      = "LICENSE"
	imageUser       = "65532:65532"
)

var (
	titles = map[string][2]string{
		"operator": {"mfg operator", "Operator of MySQL failover groups"},
		"sidecar":  {"mfg sidecar", "Sidecar of a MySQL site: it fences the site and answers for it"},
		"backup":   {"mfg backup", "Makes, verifies and loads backups of MySQL failover groups"},
	}
	ports = map[string][]string{"operator": {"8080/tcp", "8081/tcp", "8082/tcp"}, "sidecar": {"8090/tcp"}}
)

// refName is the annotation by which tools find an image in an OCI layout.
const refName = "org.opencontainers.image.ref.name"

// imageArchive is the file with an image for all its platforms: an OCI layout in a tar (oci-archive, as skopeo and podman say).
func imageArchive(program, tag string) string { return program + "_" + tag + ".oci.tar" }

// images makes an image of each program and gives their digests, those of the indexes of all platforms.
func (p *plan) images() (map[string]string, error) {
	digests := map[string]string{}
	for _, program := range imagePrograms {
		index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		for _, on := range imagePlatforms {
			image, err := p.image(program, on)
			if err != nil {
				return nil, fmt.Errorf("%s for %s: %w", program, on, err)
			}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add:        image,
				Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: on.os, Architecture: on.arch}},
			})
		}
		digest, err := index.Digest()
		if err != nil {
			return nil, fmt.Errorf("digest of %s: %w", program, err)
		}
		digests[program] = digest.String()
		err = writeLayout(filepath.Join(p.out, imageArchive(program, p.tag)), p.created, func(l layout.Path) error {
			return l.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: p.version}))
		})
		if err != nil {
			return nil, err
		}
	}
	return digests, nil
}

// image is a program for one platform: a layer with licences and authorities, which seldom change, and one with the program.
func (p *plan) image(program string, on platform) (v1.Image, error) {
	base := filepath.Join(p.work, program+"-"+on.String())
	common, err := p.thirdParty(program, on)
	if err != nil {
		return nil, err
	}
	common[authoritiesPath], common[licencePath] = p.authorities, filepath.Join(p.source, ownLicence)
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, l := range []struct {
		name  string
		files map[string]string
		mode  int64
	}{{"-common.tar", common, 0o644}, {"-program.tar", map[string]string{program: p.binary(program, on)}, 0o755}} {
		if err := writeTar(base+l.name, p.created, l.files, l.mode); err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromFile(base+l.name, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, fmt.Errorf("make a layer: %w", err)
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: p.created}, CreatedBy: "release build"}}); err != nil {
			return nil, fmt.Errorf("add a layer: %w", err)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = on.os, on.arch, v1.Time{Time: p.created}
	config.Config = v1.Config{
		User: imageUser, Entrypoint: []string{"/" + program}, ExposedPorts: map[string]struct{}{},
		Labels: map[string]string{
			"org.opencontainers.image.source":      "https://" + module,
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     p.version,
			"org.opencontainers.image.revision":    p.commit,
			"org.opencontainers.image.created":     p.created.Format(time.RFC3339),
			"org.opencontainers.image.title":       titles[program][0],
			"org.opencontainers.image.description": titles[program][1],
		},
	}
	for _, port := range ports[program] {
		config.Config.ExposedPorts[port] = struct{}{}
	}
	return mutate.ConfigFile(image, config)
}

// writeTar puts files into a tar, by their names in it. The order, the times and the owners are always the same.
func writeTar(path string, when time.Time, files map[string]string, mode int64) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("make %s: %w", filepath.Base(path), err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := tar.NewWriter(out)
	folders := map[string]bool{}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			if !folders[dir] {
				folders[dir] = true
				names = append(names, dir)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if folders[name] {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: when, Format: tar.FormatPAX})
		} else {
			err = addFile(w, name, files[name], tar.Header{Mode: mode, ModTime: when})
		}
		if err != nil {
			return fmt.Errorf("add %s: %w", name, err)
		}
	}
	return w.Close()
}

// addFile adds a file of this machine, with mode and time of a header.
func addFile(w *tar.Writer, name, source string, h tar.Header) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Name, h.Size, h.Format = tar.TypeReg, name, info.Size(), tar.FormatPAX
	if err := w.WriteHeader(&h); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}

// writeLayout writes an OCI layout, which fill adds to, as a tar.
func writeLayout(path string, when time.Time, fill func(layout.Path) error) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".layout-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("begin a layout: %w", err)
	}
	if err := fill(l); err != nil {
		return fmt.Errorf("write the layout %s: %w", filepath.Base(path), err)
	}
	files := map[string]string{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[strings.TrimPrefix(path, dir+"/")] = path
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list the layout: %w", err)
	}
	return writeTar(path, when, files, 0o644)
}
