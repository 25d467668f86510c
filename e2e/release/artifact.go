// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// artifact is something in a registry that is not an image: its configuration is not that of a container.
type artifact struct {
	config      []byte
	layers      []v1.Layer
	annotations map[string]string
}

// MediaType implements v1.Image.
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// Layers implements v1.Image.
func (a *artifact) Layers() ([]v1.Layer, error) { return a.layers, nil }

// RawConfigFile implements v1.Image.
func (a *artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

// ConfigName implements v1.Image.
func (a *artifact) ConfigName() (v1.Hash, error) {
	h, _, err := v1.SHA256(bytes.NewReader(a.config))
	return h, err
}

// ConfigFile implements v1.Image. There is none of a container.
func (a *artifact) ConfigFile() (*v1.ConfigFile, error) { return &v1.ConfigFile{}, nil }

// Manifest implements v1.Image.
func (a *artifact) Manifest() (*v1.Manifest, error) {
	hash, size, err := v1.SHA256(bytes.NewReader(a.config))
	if err != nil {
		return nil, err
	}
	m := &v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: a.annotations,
		Config: v1.Descriptor{MediaType: chartConfigType, Digest: hash, Size: size},
	}
	for _, l := range a.layers {
		d, err := partial.Descriptor(l)
		if err != nil {
			return nil, err
		}
		m.Layers = append(m.Layers, *d)
	}
	return m, nil
}

// RawManifest implements v1.Image.
func (a *artifact) RawManifest() ([]byte, error) {
	m, err := a.Manifest()
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// Digest implements v1.Image.
func (a *artifact) Digest() (v1.Hash, error) { return partial.Digest(a) }

// Size implements v1.Image.
func (a *artifact) Size() (int64, error) { return partial.Size(a) }

// LayerByDigest implements v1.Image.
func (a *artifact) LayerByDigest(h v1.Hash) (v1.Layer, error) {
	if name, err := a.ConfigName(); err != nil || name == h {
		return partial.ConfigLayer(a)
	}
	return a.find(h, v1.Layer.Digest)
}

// LayerByDiffID implements v1.Image.
func (a *artifact) LayerByDiffID(h v1.Hash) (v1.Layer, error) { return a.find(h, v1.Layer.DiffID) }

func (a *artifact) find(h v1.Hash, of func(v1.Layer) (v1.Hash, error)) (v1.Layer, error) {
	for _, l := range a.layers {
		if got, err := of(l); err == nil && got == h {
			return l, nil
		}
	}
	return nil, errNoLayer
}
