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
)

// PartWriter takes the plaintext of one part.
type PartWriter struct {
	w    *Writer
	part Part
	in   io.WriteCloser
	out  *objectWriter
	err  error // the first error; nothing is written after it
}

var errEnded = errors.New("the part has ended")

func (p *PartWriter) Write(data []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.in.Write(data)
	p.part.Bytes += int64(n)
	if err == nil && p.part.Bytes > dataMax {
		err = fmt.Errorf("part %s is longer than any that may be read", p.part.Name)
	}
	p.err = p.w.b.fail("write", p.part.Name, err)
	return n, p.err
}

// Close ends the part: either everything is in the storage, or there is an error and nothing of the part counts.
func (p *PartWriter) Close() error {
	if p.w.open != p {
		return errEnded
	}
	err := p.err
	if err == nil {
		err = p.in.Close()
	}
	if err == nil {
		err = p.out.end()
	}
	if err != nil {
		p.Abort()
		return p.w.b.fail("write", p.part.Name, err)
	}
	p.part.Objects = p.out.objects
	p.w.parts = append(p.w.parts, p.part)
	p.w.open, p.err = nil, errEnded
	return nil
}

// Abort gives the part up, and with it the backup. It waits until the storage has forgotten the upload, for Patience.AbortTimeout at most.
func (p *PartWriter) Abort() {
	if p.w.open != p {
		return
	}
	p.out.abort()
	if p.err == nil {
		p.err = errEnded
	}
	_ = p.in.Close() // it ends the goroutines of the compression; their last output is discarded
	p.w.open = nil
}

// objectWriter cuts a stream into objects, and computes the digest of each.
type objectWriter struct {
	ctx     context.Context //nolint:containedctx // that of the part, which io.Writer cannot pass
	w       *Writer
	part    string
	objects []Object
	now     *upload
	sum     hash.Hash
	bytes   int64
	ended   bool
}

func (o *objectWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if o.ended {
			return written, errEnded
		}
		if o.now == nil {
			if err := o.begin(); err != nil {
				return written, err
			}
		}
		n, err := o.now.Write(p[:min(int64(len(p)), o.w.objectBytes-o.bytes)])
		o.sum.Write(p[:n])
		o.bytes += int64(n)
		o.w.stored.Add(int64(n))
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
		if o.bytes == o.w.objectBytes {
			if err := o.finish(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

func (o *objectWriter) begin() error {
	if len(o.objects) == objectsMax {
		return errors.New("the part has more objects than may be read")
	}
	key := objectKey(o.w.attempt, o.part, len(o.objects))
	now, err := o.w.b.write(o.ctx, o.w.b.key("backups", o.w.name, key), false)
	if err != nil {
		return err
	}
	o.now, o.sum, o.bytes = now, sha256.New(), 0
	o.objects = append(o.objects, Object{Key: key})
	return nil
}

func (o *objectWriter) finish() error {
	err := o.now.commit()
	o.now = nil
	last := &o.objects[len(o.objects)-1]
	last.Bytes, last.SHA256 = o.bytes, hex.EncodeToString(o.sum.Sum(nil))
	return err
}

func (o *objectWriter) end() error {
	o.ended = true
	if o.now == nil {
		return nil
	}
	return o.finish()
}

func (o *objectWriter) abort() {
	o.ended = true
	if o.now != nil {
		o.now.abort()
		o.now = nil
	}
}
