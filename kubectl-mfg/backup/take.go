// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// manifestName is the first file of the tar.
const manifestName = "manifest.json"

const (
	manifestMax = 8 << 20
	partsMax    = 16
	// windowMax is the window that the zstd decoder may use; backups are written with an eighth of it.
	windowMax = 64 << 20
)

// manifest is the needed part of a backup's manifest; internal/bucket has all of it.
type manifest struct {
	Name      string `json:"name"`
	Encrypted bool   `json:"encrypted"`
	Parts     []struct {
		Name    string   `json:"name"`
		Bytes   int64    `json:"bytes"`
		Objects []object `json:"objects"`
	} `json:"parts"`
}

type object struct {
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// take reads the tar of the pod, checks every object against the manifest, and writes a tar: as it is, or opened. It returns how many bytes
// of the backup it wrote. The backup is complete only if there is no error.
func (f *fetch) take(from io.Reader) (int64, error) {
	in, out := tar.NewReader(from), tar.NewWriter(f.out)
	head, err := in.Next()
	if err != nil || head.Name != manifestName || head.Size > manifestMax {
		return 0, errors.Join(errNotAsSaid, err)
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return 0, fmt.Errorf("read the manifest: %w", err)
	}
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil || m.Name != f.backup.Name || len(m.Parts) == 0 || len(m.Parts) > partsMax {
		return 0, errNotAsSaid
	}
	if err := write(out, manifestName, int64(len(raw)), bytes.NewReader(raw)); err != nil {
		return 0, err
	}
	var sum int64
	for _, p := range m.Parts {
		objects := &objects{in: in, left: p.Objects}
		if f.keys == nil && m.Encrypted {
			err = objects.each(func(o object) error { sum += o.Bytes; return write(out, path.Base(o.Key), o.Bytes, objects) })
		} else {
			sum += p.Bytes
			err = f.opened(out, objects, p.Name, m.Encrypted, p.Bytes)
		}
		if err != nil {
			return sum, fmt.Errorf("part %.40q: %w", p.Name, err)
		}
	}
	if _, err := in.Next(); !errors.Is(err, io.EOF) {
		return sum, errors.Join(errNotAsSaid, err)
	}
	return sum, out.Close()
}

// opened writes the plaintext of a part.
func (f *fetch) opened(out *tar.Writer, src *objects, name string, encrypted bool, size int64) error {
	if err := src.next(); err != nil {
		return err
	}
	var r io.Reader = src
	if encrypted {
		plain, err := age.Decrypt(src, f.keys...)
		var unmatched *age.NoIdentityMatchError
		if errors.As(err, &unmatched) {
			return errors.New("the identity does not open this backup: give that of one of its recipients")
		} else if err != nil {
			return fmt.Errorf("decrypt: %w", err)
		}
		r = plain
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxWindow(windowMax))
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	defer z.Close()
	if err := write(out, path.Base(name), size, z); err != nil {
		return err
	}
	if n, err := z.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return errors.Join(errNotAsSaid, err)
	}
	return src.ended()
}

// write writes one file of exactly that size.
func write(out *tar.Writer, name string, size int64, content io.Reader) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size}); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	switch n, err := io.CopyN(out, content, size); {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it ends after %d of %d bytes: %w", n, size, errNotAsSaid)
	case err != nil:
		return err
	}
	return nil
}

// objects reads the objects of a part, one after the other, and checks each at its end.
type objects struct {
	in   *tar.Reader
	left []object
	now  object
	read int64
	hash interface {
		io.Writer
		Sum(b []byte) []byte
	}
}

// next begins the next object.
func (o *objects) next() error {
	if len(o.left) == 0 {
		return io.EOF
	}
	head, err := o.in.Next()
	if err != nil {
		return errors.Join(errNotAsSaid, err)
	}
	o.now, o.left = o.left[0], o.left[1:]
	if head.Name != path.Base(o.now.Key) || head.Size != o.now.Bytes {
		return errNotAsSaid
	}
	o.read, o.hash = 0, sha256.New()
	return nil
}

// Read goes from object to object.
func (o *objects) Read(p []byte) (int, error) {
	for {
		if o.read == o.now.Bytes {
			if err := o.check(); err != nil {
				return 0, err
			}
			if err := o.next(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := o.in.Read(p[:min(int64(len(p)), o.now.Bytes-o.read)])
		_, _ = o.hash.Write(p[:n])
		o.read += int64(n)
		if n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, errors.Join(errNotAsSaid, err)
		}
	}
}

// check compares the digest of the object that has just been read.
func (o *objects) check() error {
	if hex.EncodeToString(o.hash.Sum(nil)) != o.now.SHA256 {
		return fmt.Errorf("object %s: %w", path.Base(o.now.Key), errNotAsSaid)
	}
	return nil
}

// ended reads what is left, so that the digest of the last object is compared too. Nothing may be left outside the envelope.
func (o *objects) ended() error {
	n, err := io.Copy(io.Discard, o)
	if n > 0 {
		return errNotAsSaid
	}
	return err
}

// each calls do with every object; do must read all of it.
func (o *objects) each(do func(object) error) error {
	for len(o.left) > 0 {
		if err := o.next(); err != nil {
			return err
		}
		if err := do(o.now); err != nil {
			return err
		}
		if err := o.check(); err != nil {
			return err
		}
	}
	return nil
}
