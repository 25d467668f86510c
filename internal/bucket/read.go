// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"

	"gocloud.dev/blob"
)

// A read that fails continues where it stopped. After readTries in a row without a byte, the reading ends with the error.
const (
	readTries = 5
	readPause = time.Second
)

// partReader reads the plaintext of one part.
type partReader struct {
	b      *Bucket
	part   Part
	src    *objectReader
	plain  io.ReadCloser
	cancel context.CancelFunc
	read   int64
	err    error
}

func (r *partReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.plain.Read(p)
	r.read += int64(n)
	switch {
	case r.read > r.part.Bytes:
		n, err = 0, &Error{Kind: Damaged, Op: "read", Key: r.part.Name, Detail: "it holds more than its manifest says"}
	case errors.Is(err, io.EOF) && r.read != r.part.Bytes:
		err = &Error{Kind: Damaged, Op: "read", Key: r.part.Name, Detail: fmt.Sprintf("it ends after %d of %d bytes", r.read, r.part.Bytes)}
	case errors.Is(err, io.EOF) && !r.src.complete():
		err = &Error{Kind: Damaged, Op: "read", Key: r.part.Name, Detail: "there is more behind its end"}
	case err != nil && !errors.Is(err, io.EOF):
		err = r.explain(err)
	}
	r.err = err
	return n, err
}

// explain prefers the storage's error: errors of age and zstd about a stream that broke off only follow from it.
func (r *partReader) explain(err error) error {
	if cause := r.src.cause(); cause != nil {
		return cause
	}
	if classify(err) == WrongIdentity {
		return r.b.fail("open", r.part.Name, err)
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	return &Error{Kind: Damaged, Op: "read", Key: r.part.Name, Detail: r.b.say(err)}
}

func (r *partReader) Close() error {
	r.cancel()
	err := r.plain.Close()
	r.src.close()
	return err
}

// objectReader reads the objects of a part one after the other, and compares length and digest of each. The decoder reads it from a
// goroutine of its own, hence the lock.
type objectReader struct {
	ctx    context.Context //nolint:containedctx // that of the part, which io.Reader cannot pass
	b      *Bucket
	folder string

	mu    sync.Mutex
	left  []Object
	now   *blob.Reader
	sum   hash.Hash
	at    int64 // bytes of left[0] that were read
	tries int
	err   error
}

// complete is true once every object was read to its end.
func (o *objectReader) complete() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.left) == 0 && (o.err == nil || errors.Is(o.err, io.EOF))
}

// cause is what ended the reading before its end.
func (o *objectReader) cause() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, io.EOF) {
		return nil
	}
	return o.err
}

func (o *objectReader) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop()
	if o.err == nil {
		o.err = io.ErrClosedPipe
	}
}

func (o *objectReader) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	for o.err == nil {
		if len(o.left) == 0 {
			o.err = io.EOF
			break
		}
		n, err := o.piece(p)
		if err != nil {
			o.err = err
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, o.err
}

// piece reads once. If it reads nothing and returns no error, call it again.
func (o *objectReader) piece(p []byte) (int, error) {
	want := o.left[0]
	if o.at == want.Bytes {
		return 0, o.next()
	}
	if o.now == nil {
		if err := o.open(); err != nil {
			return 0, o.again(err)
		}
	}
	n, err := o.now.Read(p[:min(int64(len(p)), want.Bytes-o.at)])
	o.sum.Write(p[:n])
	o.at += int64(n)
	switch {
	case n > 0:
		o.tries = 0
		return n, nil
	case errors.Is(err, io.EOF):
		return 0, o.damaged(fmt.Sprintf("it ends after %d of %d bytes", o.at, want.Bytes))
	case err != nil:
		o.drop()
		return 0, o.again(err)
	}
	return 0, nil
}

// open opens the first object at the position of the reading, and checks its length.
func (o *objectReader) open() error {
	want := o.left[0]
	r, err := o.b.objects.NewRangeReader(o.ctx, o.folder+"/"+want.Key, o.at, -1, nil)
	if err != nil {
		return err
	}
	o.now = r
	if r.Size() != want.Bytes {
		return o.damaged(fmt.Sprintf("it has %d bytes instead of %d", r.Size(), want.Bytes))
	}
	if o.at == 0 {
		o.sum = sha256.New()
	}
	return nil
}

// next ends an object.
func (o *objectReader) next() error {
	want := o.left[0]
	if o.sum == nil { // the object is empty, so open did not run
		o.sum = sha256.New()
	}
	if got := hex.EncodeToString(o.sum.Sum(nil)); got != want.SHA256 {
		return o.damaged("its content has another digest than the manifest says")
	}
	o.drop()
	o.left, o.at, o.sum = o.left[1:], 0, nil
	return nil
}

// again waits and returns nil if the reading has to be tried again.
func (o *objectReader) again(err error) error {
	err = o.b.failIn(o.ctx, "read", o.left[0].Key, err)
	if KindOf(err) == NotFound {
		return &Error{Kind: Damaged, Op: "read", Key: o.left[0].Key, Detail: "it is missing", missing: true}
	}
	o.tries++
	if o.tries >= readTries || !passing(KindOf(err)) {
		return err
	}
	select {
	case <-o.ctx.Done():
		return o.b.failIn(o.ctx, "read", o.left[0].Key, o.ctx.Err())
	case <-time.After(readPause << o.tries):
		return nil
	}
}

func (o *objectReader) damaged(detail string) error {
	return &Error{Kind: Damaged, Op: "read", Key: o.left[0].Key, Detail: detail}
}

func (o *objectReader) drop() {
	if o.now != nil {
		_ = o.now.Close()
		o.now = nil
	}
}
