// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// Backup is a backup in the storage.
type Backup struct {
	// Manifest says what it is. It is checked, and fits the place where it was found.
	Manifest *Manifest
	b        *Bucket
	ids      Identities
}

// manifest reads the manifest of a backup, and refuses one of another place: an object can be copied.
func (b *Bucket) manifest(ctx context.Context, name string) (*Manifest, error) {
	key := b.key("backups", name, manifestName)
	raw, err := b.get(ctx, key, manifestMax)
	if err != nil {
		return nil, err
	}
	m, err := ParseManifest(bytes.NewReader(raw))
	switch {
	case errors.Is(err, errTooNew):
		return nil, &Error{Kind: TooNew, Op: "read", Key: key}
	case err != nil:
		return nil, &Error{Kind: Damaged, Op: "read", Key: key, Detail: err.Error()}
	case m.Name != name || m.Namespace != b.config.Namespace || m.Group != b.config.Group:
		return nil, &Error{Kind: Damaged, Op: "read", Key: key,
			Detail: fmt.Sprintf("the manifest is that of backup %s of group %s in namespace %s", m.Name, m.Group, m.Namespace)}
	}
	return m, nil
}

// ReadManifest reads the manifest of a backup, which proves that the backup is there. It opens no part of it.
func (b *Bucket) ReadManifest(ctx context.Context, name string) (*Manifest, error) {
	if !nameForm.MatchString(name) {
		return nil, fmt.Errorf("read the manifest of backup %.64q: that is no name of a backup", name)
	}
	return b.manifest(ctx, name)
}

// OpenBackup finds a backup, and checks that one of the identities opens it before it reads any part.
func (b *Bucket) OpenBackup(ctx context.Context, name string, ids Identities) (*Backup, error) {
	if !nameForm.MatchString(name) {
		return nil, fmt.Errorf("open backup %.64q: that is no name of a backup", name)
	}
	m, err := b.manifest(ctx, name)
	if err != nil {
		return nil, err
	}
	if m.Encrypted && !ids.open(m) {
		detail := "there is no identity"
		if len(ids.all) > 0 {
			detail = fmt.Sprintf("the identities are those of the recipients %v, and the backup is for %v", ids.fingerprints, m.Recipients)
		}
		return nil, &Error{Kind: WrongIdentity, Op: "open", Key: name, Detail: detail}
	}
	return &Backup{Manifest: m, b: b, ids: ids}, nil
}

// Check asks for every object, whether it is there and has its length. It reads none of the data.
func (k *Backup) Check(ctx context.Context) error {
	return k.b.check(ctx, k.Manifest.Name, k.Manifest.Parts)
}

// check asks for every object of the parts of a backup.
func (b *Bucket) check(ctx context.Context, name string, parts []Part) error {
	for _, p := range parts {
		for _, o := range p.Objects {
			key := b.key("backups", name, o.Key)
			var size int64
			err := b.call(ctx, "look at", key, func(ctx context.Context) error {
				a, err := b.objects.Attributes(ctx, key)
				if err == nil {
					size = a.Size
				}
				return err
			})
			switch {
			case KindOf(err) == NotFound:
				return &Error{Kind: Damaged, Op: "look at", Key: key, Detail: "it is missing"}
			case err != nil:
				return err
			case size != o.Bytes:
				return &Error{Kind: Damaged, Op: "look at", Key: key, Detail: fmt.Sprintf("it has %d bytes instead of %d", size, o.Bytes)}
			}
		}
	}
	return nil
}

// Part reads the plaintext of a part. Only io.EOF says that it is complete and is what was written: do not use what was read before an
// error.
func (k *Backup) Part(ctx context.Context, name string) (io.ReadCloser, error) {
	part, ok := k.Manifest.Part(name)
	if !ok {
		return nil, &Error{Kind: NotFound, Op: "read", Key: name, Detail: "the backup has no such part"}
	}
	ctx, cancel := context.WithCancel(ctx)
	src := &objectReader{ctx: ctx, b: k.b, folder: k.b.key("backups", k.Manifest.Name), left: part.Objects}
	r := &partReader{b: k.b, part: part, src: src, cancel: cancel}
	plain, err := unseal(src, k.Manifest.Encrypted, k.ids)
	if err != nil {
		err = r.explain(err)
		cancel()
		src.close()
		return nil, err
	}
	r.plain = plain
	return r, nil
}

// Digests reads every object and compares its digest; no identity is needed. It returns how many bytes were read.
func (k *Backup) Digests(ctx context.Context) (int64, error) {
	var sum int64
	for _, p := range k.Manifest.Parts {
		src := &objectReader{ctx: ctx, b: k.b, folder: k.b.key("backups", k.Manifest.Name), left: p.Objects}
		n, err := io.Copy(io.Discard, src)
		src.close()
		sum += n
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}
