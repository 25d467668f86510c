// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"gocloud.dev/blob"
)

// Buffers of one upload: memory never holds a whole stream, only the pieces that are on their way.
const (
	pieceBytes  = 16 << 20
	pieceUpload = 2
)

// upload is one object that is being written. Without a commit there is no object.
type upload struct {
	b      *Bucket
	key    string
	w      *blob.Writer
	file   *os.File // of a folder
	once   bool
	ctx    context.Context //nolint:containedctx // that of the caller, which says why an upload ended
	cancel context.CancelFunc
}

// size bounds an upload: pieces of so many bytes, so many at a time on their way.
type size struct{ piece, at int }

// write begins an object. once refuses to write over one that is there.
func (b *Bucket) write(ctx context.Context, key string, once bool) (*upload, error) {
	return b.writeSized(ctx, key, once, size{piece: pieceBytes, at: pieceUpload})
}

func (b *Bucket) writeSized(ctx context.Context, key string, once bool, s size) (*upload, error) {
	u := &upload{b: b, key: key, once: once, ctx: ctx}
	ctx, u.cancel = context.WithCancel(ctx)
	var err error
	u.w, err = b.objects.NewWriter(ctx, key, &blob.WriterOptions{
		BufferSize: s.piece, MaxConcurrency: s.at, ContentType: "application/octet-stream", IfNotExist: once,
		BeforeWrite: func(as func(any) bool) error {
			as(&u.file)
			return nil
		},
	})
	if err != nil {
		u.cancel()
		return nil, b.failIn(u.ctx, "write", key, err)
	}
	return u, nil
}

func (u *upload) Write(p []byte) (int, error) {
	n, err := u.w.Write(p)
	return n, u.b.failIn(u.ctx, "write", u.key, err)
}

// commit completes the object. On a volume it first syncs to disk: a manifest must not outlive the data that it names.
func (u *upload) commit() error {
	defer u.cancel()
	if u.file != nil {
		if err := u.file.Sync(); err != nil {
			u.abort()
			return u.b.failIn(u.ctx, "write", u.key, err)
		}
	}
	if err := u.w.Close(); err != nil {
		u.forget()
		return u.b.failIn(u.ctx, "write", u.key, err)
	}
	if u.file != nil {
		return u.b.failIn(u.ctx, "write", u.key, syncFolder(filepath.Join(u.b.config.Folder, filepath.Dir(u.key))))
	}
	return nil
}

// abort gives the object up, and makes the storage forget what it has of it. The library cannot do that once its context has ended, and
// only this attempt uses the key.
func (u *upload) abort() {
	u.cancel()
	_ = u.w.Close() // it has to fail: the context has ended
	u.forget()
}

// forget makes the storage forget an upload that failed. A piece that is still on its way can bring it back: Sweep does the rest.
func (u *upload) forget() {
	if u.b.s3 == nil || u.once {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), u.b.patience.AbortTimeout)
	defer cancel()
	_, _ = u.b.forget(ctx, u.key, time.Time{}) // if this fails, Sweep does it later
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// put writes a small object in one go.
func (b *Bucket) put(ctx context.Context, key string, body []byte, once bool) error {
	u, err := b.write(ctx, key, once)
	if err != nil {
		return err
	}
	if _, err := u.Write(body); err != nil {
		u.abort()
		return err
	}
	return u.commit()
}

// get reads an object of at most most bytes.
func (b *Bucket) get(ctx context.Context, key string, most int64) ([]byte, error) {
	var body []byte
	err := b.call(ctx, "read", key, func(ctx context.Context) error {
		r, err := b.objects.NewReader(ctx, key, nil)
		if err != nil {
			return err
		}
		body, err = io.ReadAll(io.LimitReader(r, most+1))
		return errors.Join(err, r.Close())
	})
	if err == nil && int64(len(body)) > most {
		return nil, &Error{Kind: Damaged, Op: "read", Key: key, Detail: "it is larger than any that we write"}
	}
	return body, err
}

// remove removes an object; one that is gone already is no error.
func (b *Bucket) remove(ctx context.Context, key string) error {
	err := b.call(ctx, "remove", key, func(ctx context.Context) error { return b.objects.Delete(ctx, key) })
	switch KindOf(err) { //nolint:exhaustive // the others stay as they are
	case NotFound:
		return nil
	case AccessDenied:
		var e *Error
		errors.As(err, &e)
		return &Error{Kind: NoDeleteRight, Op: "remove", Key: key, Detail: e.Detail}
	}
	return err
}
