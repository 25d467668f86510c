// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"filippo.io/age"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Recipients are those that files are encrypted to; the zero value leaves files unencrypted.
type Recipients struct {
	all          []age.Recipient
	fingerprints []string
}

// ParseRecipients reads age recipients.
func ParseRecipients(texts []string) (Recipients, error) {
	all, err := bucket.ParseRecipients(texts)
	if err != nil {
		return Recipients{}, err
	}
	r := Recipients{all: all}
	for _, text := range texts {
		r.fingerprints = append(r.fingerprints, bucket.Fingerprint(strings.TrimSpace(text)))
	}
	return r, nil
}

// PutEpoch writes how an epoch began, unless it is there already. It does not overwrite an epoch that the archive knows differently: the
// first record, from when the epoch began, counts.
func (a *Archive) PutEpoch(ctx context.Context, e Epoch) error {
	e.Version, e.PromotedAt = FormatVersion, e.PromotedAt.UTC()
	if err := e.check(); err != nil {
		return fmt.Errorf("write epoch %d: %w", e.Epoch, err)
	}
	err := a.putSmall(ctx, e.key(), e, true)
	if bucket.KindOf(err) == bucket.Exists {
		return nil
	}
	return err
}

// PutHeartbeat replaces the heartbeat.
func (a *Archive) PutHeartbeat(ctx context.Context, h Heartbeat) error {
	h.Version, h.At = FormatVersion, h.At.UTC()
	if err := h.check(); err != nil {
		return fmt.Errorf("write the heartbeat: %w", err)
	}
	return a.putSmall(ctx, heartbeatKey, h, false)
}

func (a *Archive) putSmall(ctx context.Context, key string, v any, once bool) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(raw) > ManifestMax {
		return fmt.Errorf("write %s: it has %d bytes, more than may be read", key, len(raw))
	}
	return a.b.PutObject(ctx, key, raw, once)
}

// File is a file that is being written. Use it from one goroutine.
type File struct {
	a      *Archive
	stream *bucket.Stream
	l      LogManifest
	r      Recipients
	bytes  int64
}

// Create begins a file with the manifest's epoch, site, server, log, beginning and whether it is sealed. ctx bounds all of it.
func (a *Archive) Create(ctx context.Context, l LogManifest, r Recipients) (*File, error) {
	if !siteForm.MatchString(l.Site) || !uuidForm.MatchString(l.ServerUUID) || !logForm.MatchString(l.Log) {
		return nil, fmt.Errorf("write %.80q of site %.80q: that is no log of a site", l.Log, l.Site)
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // it never fails: without randomness it ends the process
	l.Object.Key = l.file() + "-" + hex.EncodeToString(id)
	stream, err := a.b.NewStream(ctx, path.Join(l.folder(), l.Object.Key), r.all)
	if err != nil {
		return nil, err
	}
	return &File{a: a, stream: stream, l: l, r: r}, nil
}

// Write takes plaintext.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.stream.Write(p)
	f.bytes += int64(n)
	return n, err
}

// Bytes is how much plaintext was written.
func (f *File) Bytes() int64 { return f.bytes }

// Commit completes the file by writing its manifest, with held as its content. ErrThere means that there is such a file already, by
// another attempt: list again.
func (f *File) Commit(ctx context.Context, held Content) (Log, error) {
	object, err := f.stream.Close()
	if err != nil {
		return Log{}, err
	}
	l := f.l
	object.Key = l.Object.Key
	l.Version, l.Object, l.To = FormatVersion, object, l.From+f.bytes
	l.Encrypted, l.Recipients = len(f.r.all) > 0, f.r.fingerprints
	l.GTIDs, l.PreviousGTIDs, l.Transactions, l.Checksums = held.Set.String(), held.Previous.String(), held.Transactions, held.Checksums
	l.FirstCommit, l.LastCommit, l.SeenAt = held.FirstCommit, held.LastCommit, held.SeenAt.UTC()
	if err := l.check(); err != nil {
		return Log{}, errors.Join(fmt.Errorf("write %s: %w", l.Name(), err), f.a.b.RemoveObject(ctx, path.Join(l.folder(), object.Key)))
	}
	err = f.a.putSmall(ctx, l.key(), l, true)
	if bucket.KindOf(err) == bucket.Exists {
		// Another attempt wrote it, or a try of ours whose answer was lost.
		there, readErr := f.a.manifest(ctx, l.key())
		if readErr != nil {
			return Log{}, readErr
		}
		if there.Object.Key == l.Object.Key {
			return *there, nil
		}
		return Log{}, errors.Join(ErrThere, f.a.b.RemoveObject(ctx, path.Join(l.folder(), object.Key)))
	}
	if err != nil {
		return Log{}, err
	}
	log := Log{LogManifest: l, Set: held.Set, Previous: held.Previous}
	f.a.remember(log, mark{})
	return log, nil
}

// Abort gives the file up. After Commit it does nothing.
func (f *File) Abort() { f.stream.Abort() }

// ErrThere says that another attempt has written the file.
var ErrThere = errors.New("the file is in the archive already")

// Remove removes a file. The manifest goes first: without it there is no file, and Sweep removes what a crash leaves.
func (a *Archive) Remove(ctx context.Context, l Log) error {
	if err := a.b.RemoveObject(ctx, l.key()); err != nil {
		return err
	}
	a.mu.Lock()
	delete(a.read, l.key())
	a.mu.Unlock()
	return a.b.RemoveObject(ctx, path.Join(l.folder(), l.Object.Key))
}

// RemoveUnreadable removes a damaged manifest of a folder, so that the file can be written again. A manifest of a later version stays, and so
// does one in another folder.
func (a *Archive) RemoveUnreadable(ctx context.Context, folder LogManifest, u Unreadable) (removed bool, err error) {
	if bucket.KindOf(u.Err) != bucket.Damaged || path.Dir(u.Key) != folder.folder() {
		return false, nil
	}
	err = a.b.RemoveObject(ctx, u.Key)
	return err == nil, err
}
