// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"filippo.io/age"
)

const manifestName = "manifest.json"

// PartKeyring is the name of the part with a keyring. Only encrypted backups have it.
const PartKeyring = "keyring"

// NewBackup says which backup is made.
type NewBackup struct {
	// Name is that of the MysqlBackup.
	Name string
	// UID is that of the group.
	UID string
	// Recipients are the age recipients; without any the backup is not encrypted.
	Recipients []string
	// Now is when it is made.
	Now time.Time
}

// Writer is a backup that is being made: parts one after the other, then Commit. Use it from one goroutine.
type Writer struct {
	b            *Bucket
	name         string
	attempt      string
	recipients   []age.Recipient
	fingerprints []string
	parts        []Part
	open         *PartWriter
	stored       atomic.Int64
	objectBytes  int64
	// told is true from when the manifest goes to the storage, until it is known that the storage did not take it.
	told bool
}

// objectBytes is the size at which a part continues in another object; it is far below what any storage refuses.
const objectBytes = 1 << 30

// Create begins a backup. The place must be the group's, and no backup of the name may be there.
func (b *Bucket) Create(ctx context.Context, n NewBackup) (*Writer, error) {
	if !nameForm.MatchString(n.Name) {
		return nil, fmt.Errorf("create backup %.64q: the name must be one of lower-case letters, digits and '-'", n.Name)
	}
	recipients, err := ParseRecipients(n.Recipients)
	if err != nil {
		return nil, err
	}
	if err := b.Claim(ctx, n.UID, n.Now); err != nil {
		return nil, err
	}
	_, err = b.get(ctx, b.key("backups", n.Name, manifestName), manifestMax)
	if err == nil {
		return nil, &Error{Kind: Exists, Op: "create", Key: n.Name}
	}
	if KindOf(err) != NotFound {
		return nil, err
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // it never fails: without randomness it ends the process
	w := &Writer{b: b, name: n.Name, attempt: hex.EncodeToString(id), recipients: recipients, objectBytes: objectBytes}
	for _, r := range n.Recipients {
		w.fingerprints = append(w.fingerprints, Fingerprint(strings.TrimSpace(r)))
	}
	return w, nil
}

// Stored is how many bytes have gone to the storage so far. It may be called from any goroutine.
func (w *Writer) Stored() int64 { return w.stored.Load() }

// Part begins a part. It ends with its Close, or with its Abort; ctx bounds all of it.
func (w *Writer) Part(ctx context.Context, name string) (*PartWriter, error) {
	switch {
	case !partForm.MatchString(name):
		return nil, fmt.Errorf("part %.40q: the name must be one of lower-case letters, digits and '-'", name)
	case w.open != nil:
		return nil, fmt.Errorf("part %s: part %s has not ended", name, w.open.part.Name)
	case slices.ContainsFunc(w.parts, func(p Part) bool { return p.Name == name }):
		return nil, fmt.Errorf("part %s: it is there already", name)
	case name == PartKeyring && len(w.recipients) == 0:
		// The safe answer: an unencrypted keyring would open the data of a site to anyone who reads the bucket.
		return nil, errors.New("part keyring: a keyring is written into encrypted backups alone: set encryption.recipients")
	}
	p := &PartWriter{w: w, part: Part{Name: name}}
	p.out = &objectWriter{ctx: ctx, w: w, part: name}
	in, err := seal(p.out, w.recipients)
	if err != nil {
		p.out.abort()
		return nil, w.b.fail("write", name, err)
	}
	p.in, w.open = in, p
	return p, nil
}

// Commit completes the backup by writing its manifest. It fills in what the writer knows itself.
func (w *Writer) Commit(ctx context.Context, m Manifest) (*Manifest, error) {
	if w.open != nil {
		return nil, fmt.Errorf("commit backup %s: part %s has not ended", w.name, w.open.part.Name)
	}
	m.Version, m.Name, m.Namespace, m.Group = ManifestVersion, w.name, w.b.config.Namespace, w.b.config.Group
	m.Encrypted, m.Recipients, m.Parts = len(w.recipients) > 0, w.fingerprints, w.parts
	m.StartedAt, m.FinishedAt = m.StartedAt.UTC(), m.FinishedAt.UTC()
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("commit backup %s: %w", w.name, err)
	}
	raw, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	if len(raw) > manifestMax {
		return nil, fmt.Errorf("commit backup %s: its manifest has %d bytes, more than may be read", w.name, len(raw))
	}
	if err := w.whole(ctx); err != nil {
		return nil, err
	}
	key := w.b.key("backups", w.name, manifestName)
	w.told = true
	err = w.b.call(ctx, "write", key, func(ctx context.Context) error { return w.b.put(ctx, key, raw, true) })
	if err != nil && KindOf(err) != Exists {
		w.told = !refused(KindOf(err))
		return nil, err
	}
	// The manifest there may be from a try of ours whose answer was lost, or from another attempt.
	read, err := w.b.manifest(ctx, w.name)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(read.Parts[0].Objects[0].Key, w.attempt+"/") {
		w.told = false // that manifest names the objects of the other attempt
		return nil, &Error{Kind: Exists, Op: "commit", Key: w.name, Detail: "another attempt was completed first"}
	}
	return read, nil
}

// whole returns an error unless everything that was stored is still there (I23): a sweep that takes the attempt for a dead one, a rule of the
// bucket or a person may have removed some of it since.
func (w *Writer) whole(ctx context.Context) error {
	err := w.b.check(ctx, w.name, w.parts)
	if KindOf(err) == Damaged {
		return &Error{Kind: Other, Op: "commit", Key: w.name, Detail: "what it has stored is there no more, or not whole: does anything else remove objects here?"}
	}
	return err
}

// refused is true for kinds that mean that the storage did not take an object. After any other kind it may have taken it, or may yet.
func refused(k Kind) bool {
	return k == AccessDenied || k == NoSuchBucket || k == UntrustedTLS || k == Full || k == ClockSkew
}

// Abort removes what the attempt has stored, as far as that is allowed. Sweep removes the rest. After a Commit that succeeded, or whose outcome is
// not known, it removes nothing (I23): otherwise an existing manifest could name objects that are gone.
func (w *Writer) Abort(ctx context.Context) error {
	if w.open != nil {
		w.open.Abort()
	}
	if w.told {
		return nil
	}
	return w.b.removeAll(ctx, w.b.key("backups", w.name, w.attempt)+"/")
}
