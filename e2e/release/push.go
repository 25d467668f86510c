// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// target is a registry with the path below which everything goes.
type target struct {
	registry string
	// plain means HTTP.
	plain bool
}

func (t target) reference(path, tag string) (name.Tag, error) {
	var options []name.Option
	if t.plain {
		options = append(options, name.Insecure)
	}
	return name.NewTag(t.registry+"/"+path+":"+tag, options...)
}

// push pushes all images and charts of a folder, under the version that their layouts are marked with.
func push(ctx context.Context, log io.Writer, dir string, to target) error {
	archives, err := filepath.Glob(filepath.Join(dir, "*.oci.tar"))
	if err != nil || len(archives) == 0 {
		return errors.Join(err, fmt.Errorf("%s has no images (*.oci.tar)", dir))
	}
	for _, archive := range archives {
		if err := pushOne(ctx, log, archive, to); err != nil {
			return fmt.Errorf("push %s: %w", filepath.Base(archive), err)
		}
	}
	return nil
}

// remotePath is where in a registry the image or the chart of a file belongs.
func remotePath(archive, version string) string {
	file := strings.TrimSuffix(filepath.Base(archive), ".oci.tar")
	if chart, is := strings.CutPrefix(file, "chart-"); is {
		return chartPath + "/" + strings.TrimSuffix(chart, "-"+version)
	}
	return strings.TrimSuffix(file, "_v"+version)
}

func pushOne(ctx context.Context, log io.Writer, archive string, to target) error {
	dir, err := os.MkdirTemp("", "mfg-push-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	index, entry, err := openLayout(archive, dir)
	if err != nil {
		return err
	}
	version := entry.Annotations[refName]
	ref, err := to.reference(remotePath(archive, version), version)
	if err != nil {
		return fmt.Errorf("name it: %w", err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if entry.MediaType.IsIndex() {
		image, err := index.ImageIndex(entry.Digest)
		if err == nil {
			err = remote.WriteIndex(ref, image, options...)
		}
		if err != nil {
			return err
		}
	} else {
		image, err := index.Image(entry.Digest)
		if err == nil {
			err = remote.Write(ref, image, options...)
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(log, "pushed %s@%s\n", ref, entry.Digest)
	return nil
}

// openLayout unpacks an OCI layout into a folder and gives its one entry.
func openLayout(archive, dir string) (v1.ImageIndex, v1.Descriptor, error) {
	if err := unpack(archive, dir); err != nil {
		return nil, v1.Descriptor{}, err
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, v1.Descriptor{}, fmt.Errorf("open the layout: %w", err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, v1.Descriptor{}, fmt.Errorf("read the layout: %w", err)
	}
	if len(m.Manifests) != 1 {
		return nil, v1.Descriptor{}, fmt.Errorf("the layout has %d entries, and one is expected", len(m.Manifests))
	}
	return index, m.Manifests[0], nil
}

// pushed lists images and charts of a folder as they are named in a registry, by digest: what is to be signed there.
func pushed(dir, registry string) ([]string, error) {
	archives, err := filepath.Glob(filepath.Join(dir, "*.oci.tar"))
	if err != nil || len(archives) == 0 {
		return nil, errors.Join(err, fmt.Errorf("%s has no images (*.oci.tar)", dir))
	}
	var all []string
	for _, archive := range archives {
		work, err := os.MkdirTemp("", "mfg-list-")
		if err != nil {
			return nil, fmt.Errorf("make a folder: %w", err)
		}
		_, entry, err := openLayout(archive, work)
		if err = errors.Join(err, os.RemoveAll(work)); err != nil {
			return nil, fmt.Errorf("open %s: %w", filepath.Base(archive), err)
		}
		all = append(all, registry+"/"+remotePath(archive, entry.Annotations[refName])+"@"+entry.Digest.String())
	}
	return all, nil
}
