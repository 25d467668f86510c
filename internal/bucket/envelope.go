// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// Bounds of the envelope, above all of its memory.
const (
	recipientsMax = 16
	identitiesMax = 16
	identityMax   = 64 << 10
	// windowMax is what the decoder allows; the encoder takes window.
	windowMax = 64 << 20
	window    = 8 << 20
)

// Fingerprint is half a SHA-256 of a recipient's text, in hexadecimal. A recipient is public; its fingerprint is only shorter.
func Fingerprint(recipient string) string {
	sum := sha256.Sum256([]byte(recipient))
	return hex.EncodeToString(sum[:16])
}

// ParseRecipients reads age recipients: age1... of X25519 or post-quantum.
func ParseRecipients(texts []string) ([]age.Recipient, error) {
	if len(texts) > recipientsMax {
		return nil, fmt.Errorf("%d recipients: at most %d", len(texts), recipientsMax)
	}
	all, err := age.ParseRecipients(strings.NewReader(strings.Join(texts, "\n")))
	if len(texts) > 0 && (err != nil || len(all) != len(texts)) {
		return nil, errors.New("an age recipient is malformed: give public keys as age-keygen prints them, which begin with age1")
	}
	return all, nil
}

// Identities are age identities that open backups.
type Identities struct {
	all          []age.Identity
	fingerprints []string
}

// ParseIdentities reads what age-keygen wrote. Its errors quote nothing of it.
func ParseIdentities(r io.Reader) (Identities, error) {
	all, err := age.ParseIdentities(io.LimitReader(r, identityMax))
	if err != nil || len(all) > identitiesMax {
		return Identities{}, errors.New("the age identity cannot be read: give a file as age-keygen writes it, with a line that begins with AGE-SECRET-KEY-")
	}
	ids := Identities{all: all}
	for _, id := range all {
		switch id := id.(type) {
		case *age.X25519Identity:
			ids.fingerprints = append(ids.fingerprints, Fingerprint(id.Recipient().String()))
		case *age.HybridIdentity:
			ids.fingerprints = append(ids.fingerprints, Fingerprint(id.Recipient().String()))
		}
	}
	return ids, nil
}

// String keeps identities out of texts.
func (Identities) String() string { return "[redacted]" }

// GoString keeps them out of %#v.
func (Identities) GoString() string { return "[redacted]" }

// open is true if one of them is among the recipients of a backup.
func (ids Identities) open(m *Manifest) bool { return ids.openAny(m.Recipients) }

// openAny is true if one of them is among the fingerprints.
func (ids Identities) openAny(recipients []string) bool {
	return slices.ContainsFunc(ids.fingerprints, func(f string) bool { return slices.Contains(recipients, f) })
}

// seal is the writer of plaintext into an envelope: zstd, then age if there are recipients. Closing it ends both; dst stays open.
func seal(dst io.Writer, recipients []age.Recipient) (io.WriteCloser, error) {
	return sealSized(dst, recipients, window, 2)
}

// sealSized is seal with a window of so many bytes, compressed by so many goroutines.
func sealSized(dst io.Writer, recipients []age.Recipient, window, concurrency int) (io.WriteCloser, error) {
	s := &sealer{}
	if len(recipients) > 0 {
		w, err := age.Encrypt(dst, recipients...)
		if err != nil {
			return nil, err
		}
		s.age, dst = w, w
	}
	// The fastest level: a site and its backup share processors, and SpeedDefault took four times as long for 1 to 10 % less.
	z, err := zstd.NewWriter(dst, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(concurrency),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true))
	if err != nil {
		return nil, err
	}
	s.Encoder = z
	return s, nil
}

type sealer struct {
	*zstd.Encoder
	age io.WriteCloser
}

func (s *sealer) Close() error {
	if err := s.Encoder.Close(); err != nil || s.age == nil {
		return err
	}
	return s.age.Close()
}

// unseal is the reader of the plaintext of an envelope.
func unseal(src io.Reader, encrypted bool, ids Identities) (io.ReadCloser, error) {
	if encrypted {
		r, err := age.Decrypt(src, ids.all...)
		if err != nil {
			return nil, err
		}
		src = r
	}
	z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxWindow(windowMax))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}
