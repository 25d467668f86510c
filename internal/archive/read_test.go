// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// I27: a restore lists the archive and reads it for hours, while the group lives: its segments are removed once their log is sealed.
// The same bytes come from the sealed log then, whole and proven, or an error does.
func TestASegmentIsReadFromTheSealedLogI27(t *testing.T) {
	t.Parallel()
	r, ids := encryptedTo(t)
	a, dir := openFolder(t)
	m, first, second := twoSegments(t, a, r)
	half := second.From
	end := int64(len(m.raw))
	remove := func(logs ...Log) {
		for _, l := range logs {
			if err := a.Remove(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove(first, second)
	for name, l := range map[string]Log{"first": first, "second": second} {
		if _, err := readAll(t, a, l, ids); bucket.KindOf(err) != bucket.Damaged {
			t.Errorf("%s, with nothing in its place: %v", name, err)
		}
	}
	m.transaction(8, 4_000_000, 30)
	sealed := must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000001", Sealed: true, To: int64(len(m.raw))}, NewCounter(gtid.Set{}, false), r))
	for range 2 { // the second time the sealed log is known to be whole
		for name, l := range map[string]Log{"first": first, "second": second} {
			want := m.raw[:half]
			if l.From > 0 {
				want = m.raw[half:end]
			}
			if got, err := readAll(t, a, l, ids); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes of %d: %v", name, len(got), len(want), err)
			}
		}
	}
	if !a.isProven(sealed) {
		t.Error("the digest of the sealed log was never compared")
	}
	// A sealed log that is damaged behind what is read is no proof of what is before.
	again, err := Open(t.Context(), bucket.Config{Folder: strings.TrimSuffix(dir, filepath.Join("shop", "orders", "archive")), Namespace: "shop", Group: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	file := filepath.Join(filepath.Dir(dir), filepath.FromSlash(sealed.folder()), sealed.Object.Key)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-1] ^= 1
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]Log{"first": first, "second": second} {
		if _, err := readAll(t, again, l, ids); bucket.KindOf(err) != bucket.Damaged {
			t.Errorf("%s, of a damaged log: %v", name, err)
		}
	}
}

// A sealed log that is shorter than the segment has nothing of it.
func TestAShorterSealedLogIsNotRead(t *testing.T) {
	t.Parallel()
	a, _ := openFolder(t)
	m, first, second := twoSegments(t, a, Recipients{})
	for _, l := range []Log{first, second} {
		if err := a.Remove(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	_ = must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000001", Sealed: true, To: second.From}, NewCounter(gtid.Set{}, false), Recipients{}))
	if got, err := readAll(t, a, second, bucket.Identities{}); !bucket.Missing(err) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
	r, err := a.Read(t.Context(), first, bucket.Identities{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, m.raw[:second.From]) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
}
