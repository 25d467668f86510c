// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"io"
)

// Stored is a backup as it is in the storage: no part of it is opened, so no identity is needed.
type Stored struct {
	// Manifest says what it is. It is checked, and fits the place where it was found.
	Manifest *Manifest
	b        *Bucket
}

// OpenStored finds a backup to copy it as it is.
func (b *Bucket) OpenStored(ctx context.Context, name string) (*Stored, error) {
	if !nameForm.MatchString(name) {
		return nil, &Error{Kind: NotFound, Op: "open", Detail: "that is no name of a backup"}
	}
	m, err := b.manifest(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Stored{Manifest: m, b: b}, nil
}

// Check asks for every object, whether it is there and has its length. It reads none of the data.
func (s *Stored) Check(ctx context.Context) error {
	return s.b.check(ctx, s.Manifest.Name, s.Manifest.Parts)
}

// Copy writes one object as it is. If it returns no error, the object was complete, and is what the manifest says.
func (s *Stored) Copy(ctx context.Context, w io.Writer, o Object) error {
	src := &objectReader{ctx: ctx, b: s.b, folder: s.b.key("backups", s.Manifest.Name), left: []Object{o}}
	defer src.close()
	_, err := io.Copy(w, src)
	return err
}
