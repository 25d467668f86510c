// SPDX-License-Identifier: Apache-2.0

// Package image writes container images as docker-archive tars, without a registry and
// without a container engine. What goes in decides every byte, so equal input gives an
// equal digest.
package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Config is what a runtime has to know of an image.
type Config struct {
	// Name is the full reference, for example localhost/pause:1.
	Name       string
	Entrypoint []string
	Cmd        []string
	Env        []string
	// User is UID or UID:GID in numbers, so that runAsNonRoot can check it.
	User       string
	WorkingDir string
}

// File is one entry of the layer. With neither Data nor Source nor Link it is a directory.
type File struct {
	Path   string
	Mode   int64
	UID    int
	GID    int
	Data   []byte
	Source string // a file on this machine
	Link   string // the target of a symbolic link
}

// epoch is the time of every file that we make: a real one would change the digest.
var epoch = time.Unix(0, 0)

// Write makes the image dst out of files alone and returns the digest of its configuration.
func Write(dst string, cfg Config, files []File) (string, error) {
	return WriteRootfs(dst, cfg, nil, nil, files)
}

// WriteRootfs makes the image dst of the entries of the tar rootfs that keep lets through,
// followed by files. A nil rootfs is empty, a nil keep keeps all.
func WriteRootfs(dst string, cfg Config, rootfs io.Reader, keep func(name string) bool, files []File) (string, error) {
	layer, err := os.CreateTemp(filepath.Dir(dst), ".layer-*")
	if err != nil {
		return "", fmt.Errorf("create layer: %w", err)
	}
	defer func() {
		_ = layer.Close()
		_ = os.Remove(layer.Name())
	}()
	sum := sha256.New()
	w := tar.NewWriter(io.MultiWriter(layer, sum))
	if rootfs != nil {
		if err := copyEntries(w, tar.NewReader(rootfs), keep); err != nil {
			return "", fmt.Errorf("copy rootfs: %w", err)
		}
	}
	for _, f := range files {
		if err := writeFile(w, f); err != nil {
			return "", fmt.Errorf("add %s: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("close layer: %w", err)
	}
	return writeArchive(dst, cfg, layer, hex.EncodeToString(sum.Sum(nil)))
}

// copyEntries copies what keep lets through. Entry names are normalised before it sees them:
// no leading ./ and no trailing slash.
func copyEntries(w *tar.Writer, r *tar.Reader, keep func(string) bool) error {
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := Clean(h.Name)
		if name == "" || keep != nil && !keep(name) {
			continue
		}
		h.Name = strings.TrimPrefix(h.Name, "./")
		// Times differ with every build of the same packages; PAX forces a format that can
		// hold long names.
		h.ModTime, h.AccessTime, h.ChangeTime = epoch, time.Time{}, time.Time{}
		h.Format = tar.FormatPAX
		if h.Typeflag == tar.TypeLink {
			h.Linkname = strings.TrimPrefix(h.Linkname, "./")
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
	}
}

// Clean returns an entry's path below the root, "" for the root itself.
func Clean(name string) string {
	name = strings.Trim(strings.TrimPrefix(name, "./"), "/")
	if name == "." {
		return ""
	}
	return name
}

func writeFile(w *tar.Writer, f File) error {
	h := &tar.Header{
		Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, Uid: f.UID, Gid: f.GID,
		ModTime: epoch, Format: tar.FormatPAX,
	}
	var body io.Reader
	switch {
	case f.Link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
	case f.Source != "":
		src, err := os.Open(f.Source)
		if err != nil {
			return err
		}
		defer func() { _ = src.Close() }()
		info, err := src.Stat()
		if err != nil {
			return err
		}
		h.Typeflag, h.Size, body = tar.TypeReg, info.Size(), src
	case f.Data != nil:
		h.Typeflag, h.Size, body = tar.TypeReg, int64(len(f.Data)), strings.NewReader(string(f.Data))
	default:
		h.Typeflag = tar.TypeDir
		h.Name = strings.TrimSuffix(h.Name, "/") + "/"
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if body == nil {
		return nil
	}
	_, err := io.Copy(w, body)
	return err
}

// document is the image configuration that the digest is taken of.
type document struct {
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Created      time.Time `json:"created"`
	Config       runConfig `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
}

type runConfig struct {
	Entrypoint []string `json:"Entrypoint,omitempty"`
	Cmd        []string `json:"Cmd,omitempty"`
	Env        []string `json:"Env,omitempty"`
	User       string   `json:"User,omitempty"`
	WorkingDir string   `json:"WorkingDir,omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type manifest struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

func describe(cfg Config, layerSum string) ([]byte, error) {
	return json.Marshal(document{
		Architecture: runtime.GOARCH, OS: "linux", Created: epoch.UTC(),
		Config: runConfig{
			Entrypoint: cfg.Entrypoint, Cmd: cfg.Cmd, Env: cfg.Env, User: cfg.User, WorkingDir: cfg.WorkingDir,
		},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{"sha256:" + layerSum}},
	})
}

// writeArchive lays out the docker-archive: the manifest names the configuration and the layer.
func writeArchive(dst string, cfg Config, layer *os.File, layerSum string) (string, error) {
	config, err := describe(cfg, layerSum)
	if err != nil {
		return "", fmt.Errorf("encode configuration: %w", err)
	}
	sum := sha256.Sum256(config)
	digest := hex.EncodeToString(sum[:])
	list, err := json.Marshal([]manifest{{
		Config: digest + ".json", RepoTags: []string{cfg.Name}, Layers: []string{layerSum + ".tar"},
	}})
	if err != nil {
		return "", fmt.Errorf("encode manifest: %w", err)
	}
	// A file of its own: two tests may build the same image at the same time.
	out, err := os.CreateTemp(filepath.Dir(dst), filepath.Base(dst)+".*.part")
	if err != nil {
		return "", fmt.Errorf("create image: %w", err)
	}
	defer func() { _, _ = out.Close(), os.Remove(out.Name()) }()
	w := tar.NewWriter(out)
	for _, f := range []File{
		{Path: "manifest.json", Mode: 0o644, Data: list},
		{Path: digest + ".json", Mode: 0o644, Data: config},
		{Path: layerSum + ".tar", Mode: 0o644, Source: layer.Name()},
	} {
		if err := writeFile(w, f); err != nil {
			return "", fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("close image: %w", err)
	}
	// Only a whole archive gets the name that others look for.
	if err := os.Rename(out.Name(), dst); err != nil {
		return "", fmt.Errorf("publish image: %w", err)
	}
	return "sha256:" + digest, nil
}

// Digest reads the configuration digest of an archive that this package wrote.
func Digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open image: %w", err)
	}
	defer func() { _ = f.Close() }()
	r := tar.NewReader(f)
	if _, err := r.Next(); err != nil {
		return "", fmt.Errorf("read image: %w", err)
	}
	var list []manifest
	if err := json.NewDecoder(r).Decode(&list); err != nil || len(list) != 1 {
		return "", fmt.Errorf("read manifest of %s: %d entries, %w", path, len(list), err)
	}
	return "sha256:" + strings.TrimSuffix(list[0].Config, ".json"), nil
}
