// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"io"
	"path"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Read reads the plaintext of a file: bytes [From, To) of the binary log. Only io.EOF says that it is complete and is what was written: do not
// use what was read before an error. If a segment is gone because its log was sealed, Read reads it from the sealed log.
func (a *Archive) Read(ctx context.Context, l Log, ids bucket.Identities) (io.ReadCloser, error) {
	r, err := a.open(ctx, l, ids)
	if l.Sealed || err != nil && !bucket.Missing(err) {
		return r, err
	}
	s := &segment{ctx: ctx, a: a, l: l, ids: ids, now: r}
	if err != nil { // opening an encrypted file reads it already
		if moved := s.move(); moved != nil {
			return nil, moved
		}
		if s.whole == nil {
			return nil, err
		}
	}
	return s, nil
}

func (a *Archive) open(ctx context.Context, l Log, ids bucket.Identities) (io.ReadCloser, error) {
	o := l.Object
	o.Key = path.Join(l.folder(), o.Key)
	return a.b.OpenSealed(ctx, bucket.Sealed{Object: o, Plain: l.To - l.From, Encrypted: l.Encrypted, Recipients: l.Recipients}, ids)
}

// segment reads a segment. The archive continues while a restore reads it for hours: once the log is sealed, its segments are removed, and
// the same bytes are in the sealed log.
type segment struct {
	ctx context.Context //nolint:containedctx // that of the reading, which io.Reader cannot pass
	a   *Archive
	l   Log
	ids bucket.Identities
	now io.ReadCloser
	at  int64 // bytes of the segment that were read
	// whole is the sealed log, once the reading has moved there.
	whole *Log
}

// Read reads from the sealed log if the segment is gone.
func (s *segment) Read(p []byte) (int, error) {
	left := s.l.To - s.l.From - s.at
	if s.whole != nil && left == 0 {
		return 0, s.end()
	}
	n, err := s.now.Read(p[:min(int64(len(p)), max(left, 1))]) // at least one byte, so that the reader can report the end
	s.at += int64(n)
	switch {
	case s.whole == nil && bucket.Missing(err):
		if moved := s.move(); moved != nil {
			return n, moved
		}
		if s.whole == nil {
			return n, err // nothing else has these bytes
		}
		return n, nil
	case s.whole != nil && errors.Is(err, io.EOF):
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// move continues in the sealed log, if there is one that has all of the segment.
func (s *segment) move() error {
	m := s.l.LogManifest
	m.Sealed, m.From = true, 0
	whole, err := s.a.manifest(s.ctx, m.key())
	if bucket.KindOf(err) == bucket.NotFound || err == nil && whole.To < s.l.To {
		return nil
	}
	if err != nil {
		return err
	}
	in, err := s.a.open(s.ctx, *whole, s.ids)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, in, s.l.From+s.at); err != nil {
		return errors.Join(err, in.Close())
	}
	if s.now != nil {
		_ = s.now.Close() // it has failed already
	}
	s.now, s.whole = in, whole
	return nil
}

// end is io.EOF once the sealed log was read to its own end: only there is its digest proven.
func (s *segment) end() error {
	if s.a.isProven(*s.whole) {
		return io.EOF
	}
	if _, err := io.Copy(io.Discard, s.now); err != nil {
		return err
	}
	s.a.prove(*s.whole)
	return io.EOF
}

func (s *segment) Close() error { return s.now.Close() }

func (a *Archive) isProven(l Log) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.proven == l.Object
}

// prove remembers the last sealed log that was proven: the segments of a log are read one after the other.
func (a *Archive) prove(l Log) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.proven = l.Object
}
