// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// Bounds of what is read from files that others may have made: of one entry, and of all of an archive.
const (
	mostEntry   = 1 << 30
	mostArchive = 2 << 30
)

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// unpack writes the files of an OCI layout's tar into a folder. os.Root keeps names from leading out of it.
func unpack(archive, dir string) error {
	in, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("open the archive: %w", err)
	}
	defer func() { _ = in.Close() }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	for r := tar.NewReader(io.LimitReader(in, mostArchive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(h.Name), 0o755)
		case tar.TypeReg:
			err = unpackFile(root, h.Name, r)
		default:
			err = fmt.Errorf("%s is neither file nor folder", h.Name)
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
}

func unpackFile(root *os.Root, name string, from io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}

func (v *verifier) checkImages() error {
	if len(v.digests) != len(imagePrograms) {
		return fmt.Errorf("the provenance has %d images, and there are %d programs with one", len(v.digests), len(imagePrograms))
	}
	for _, program := range imagePrograms {
		if err := v.checkImage(program); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
	}
	return nil
}

// checkImage: the index is the one of the provenance, whole, and has exactly our platforms.
func (v *verifier) checkImage(program string) error {
	dir, err := os.MkdirTemp("", "mfg-verify-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	index, entry, err := openLayout(filepath.Join(v.dir, imageArchive(program, "v"+v.version)), dir)
	if err != nil {
		return err
	}
	if entry.Digest.String() != v.digests[program] {
		return fmt.Errorf("its digest is %s, and the provenance says %s", entry.Digest, v.digests[program])
	}
	if err := validate.Index(index); err != nil {
		return fmt.Errorf("it is not whole: %w", err)
	}
	image, err := index.ImageIndex(entry.Digest)
	if err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	m, err := image.IndexManifest()
	if err != nil {
		return fmt.Errorf("read the index: %w", err)
	}
	var found []platform
	for _, d := range m.Manifests {
		if d.Platform == nil {
			return errors.New("an image of it has no platform")
		}
		on := platform{d.Platform.OS, d.Platform.Architecture}
		found = append(found, on)
		one, err := image.Image(d.Digest)
		if err != nil {
			return fmt.Errorf("open the image for %s: %w", on, err)
		}
		if err := v.checkPlatform(program, on, one); err != nil {
			return fmt.Errorf("for %s: %w", on, err)
		}
	}
	if !slices.Equal(found, imagePlatforms) {
		return fmt.Errorf("it is for %v, and %v is right", found, imagePlatforms)
	}
	return nil
}

func (v *verifier) checkPlatform(program string, on platform, image v1.Image) error {
	config, err := image.ConfigFile()
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	c := config.Config
	if config.OS != on.os || config.Architecture != on.arch || c.User != imageUser || !slices.Equal(c.Entrypoint, []string{"/" + program}) ||
		c.Labels["org.opencontainers.image.revision"] != v.commit || c.Labels["org.opencontainers.image.version"] != v.version {
		return fmt.Errorf("its configuration is %s/%s, user %q, %v, %v", config.OS, config.Architecture, c.User, c.Entrypoint, c.Labels)
	}
	files, err := filesIn(image)
	if err != nil {
		return err
	}
	binary := files[program]
	parsed, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	if parsed.Machine != machines[on.arch] {
		return fmt.Errorf("the program is one for %s", parsed.Machine)
	}
	if libraries, err := parsed.ImportedLibraries(); err != nil || len(libraries) > 0 {
		return fmt.Errorf("the program needs %v, and its image has nothing: %w", libraries, err)
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("read what the program is made of: %w", err)
	}
	if err := v.checkStamp(info, on); err != nil {
		return err
	}
	v.programs[billFile(program, "v"+v.version, on)] = info
	if block, _ := pem.Decode(files[authoritiesPath]); block == nil {
		return errors.New("it has no certificates of authorities")
	}
	return checkLicences(files, licencePath, info)
}

// checkLicences: of our own, at the path own, of Go, and of each module in the program there is one.
func checkLicences(files map[string][]byte, own string, info *buildinfo.BuildInfo) error {
	if len(files[own]) == 0 {
		return errors.New("our own licence is missing")
	}
	folders := []string{"go"}
	for _, d := range info.Deps {
		folders = append(folders, d.Path+"@"+d.Version)
	}
	names := slices.Collect(maps.Keys(files))
	for _, folder := range folders {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, thirdPartyPath+"/"+folder+"/") }) {
			return fmt.Errorf("no licence of %s", folder)
		}
	}
	return nil
}

// filesIn reads all files of an image. Nothing but root may own them, and nothing but the program may be run.
func filesIn(image v1.Image) (map[string][]byte, error) {
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	files := map[string][]byte{}
	for r := tar.NewReader(io.LimitReader(content, mostArchive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the layers: %w", err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Mode&0o022 != 0 || h.Mode&0o7000 != 0 {
			return nil, fmt.Errorf("%s belongs to %d:%d with mode %o", h.Name, h.Uid, h.Gid, h.Mode)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[h.Name], err = io.ReadAll(io.LimitReader(r, mostEntry)); err != nil {
			return nil, fmt.Errorf("read %s: %w", h.Name, err)
		}
	}
}
