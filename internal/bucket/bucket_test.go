// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// place is a folder with a bucket of the group orders in it.
func place(t *testing.T) (*Bucket, string) {
	t.Helper()
	dir := t.TempDir()
	return open(t, Config{Folder: dir, Namespace: "shop", Group: "orders", Prefix: "a/b"}), dir
}

func open(t *testing.T, c Config) *Bucket {
	t.Helper()
	b, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func keys(t *testing.T) (string, Identities) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	ids, err := ParseIdentities(strings.NewReader("# a comment\n" + id.String() + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return id.Recipient().String(), ids
}

// create begins a backup whose objects are small, so that a part has several.
func create(t *testing.T, b *Bucket, name string, recipients ...string) *Writer {
	t.Helper()
	w, err := b.Create(t.Context(), NewBackup{Name: name, UID: "u1", Recipients: recipients, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	w.objectBytes = 100 << 10
	return w
}

func fill(t *testing.T, w *Writer, part string, data []byte) {
	t.Helper()
	p, err := w.Part(t.Context(), part)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(p, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func manifestOf(at time.Time) Manifest {
	return Manifest{Method: Logical, Site: "paris", Epoch: 3, MySQLVersion: "9.7.4", GTIDExecuted: "a:1-5", StartedAt: at, FinishedAt: at.Add(time.Minute)}
}

func commit(t *testing.T, w *Writer, at time.Time) *Manifest {
	t.Helper()
	m, err := w.Commit(t.Context(), manifestOf(at))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// noise does not compress, so that sizes are known.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return data
}

func readPart(b *Bucket, name, part string, ids Identities) ([]byte, error) {
	k, err := b.OpenBackup(context.Background(), name, ids)
	if err != nil {
		return nil, err
	}
	r, err := k.Part(context.Background(), part)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

func wantKind(t *testing.T, err error, want Kind) {
	t.Helper()
	if KindOf(err) != want {
		t.Fatalf("error %v is %q, want %q", err, KindOf(err), want)
	}
	if !strings.HasSuffix(err.Error(), want.Remedy()) || want.Remedy() == "" {
		t.Errorf("%v does not say what to do", err)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	recipient, ids := keys(t)
	for name, recipients := range map[string][]string{"plain": nil, "encrypted": {recipient}} {
		t.Run(name, func(t *testing.T) {
			b, dir := place(t)
			data := map[string][]byte{"data": append(noise(350<<10), bytes.Repeat([]byte("a marker of plaintext "), 1000)...), "empty": nil, "rows": []byte("{}")}
			w := create(t, b, "monday", recipients...)
			for part, content := range data {
				fill(t, w, part, content)
			}
			m := commit(t, w, noon)
			if p, _ := m.Part("data"); len(p.Objects) < 4 || p.Bytes != int64(len(data["data"])) {
				t.Errorf("part data: %d bytes in %d objects", p.Bytes, len(p.Objects))
			}
			if w.Stored() != m.StoredBytes() {
				t.Errorf("stored %d, the manifest says %d", w.Stored(), m.StoredBytes())
			}
			for part, content := range data {
				got, err := readPart(b, "monday", part, ids)
				if err != nil || !bytes.Equal(got, content) {
					t.Errorf("part %s: %d bytes, %v", part, len(got), err)
				}
			}
			k, err := b.OpenBackup(t.Context(), "monday", ids)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := k.Digests(t.Context()); err != nil || n != m.StoredBytes() {
				t.Errorf("Digests read %d of %d: %v", n, m.StoredBytes(), err)
			}
			if err := k.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if found := count(t, dir, "a marker of plaintext"); name == "encrypted" && found {
				t.Error("plaintext is in the storage")
			}
		})
	}
}

// count tells whether a text is in any file below a folder.
func count(t *testing.T, dir, text string) bool {
	t.Helper()
	found := false
	for _, path := range files(t, dir) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(raw, []byte(text))
	}
	return found
}

func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// Whatever happens to one object, nobody takes what is read for the backup.
func TestDamageIsSeen(t *testing.T) {
	recipient, ids := keys(t)
	object := func(i string) string { return "/data.0000" + i }
	damages := map[string]func(t *testing.T, find func(string) string){
		"truncated": func(t *testing.T, find func(string) string) { must(t, os.Truncate(find(object("1")), 1000)) },
		"emptied":   func(t *testing.T, find func(string) string) { must(t, os.Truncate(find(object("2")), 0)) },
		"longer": func(t *testing.T, find func(string) string) {
			must(t, os.WriteFile(find(object("1")), noise(200<<10), 0o600))
		},
		"missing": func(t *testing.T, find func(string) string) { must(t, os.Remove(find(object("1")))) },
		"flipped": func(t *testing.T, find func(string) string) { flip(t, find(object("1")), 5000) },
		"flipped in the last byte": func(t *testing.T, find func(string) string) {
			path := find(object("3"))
			info, err := os.Stat(path)
			must(t, err)
			flip(t, path, info.Size()-1)
		},
		"swapped": func(t *testing.T, find func(string) string) {
			a, c := find(object("1")), find(object("2"))
			must(t, os.Rename(a, a+".x"))
			must(t, os.Rename(c, a))
			must(t, os.Rename(a+".x", c))
		},
	}
	for name, damage := range damages {
		for kind, recipients := range map[string][]string{"plain": nil, "encrypted": {recipient}} {
			t.Run(name+" "+kind, func(t *testing.T) {
				b, dir := place(t)
				w := create(t, b, "monday", recipients...)
				fill(t, w, "data", noise(350<<10))
				commit(t, w, noon)
				damage(t, func(suffix string) string {
					for _, path := range files(t, dir) {
						if strings.HasSuffix(path, suffix) {
							return path
						}
					}
					t.Fatalf("no file %s", suffix)
					return ""
				})
				_, err := readPart(b, "monday", "data", ids)
				wantKind(t, err, Damaged)
				k, err := b.OpenBackup(t.Context(), "monday", ids)
				must(t, err)
				_, err = k.Digests(t.Context())
				wantKind(t, err, Damaged)
			})
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	raw[at] ^= 1
	must(t, os.WriteFile(path, raw, 0o600))
}

func TestWrongIdentity(t *testing.T) {
	b, _ := place(t)
	recipient, _ := keys(t)
	_, other := keys(t)
	w := create(t, b, "monday", recipient)
	fill(t, w, "data", noise(10))
	commit(t, w, noon)
	for name, ids := range map[string]Identities{"another": other, "none": {}} {
		_, err := b.OpenBackup(t.Context(), "monday", ids)
		if wantKind(t, err, WrongIdentity); name == "another" && !strings.Contains(err.Error(), Fingerprint(recipient)) {
			t.Errorf("%v does not name the recipients", err)
		}
	}
	// A manifest that lies about its recipients.
	k := &Backup{b: b, ids: other}
	k.Manifest, _ = b.manifest(t.Context(), "monday")
	_, err := k.Part(t.Context(), "data")
	wantKind(t, err, WrongIdentity)
}

func TestIdentitiesDoNotShow(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	must(t, err)
	ids, err := ParseIdentities(strings.NewReader(id.String()))
	must(t, err)
	_, malformed := ParseIdentities(strings.NewReader(id.String()[:40]))
	for _, text := range []string{ids.String(), ids.GoString(), malformed.Error()} {
		if strings.Contains(text, "AGE-SECRET-KEY-1") {
			t.Errorf("%s shows an identity", text)
		}
	}
	if _, err := ParseRecipients([]string{id.String()}); err == nil || strings.Contains(err.Error(), id.String()) {
		t.Errorf("an identity given as a recipient: %v", err)
	}
}

func TestAPostQuantumRecipient(t *testing.T) {
	id, err := age.GenerateHybridIdentity()
	must(t, err)
	ids, err := ParseIdentities(strings.NewReader(id.String()))
	must(t, err)
	b, _ := place(t)
	w := create(t, b, "monday", id.Recipient().String())
	fill(t, w, "data", []byte("x"))
	commit(t, w, noon)
	if got, err := readPart(b, "monday", "data", ids); err != nil || string(got) != "x" {
		t.Errorf("read %q: %v", got, err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	b, _ := place(t)
	w := create(t, b, "monday")
	if _, err := w.Part(t.Context(), PartKeyring); err == nil {
		t.Error("a keyring is written in the clear")
	}
	if _, err := w.Commit(t.Context(), manifestOf(noon)); err == nil {
		t.Error("a backup without parts is committed")
	}
	fill(t, w, "data", nil)
	if _, err := w.Part(t.Context(), "data"); err == nil {
		t.Error("a part is written twice")
	}
	p, err := w.Part(t.Context(), "rows")
	must(t, err)
	if _, err := w.Part(t.Context(), "more"); err == nil {
		t.Error("two parts are open")
	}
	if _, err := w.Commit(t.Context(), manifestOf(noon)); err == nil {
		t.Error("a backup is committed while a part is open")
	}
	p.Abort()
	if _, err := p.Write([]byte("x")); err == nil {
		t.Error("a part that was given up takes data")
	}
	commit(t, w, noon)
	_, err = b.Create(t.Context(), NewBackup{Name: "monday", UID: "u1", Now: noon})
	wantKind(t, err, Exists)
}

// Two attempts of one backup, one of which was taken for dead: the first that ends is the backup, whole.
func TestTwoAttempts(t *testing.T) {
	b, _ := place(t)
	first, second := create(t, b, "monday"), create(t, b, "monday")
	fill(t, first, "data", []byte("first"))
	fill(t, second, "data", []byte("second"))
	commit(t, second, noon)
	_, err := first.Commit(t.Context(), manifestOf(noon))
	wantKind(t, err, Exists)
	must(t, first.Abort(t.Context()))
	if got, err := readPart(b, "monday", "data", Identities{}); err != nil || string(got) != "second" {
		t.Errorf("read %q: %v", got, err)
	}
}

func TestOwner(t *testing.T) {
	b, _ := place(t)
	_, err := b.Owner(t.Context())
	wantKind(t, err, NotFound)
	must(t, b.Claim(t.Context(), "u1", noon))
	must(t, b.Claim(t.Context(), "u1", noon.Add(time.Hour)))
	err = b.Claim(t.Context(), "u2", noon)
	wantKind(t, err, Foreign)
	_, err = b.Create(t.Context(), NewBackup{Name: "monday", UID: "u2", Now: noon})
	wantKind(t, err, Foreign)
	must(t, b.TakeOver(t.Context(), "u2", noon))
	if o, err := b.Owner(t.Context()); err != nil || o.UID != "u2" {
		t.Errorf("owner %v: %v", o, err)
	}
	wantKind(t, b.Claim(t.Context(), "u1", noon), Foreign)
}

func TestListAndDelete(t *testing.T) {
	b, dir := place(t)
	if list, err := b.List(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("an empty place: %v, %v", list, err)
	}
	for i, name := range []string{"monday", "tuesday", "broken"} {
		w := create(t, b, name)
		fill(t, w, "data", noise(10))
		commit(t, w, noon.Add(time.Duration(i)*time.Hour))
	}
	unfinished := create(t, b, "unfinished")
	fill(t, unfinished, "data", noise(10))
	must(t, os.WriteFile(filepath.Join(dir, b.key("backups", "broken", manifestName)), []byte("{"), 0o600))
	list, err := b.List(t.Context())
	must(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "tuesday monday broken" {
		t.Errorf("list %s", got)
	}
	wantKind(t, list[2].Err, Damaged)
	must(t, b.Delete(t.Context(), "monday"))
	must(t, b.Delete(t.Context(), "monday"))
	_, err = b.OpenBackup(t.Context(), "monday", Identities{})
	wantKind(t, err, NotFound)
	if _, err := os.Stat(filepath.Join(dir, b.key("backups", "monday"))); !os.IsNotExist(err) {
		t.Errorf("something is left: %v", err)
	}
}

// A manifest that was copied from another backup, or another group, is refused.
func TestForeignManifest(t *testing.T) {
	b, dir := place(t)
	w := create(t, b, "monday")
	fill(t, w, "data", noise(10))
	commit(t, w, noon)
	from := filepath.Join(dir, b.key("backups", "monday"))
	must(t, os.CopyFS(filepath.Join(dir, b.key("backups", "copy")), os.DirFS(from)))
	_, err := b.OpenBackup(t.Context(), "copy", Identities{})
	wantKind(t, err, Damaged)
	other := open(t, Config{Folder: dir, Namespace: "shop", Group: "carts", Prefix: "a/b"})
	must(t, os.CopyFS(filepath.Join(dir, other.key("backups", "monday")), os.DirFS(from)))
	_, err = other.OpenBackup(t.Context(), "monday", Identities{})
	wantKind(t, err, Damaged)
}

// What killed attempts leave is removed, what may still run is not, and no backup loses anything.
func TestSweep(t *testing.T) {
	b, dir := place(t)
	w := create(t, b, "monday")
	dead := create(t, b, "monday")
	fill(t, dead, "data", noise(300<<10))
	fill(t, w, "data", noise(300<<10))
	commit(t, w, noon)
	alone := create(t, b, "tuesday")
	fill(t, alone, "data", noise(10))
	killed, err := alone.Part(t.Context(), "rows")
	must(t, err)
	_, err = killed.Write(noise(600 << 10))
	must(t, err)
	defer killed.Abort()
	// What was written goes to the storage beside the test. It lies still once all but the last piece is there: so it does after a kill.
	for end := time.Now().Add(10 * time.Second); !slices.ContainsFunc(files(t, filepath.Join(dir, b.key("backups", "tuesday"))), func(path string) bool {
		return strings.Contains(path, "rows.00005")
	}); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the pieces of the killed attempt did not come")
		}
	}
	if s, err := b.Sweep(t.Context(), time.Now().Add(-time.Hour)); err != nil || s.Objects != 0 {
		t.Fatalf("swept %+v of attempts that may run: %v", s, err)
	}
	unknown := create(t, b, "newer")
	fill(t, unknown, "data", noise(10))
	commit(t, unknown, noon)
	path := filepath.Join(dir, b.key("backups", "newer", manifestName))
	must(t, os.WriteFile(path, []byte(`{"version": 99}`), 0o600))

	s, err := b.Sweep(t.Context(), time.Now().Add(time.Hour))
	if err != nil || s.Objects < 6 {
		t.Fatalf("swept %+v: %v", s, err)
	}
	var left []string
	for _, path := range files(t, filepath.Join(dir, b.key("backups"))) {
		left = append(left, path)
		if strings.Contains(path, "tuesday") || strings.Contains(path, dead.attempt) {
			t.Errorf("%s is left", path)
		}
	}
	if len(left) != 4+1+1+1 {
		t.Errorf("left are %v", left)
	}
	if _, err := readPart(b, "monday", "data", Identities{}); err != nil {
		t.Error(err)
	}
	_, err = b.OpenBackup(t.Context(), "newer", Identities{})
	wantKind(t, err, TooNew)
}

func TestNoVolume(t *testing.T) {
	_, err := Open(t.Context(), Config{Folder: filepath.Join(t.TempDir(), "missing"), Namespace: "shop", Group: "orders"})
	wantKind(t, err, NoSuchBucket)
}

func TestConfig(t *testing.T) {
	good := Config{Folder: "/f", Namespace: "shop", Group: "orders"}
	for name, change := range map[string]func(*Config){
		"no place":     func(c *Config) { c.Folder = "" },
		"two places":   func(c *Config) { c.S3 = &S3{} },
		"group up":     func(c *Config) { c.Group = ".." },
		"namespace up": func(c *Config) { c.Namespace = "a/b" },
		"prefix up":    func(c *Config) { c.Prefix = "a/../b" },
		"prefix root":  func(c *Config) { c.Prefix = "/a" },
	} {
		c := good
		if change(&c); c.check() == nil {
			t.Errorf("%s is admitted", name)
		}
	}
	if err := good.check(); err != nil {
		t.Error(err)
	}
}

// A reader and a writer of much hold little.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 256 MiB")
	}
	b, _ := place(t)
	w := create(t, b, "monday")
	w.objectBytes = objectBytes
	p, err := w.Part(t.Context(), "data")
	must(t, err)
	source := mathrand.New(mathrand.NewPCG(1, 2))
	block, most := make([]byte, 1<<20), uint64(0)
	for i := range 256 {
		for j := 0; j < len(block); j += 8 {
			block[j] = byte(source.Uint32())
		}
		_, err := p.Write(block)
		must(t, err)
		if i%64 == 63 {
			most = max(most, heap())
		}
	}
	must(t, p.Close())
	commit(t, w, noon)
	k, err := b.OpenBackup(t.Context(), "monday", Identities{})
	must(t, err)
	r, err := k.Part(t.Context(), "data")
	must(t, err)
	n, err := io.Copy(io.Discard, r)
	most = max(most, heap())
	must(t, errors.Join(err, r.Close()))
	if n != 256<<20 || most > 160<<20 {
		t.Errorf("%d bytes held for %d", most, n)
	}
	t.Logf("%d MiB held for %d MiB", most>>20, n>>20)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
