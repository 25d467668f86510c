// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// keptAt is what is kept under an epoch that names site b.
func keptAt(t *testing.T, epoch int64) fence.Kept {
	t.Helper()
	s := told(epoch, "b")
	return fence.Kept{Signed: sign(t, authority, s), Statement: s, Verified: true}
}

func save(t *testing.T, s Store, k fence.Kept) {
	t.Helper()
	if err := s.Save(k); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, s Store) (kept fence.Kept, warning error) {
	t.Helper()
	kept, warning, err := s.Load(verify)
	if err != nil {
		t.Fatal(err)
	}
	return kept, warning
}

func TestTheStoreReturnsWhatItKeptI5(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	if kept, warning := load(t, s); kept.Statement.Epoch != 0 || warning != nil {
		t.Errorf("new volume: %+v, %v", kept, warning)
	}
	save(t, s, keptAt(t, 5))
	want := keptAt(t, 5)
	got, warning := load(t, s)
	if diff := cmp.Diff(want, got); diff != "" || warning != nil {
		t.Errorf("%v (-want +got):\n%s", warning, diff)
	}
	want = keptAt(t, 6)
	want.Heard = true
	save(t, s, want)
	got, _ = load(t, s)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// I5: whatever happened to the files, the epoch never goes down: what was kept is found, or the sidecar refuses.
func TestDamagedFilesNeverLowerTheEpochI5(t *testing.T) {
	write := func(name, content string) func(*testing.T, Store) {
		return func(t *testing.T, s Store) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(*testing.T, Store) {
		return func(t *testing.T, s Store) {
			t.Helper()
			if err := os.Remove(filepath.Join(s.Dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	torn := func(name string) func(*testing.T, Store) {
		return func(t *testing.T, s Store) {
			t.Helper()
			if err := os.Truncate(filepath.Join(s.Dir, name), 60); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		damage []func(*testing.T, Store)
		refuse bool
		warn   bool
		epoch  int64
	}{
		"a temporary file is left":  {damage: []func(*testing.T, Store){write(StatementFile+".tmp", "half a st")}, epoch: 6},
		"the first copy is torn":    {damage: []func(*testing.T, Store){torn(StatementFile)}, warn: true, epoch: 6},
		"the second copy is torn":   {damage: []func(*testing.T, Store){torn(copyFile)}, warn: true, epoch: 6},
		"the first copy is empty":   {damage: []func(*testing.T, Store){write(StatementFile, "")}, warn: true, epoch: 6},
		"the first copy is removed": {damage: []func(*testing.T, Store){remove(StatementFile)}, epoch: 6},
		"the second copy is old": {damage: []func(*testing.T, Store){
			func(t *testing.T, s Store) { t.Helper(); write(copyFile, string(keptAt(t, 5).Signed))(t, s) },
		}, epoch: 6},
		"the first copy is old": {damage: []func(*testing.T, Store){
			func(t *testing.T, s Store) { t.Helper(); write(StatementFile, string(keptAt(t, 5).Signed))(t, s) },
		}, epoch: 6},
		"both copies are torn":                {damage: []func(*testing.T, Store){torn(StatementFile), torn(copyFile)}, refuse: true},
		"one is torn and the other removed":   {damage: []func(*testing.T, Store){torn(StatementFile), remove(copyFile)}, refuse: true},
		"both hold something else altogether": {damage: []func(*testing.T, Store){write(StatementFile, "a.b.c"), write(copyFile, "e30.e30.e30")}, refuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := Store{Dir: t.TempDir()}
			save(t, s, keptAt(t, 6))
			for _, damage := range tc.damage {
				damage(t, s)
			}
			kept, warning, err := s.Load(verify)
			if tc.refuse {
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("got %+v, %v", kept, err)
				}
				return
			}
			if err != nil || kept.Statement.Epoch != tc.epoch || (warning != nil) != tc.warn {
				t.Errorf("epoch %d, warning %v, error %v", kept.Statement.Epoch, warning, err)
			}
			save(t, s, keptAt(t, 7))
			if kept, warning := load(t, s); kept.Statement.Epoch != 7 || warning != nil {
				t.Errorf("after the repair: %d, %v", kept.Statement.Epoch, warning)
			}
		})
	}
}

// I3: that the operator was heard says something of the statement beside it only.
func TestHeardIsNothingWithoutAStatementI3(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	k := keptAt(t, 6)
	k.Heard = true
	save(t, s, k)
	for _, name := range []string{StatementFile, copyFile} {
		if err := os.Remove(filepath.Join(s.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if kept, warning := load(t, s); kept.Heard || kept.Statement.Epoch != 0 || warning != nil {
		t.Errorf("%+v, %v", kept, warning)
	}
}

// TestWhatIsNoStatementIsDamagedI5: it must not pass for one, although an epoch can be read in it.
func TestWhatIsNoStatementIsDamagedI5(t *testing.T) {
	const padded = `{"activeSite":"b","epoch":9}  ` // without a rest in base64
	encode := base64.RawURLEncoding.EncodeToString
	for name, content := range map[string]string{
		"it names no site":  "e30." + encode([]byte(`{"namespace":"shop","group":"orders","epoch":9}`)) + ".e30",
		"it has no epoch":   "e30." + encode([]byte(`{"activeSite":"b"}`)) + ".e30",
		"nobody signed it":  "e30." + encode([]byte(padded)) + ".",
		"it has no end":     "e30." + encode([]byte(padded)),
		"it is not encoded": "e30." + encode([]byte(padded)) + "!.e30",
		"it is another":     "e30." + encode([]byte(`{"activeSite":"b","epoch":9,"hold":7}`)) + ".e30",
		"it is half a slot": "e30." + encode([]byte(padded)) + ".e30\nchecksum",
	} {
		s := Store{Dir: t.TempDir()}
		save(t, s, keptAt(t, 6))
		if err := os.WriteFile(filepath.Join(s.Dir, StatementFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		kept, warning := load(t, s)
		if kept.Statement.Epoch != 6 || kept.Statement.ActiveSite != "b" || warning == nil {
			t.Errorf("I5: %s: %+v, %v", name, kept, warning)
		}
		if torn := name == "it is half a slot"; torn != errors.Is(warning, errTorn) {
			t.Errorf("%s: %v", name, warning)
		}
	}
}

// I5: a replaced key does not make the site forget its epoch, and nobody is told a statement that cannot be verified.
func TestAReplacedKeyKeepsTheEpochI5(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	k := keptAt(t, 6)
	k.Signed = sign(t, stranger, k.Statement)
	save(t, s, k)
	if kept, _ := load(t, s); kept.Verified || kept.Statement.Epoch != 6 || kept.Statement.ActiveSite != "b" {
		t.Errorf("got %+v", kept)
	}
}

func TestAVolumeThatCannotBeWrittenSaysSo(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "missing")}
	if err := s.Save(keptAt(t, 6)); err == nil {
		t.Error("kept nowhere")
	}
}

// TestWhatTheVolumeRefusesIsSaidI1I5: what may not have come to the disk is not durable, and neither is a new file of which the
// directory may not know.
func TestWhatTheVolumeRefusesIsSaidI1I5(t *testing.T) {
	heard := keptAt(t, 6)
	heard.Heard = true
	link := func(target string) func(string) error {
		return func(path string) error { return os.Symlink(target, path) }
	}
	occupied := func(path string) error { return os.Mkdir(path, 0o700) }
	there := func(path string) error { return os.WriteFile(path, nil, 0o600) }
	blind := func(path string) error { return os.Chmod(filepath.Dir(path), 0o300) }
	saved := func(then func(string) error) func(string) error {
		return func(path string) error { return errors.Join(Store{Dir: filepath.Dir(path)}.Save(heard), then(path)) }
	}
	mark := func(s Store) error { return s.MarkOpening("7/9") }
	write := func(s Store) error { return s.write("file", nil) }
	loads := func(s Store) error { _, _, err := s.Load(verify); return err }
	for name, tc := range map[string]struct {
		file   string
		before func(path string) error
		do     func(Store) error
		want   error
	}{
		"a mark on a full volume":              {openingFile, link("/dev/full"), mark, unix.ENOSPC},
		"a mark that is not synced":            {openingFile, link("/dev/null"), mark, unix.EINVAL},
		"a mark where nothing can be":          {openingFile, occupied, mark, unix.EISDIR},
		"a new mark in no known directory":     {openingFile, blind, mark, os.ErrPermission},
		"a mark whose file was there":          {openingFile, func(path string) error { return errors.Join(there(path), blind(path)) }, mark, nil},
		"a mark that stays":                    {openingFile, occupied, Store.UnmarkOpening, unix.EISDIR},
		"no mark to take away":                 {openingFile, func(string) error { return nil }, Store.UnmarkOpening, nil},
		"a file in no known directory":         {"file", blind, write, os.ErrPermission},
		"a file where a directory is":          {"file", occupied, write, unix.EEXIST},
		"heard, on a full volume":              {heardFile + tempSuffix, link("/dev/full"), func(s Store) error { return s.Save(heard) }, unix.ENOSPC},
		"heard, and nobody can tell":           {heardFile, link(heardFile), loads, unix.ELOOP},
		"heard, and the file was there before": {heardFile + tempSuffix, saved(link("/dev/full")), func(s Store) error { return s.Save(heard) }, nil},
	} {
		s := Store{Dir: t.TempDir()}
		if err := tc.before(filepath.Join(s.Dir, tc.file)); err != nil {
			t.Fatal(err)
		}
		var err error
		unprivileged(t, func() { err = tc.do(s) })
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if err := os.Chmod(s.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoadDoesNotTrustAnUnreadableFile(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	// A directory in its place: it can be seen, but not be read.
	if err := os.Mkdir(filepath.Join(s.Dir, StatementFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if kept, _, err := s.Load(func(wire.Signed) (wire.Statement, error) { return told(1, "a"), nil }); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %+v, %v", kept, err)
	}
}

func TestAVolumeKeepsItsName(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	first, err := s.VolumeID()
	if err != nil || first == "" {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := s.VolumeID(); err != nil || again != first {
		t.Errorf("%q, then %q (%v)", first, again, err)
	}
	if other, err := (Store{Dir: t.TempDir()}).VolumeID(); err != nil || other == first {
		t.Errorf("another volume has the name %q, %v", other, err)
	}
	// A new name would have the site's data cloned over.
	if err := os.WriteFile(filepath.Join(s.Dir, volumeIDFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := s.VolumeID(); !errors.Is(err, errVolumeID) {
		t.Errorf("%q, %v", id, err)
	}
	if id, err := (Store{Dir: filepath.Join(s.Dir, "nowhere")}).VolumeID(); err == nil {
		t.Errorf("%q although it was not kept", id)
	}
}
