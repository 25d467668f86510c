// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"path"
	"strings"
	"time"

	"filippo.io/age"
	"gocloud.dev/blob"
)

// This file serves the archive of binary logs, which is also in the group's place; internal/archive defines its format. Keys are relative
// to the group's folder, and only in the archive's folder: nothing here reaches a backup.

// archiveFolder is the archive's folder in that of the group.
const archiveFolder = "archive"

// These are smaller than those of backups: an archiver shares its node with a server, and uploads one object at a time.
const (
	archivePiece  = 8 << 20
	archiveWindow = 4 << 20
)

// archiveFoundMax bounds a listing of the archive. Without the right to delete, every segment of every log stays.
const archiveFoundMax = 20000000

// Item is one object of a listing.
type Item struct {
	// Key is relative to the group's folder.
	Key     string
	Bytes   int64
	ModTime time.Time
	// Sum is the digest that the storage lists, in a form of its own; empty if it lists none.
	Sum string
}

// Namespace is the namespace of the group.
func (b *Bucket) Namespace() string { return b.config.Namespace }

// Group is the name of the group.
func (b *Bucket) Group() string { return b.config.Group }

// archiveKey is the whole key of an object of the archive.
func (b *Bucket) archiveKey(key string) (string, error) {
	if path.Clean(key) != key || !strings.HasPrefix(key+"/", archiveFolder+"/") || len(key) > 512 {
		return "", &Error{Kind: Other, Op: "find", Detail: "that is no key of the archive"}
	}
	return b.key(key), nil
}

// PutObject writes a small object in one go. once refuses to write over one that is there: AlreadyExists.
func (b *Bucket) PutObject(ctx context.Context, key string, body []byte, once bool) error {
	whole, err := b.archiveKey(key)
	if err != nil {
		return err
	}
	return b.call(ctx, "write", whole, func(ctx context.Context) error { return b.put(ctx, whole, body, once) })
}

// GetObject reads an object of at most most bytes.
func (b *Bucket) GetObject(ctx context.Context, key string, most int64) ([]byte, error) {
	whole, err := b.archiveKey(key)
	if err != nil {
		return nil, err
	}
	return b.get(ctx, whole, most)
}

// RemoveObject removes an object; one that is gone already is no error.
func (b *Bucket) RemoveObject(ctx context.Context, key string) error {
	whole, err := b.archiveKey(key)
	if err != nil {
		return err
	}
	return b.remove(ctx, whole)
}

// HasObject is true if an object is there.
func (b *Bucket) HasObject(ctx context.Context, key string) (there bool, err error) {
	whole, err := b.archiveKey(key)
	if err != nil {
		return false, err
	}
	err = b.call(ctx, "look at", whole, func(ctx context.Context) error {
		var err error
		there, err = b.objects.Exists(ctx, whole)
		return err
	})
	return there, err
}

// EachObject calls do with every object below a folder, sorted by key.
func (b *Bucket) EachObject(ctx context.Context, folder string, do func(Item) error) error {
	whole, err := b.archiveKey(folder)
	if err != nil {
		return err
	}
	root := b.key("") + "/"
	return b.eachOf(ctx, &blob.ListOptions{Prefix: whole + "/"}, archiveFoundMax, func(o *blob.ListObject) error {
		if o.IsDir {
			return nil
		}
		return do(Item{Key: strings.TrimPrefix(o.Key, root), Bytes: o.Size, ModTime: o.ModTime, Sum: string(o.MD5)})
	})
}

// ForgetUploads makes the storage forget the uploads below a folder that began earlier than before and never ended.
func (b *Bucket) ForgetUploads(ctx context.Context, folder string, before time.Time) (int, error) {
	whole, err := b.archiveKey(folder)
	if err != nil {
		return 0, err
	}
	return b.forget(ctx, whole+"/", before)
}

// Stream is one object that takes plaintext: zstd, then age if there are recipients. Without Close there is no object. Use it from
// one goroutine.
type Stream struct {
	now    *upload
	in     io.WriteCloser
	sum    hash.Hash
	stored int64
	object Object
	err    error
}

// NewStream begins an object. ctx bounds all of it.
func (b *Bucket) NewStream(ctx context.Context, key string, recipients []age.Recipient) (*Stream, error) {
	whole, err := b.archiveKey(key)
	if err != nil {
		return nil, err
	}
	now, err := b.writeSized(ctx, whole, false, size{piece: archivePiece, at: 1})
	if err != nil {
		return nil, err
	}
	s := &Stream{now: now, sum: sha256.New(), object: Object{Key: key}}
	if s.in, err = sealSized(streamOut{s}, recipients, archiveWindow, 1); err != nil {
		now.abort()
		return nil, b.fail("write", whole, err)
	}
	return s, nil
}

// streamOut takes the output of the envelope.
type streamOut struct{ *Stream }

func (o streamOut) Write(p []byte) (int, error) {
	if o.now == nil {
		return 0, errEnded
	}
	n, err := o.now.Write(p)
	o.sum.Write(p[:n])
	o.stored += int64(n)
	return n, err
}

func (s *Stream) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.in.Write(p)
	s.err = err
	return n, err
}

// Close completes the object: either all of it is in the storage, or there is an error and nothing of it counts.
func (s *Stream) Close() (Object, error) {
	if s.now == nil {
		return Object{}, errEnded
	}
	b, key := s.now.b, s.now.key
	err := s.err
	if err == nil {
		err = s.in.Close()
	}
	if err != nil {
		s.Abort()
		return Object{}, b.fail("write", key, err)
	}
	now := s.now
	s.now, s.err = nil, errEnded
	if err := now.commit(); err != nil {
		return Object{}, err
	}
	s.object.Bytes, s.object.SHA256 = s.stored, hex.EncodeToString(s.sum.Sum(nil))
	return s.object, nil
}

// Abort gives the object up. After Close it does nothing.
func (s *Stream) Abort() {
	if s.now == nil {
		return
	}
	s.now.abort()
	s.now = nil
	if s.err == nil {
		s.err = errEnded
	}
	_ = s.in.Close() // it ends the goroutines of the compression; their last output is discarded
}

// Sealed is an object that a Stream wrote, as its manifest describes it.
type Sealed struct {
	Object Object
	// Plain is the length of the plaintext.
	Plain int64
	// Encrypted is true if the object is encrypted; Recipients are the fingerprints of the keys, any of which opens it.
	Encrypted  bool
	Recipients []string
}

// OpenSealed reads the plaintext of an object. Only io.EOF says that it is complete and is what was written.
func (b *Bucket) OpenSealed(ctx context.Context, s Sealed, ids Identities) (io.ReadCloser, error) {
	whole, err := b.archiveKey(s.Object.Key)
	if err != nil {
		return nil, err
	}
	if s.Encrypted && !ids.openAny(s.Recipients) {
		return nil, &Error{Kind: WrongIdentity, Op: "open", Key: whole, Detail: "none of the identities is that of a recipient"}
	}
	o := s.Object
	o.Key = path.Base(whole)
	ctx, cancel := context.WithCancel(ctx)
	src := &objectReader{ctx: ctx, b: b, folder: path.Dir(whole), left: []Object{o}}
	r := &partReader{b: b, part: Part{Name: s.Object.Key, Bytes: s.Plain}, src: src, cancel: cancel}
	plain, err := unseal(src, s.Encrypted, ids)
	if err != nil {
		err = r.explain(err)
		cancel()
		src.close()
		return nil, err
	}
	r.plain = plain
	return r, nil
}

// Damage is the error for an object of the archive that is not what was written.
func (b *Bucket) Damage(key string, cause error) error {
	if errors.Is(cause, ErrTooNew) {
		return &Error{Kind: TooNew, Op: "read", Key: b.key(key)}
	}
	return &Error{Kind: Damaged, Op: "read", Key: b.key(key), Detail: b.say(cause)}
}

// ErrTooNew is the error for an object of a later version.
var ErrTooNew = errTooNew
