// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// TestATornWriteLeavesOneCopyI5: a crash within either of the two writes leaves what was acknowledged, or what was being written,
// whatever part of it reached the disk, and nothing in between.
func TestATornWriteLeavesOneCopyI5(t *testing.T) {
	long := keptAt(t, 1234567)
	long.Statement.Windows = []wire.Window{{Site: strings.Repeat("long", 100), Purpose: wire.WindowClone}}
	long.Signed = sign(t, authority, long.Statement)
	short := keptAt(t, 1234566)
	for _, pair := range [][2]fence.Kept{{short, long}, {keptAt(t, 6), keptAt(t, 7)}} {
		before, after := slot(pair[0].Signed), slot(pair[1].Signed)
		if len(before) != slotSize || len(after) != slotSize {
			t.Fatalf("%d and %d bytes", len(before), len(after))
		}
		for cut := 0; cut <= slotSize; cut += 64 {
			for how, torn := range map[string][]byte{
				"the begin is new": slices.Concat(after[:cut], before[cut:]), "the end is new": slices.Concat(before[:cut], after[cut:]),
			} {
				for name, copies := range map[string][2][]byte{"the first": {torn, before}, "the second": {after, torn}} {
					s := Store{Dir: t.TempDir()}
					for i, file := range []string{StatementFile, copyFile} {
						if err := os.WriteFile(filepath.Join(s.Dir, file), copies[i], 0o600); err != nil {
							t.Fatal(err)
						}
					}
					kept, _, err := s.Load(verify)
					least := pair[0]
					if name == "the second" {
						least = pair[1]
					}
					if err != nil || kept.Statement.Epoch < least.Statement.Epoch || kept.Signed != pair[0].Signed && kept.Signed != pair[1].Signed {
						t.Fatalf("%s copy, %s up to %d: epoch %d, %v", name, how, cut, kept.Statement.Epoch, err)
					}
				}
			}
		}
	}
}

// TestTheBestCopyIsWrittenLastI5: were it torn first, nothing would be left that is as new as what was acknowledged. One copy is older
// after a crash between the two writes: the next run acknowledges what the other one holds.
func TestTheBestCopyIsWrittenLastI5(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"torn": func(path string) error {
			return os.WriteFile(path, slices.Concat(slot(keptAt(t, 7).Signed)[:150], slot(keptAt(t, 6).Signed)[150:]), 0o600)
		},
		"gone":  os.Remove,
		"older": func(path string) error { return os.WriteFile(path, slot(keptAt(t, 5).Signed), 0o600) },
	} {
		for _, bad := range []string{StatementFile, copyFile} {
			s := Store{Dir: t.TempDir()}
			save(t, s, keptAt(t, 6))
			if err := damage(filepath.Join(s.Dir, bad)); err != nil {
				t.Fatal(err)
			}
			if first := s.worstFirst()[0]; first != bad {
				t.Errorf("I5: %s is %s, and %s is overwritten first", bad, name, first)
			}
		}
	}
}

// TestHalfASlotIsNoStatementI5, however long the file is.
func TestHalfASlotIsNoStatementI5(t *testing.T) {
	signed := keptAt(t, 6).Signed
	other := sha256.Sum256([]byte(keptAt(t, 7).Signed))
	for name, tc := range map[string]struct {
		raw  string
		want error
	}{
		"a slot":                    {string(slot(signed)), nil},
		"of an older release":       {string(signed) + "\n", nil},
		"another checksum":          {string(signed) + "\n" + hex.EncodeToString(other[:]) + "\n", errTorn},
		"part of a checksum":        {string(slot(signed)[:len(signed)+9]), errTorn},
		"a slot without a checksum": {string(signed) + strings.Repeat(" ", slotSize-len(signed)), errTorn},
	} {
		if got, err := unslot([]byte(tc.raw)); !errors.Is(err, tc.want) || (err == nil) != (got == signed) {
			t.Errorf("I5: %s: %q, %v", name, got, err)
		}
	}
}

// unprivileged does something for which the modes of files count, also if root runs the tests.
func unprivileged(t *testing.T, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		err := unix.Capget(&header, &caps[0])
		caps[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
		if err = errors.Join(err, unix.Capset(&header, &caps[0])); err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestAFileHoldsTheOldStatementOrTheNewOneI5: what the volume refuses is an error, and leaves the file as it was.
func TestAFileHoldsTheOldStatementOrTheNewOneI5(t *testing.T) {
	long := told(7, strings.Repeat("b", slotSize))
	fits, tooLong := keptAt(t, 7).Signed, sign(t, authority, long)
	older, used, longer := []byte(keptAt(t, 6).Signed+"\n"), slot(keptAt(t, 6).Signed), slot(tooLong)
	const full, unsynced, occupied = "/dev/full", "/dev/null", "."
	for name, tc := range map[string]struct {
		before []byte
		mode   os.FileMode
		// temp is where another file would be written to.
		temp   string
		signed wire.Signed
		want   error
	}{
		"a new volume":                       {nil, 0, "", fits, nil},
		"a new volume that is full":          {nil, 0, full, fits, unix.ENOSPC},
		"a new volume that does not sync":    {nil, 0, unsynced, fits, unix.EINVAL},
		"a slot":                             {used, 0o600, "", fits, nil},
		"a slot takes no other file":         {used, 0o600, occupied, fits, nil},
		"a slot is too small":                {used, 0o600, full, tooLong, unix.ENOSPC},
		"a slot is too small, there is room": {used, 0o600, "", tooLong, nil},
		"longer than a slot":                 {longer, 0o600, "", fits, nil},
		"longer than a slot, no room":        {longer, 0o600, full, fits, unix.ENOSPC},
		"longer than a slot, other trouble":  {longer, 0o600, occupied, fits, unix.EISDIR},
		"of an older release":                {older, 0o600, "", fits, nil},
		"older, no room":                     {older, 0o600, full, fits, nil},
		"older, no room, too long":           {older, 0o600, full, tooLong, unix.ENOSPC},
		"older, other trouble":               {older, 0o600, occupied, fits, unix.EISDIR},
		"older, no room, cannot be written":  {older, 0o400, full, fits, os.ErrPermission},
		"older, no room, cannot be read":     {older, 0o200, full, fits, unix.ENOSPC},
	} {
		s := Store{Dir: t.TempDir()}
		path := filepath.Join(s.Dir, StatementFile)
		var err error
		if tc.before != nil {
			err = os.WriteFile(path, tc.before, tc.mode)
		}
		switch tc.temp {
		case "":
		case occupied:
			err = errors.Join(err, os.Mkdir(path+tempSuffix, 0o700))
		default:
			err = errors.Join(err, os.Symlink(tc.temp, path+tempSuffix))
		}
		if err != nil {
			t.Fatal(err)
		}
		unprivileged(t, func() { err = s.overwrite(StatementFile, tc.signed) })
		want := tc.before
		if tc.want == nil {
			want = slot(tc.signed)
		}
		if got, _ := os.ReadFile(path); !errors.Is(err, tc.want) || !bytes.Equal(got, want) {
			t.Errorf("I5: %s: %v, want %v; it holds %.20q", name, err, tc.want, got)
		}
		if _, err := os.Lstat(path + tempSuffix); tc.temp == full && err == nil {
			t.Errorf("%s: what was tried keeps the volume full", name)
		}
	}
	if !noRoom(fmt.Errorf("write: %w", unix.EDQUOT)) {
		t.Error("I5: a quota that is used up leaves room")
	}
	s := Store{Dir: t.TempDir()}
	if err := os.Symlink(full, filepath.Join(s.Dir, StatementFile)); err != nil {
		t.Fatal(err)
	}
	if err := s.inPlace(StatementFile, used); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("I5: what was not written passes for written: %v", err)
	}
}

// TestWhatAnOlderReleaseWroteIsReadI5: the statement alone, with a line end; and it becomes a slot.
func TestWhatAnOlderReleaseWroteIsReadI5(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	for _, name := range []string{StatementFile, copyFile} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(keptAt(t, 6).Signed+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if kept, warning := load(t, s); kept.Statement.Epoch != 6 || !kept.Verified || warning != nil {
		t.Errorf("got %+v, %v", kept, warning)
	}
	save(t, s, keptAt(t, 7))
	if kept, warning := load(t, s); kept.Statement.Epoch != 7 || warning != nil {
		t.Errorf("got %+v, %v", kept, warning)
	}
	if info, err := os.Stat(filepath.Join(s.Dir, copyFile)); err != nil || info.Size() != slotSize {
		t.Errorf("got %v, %v", info, err)
	}
}

// TestAStatementThatDoesNotFitIsKeptI5, and one that fits again after it.
func TestAStatementThatDoesNotFitIsKeptI5(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	for i, names := range []int{1, 5000, 4500, 1} {
		epoch := int64(6 + i)
		big := told(epoch, strings.Repeat("b", names))
		k := fence.Kept{Signed: sign(t, authority, big), Statement: big, Verified: true}
		save(t, s, k)
		if kept, warning := load(t, s); kept.Signed != k.Signed || !kept.Verified || warning != nil {
			t.Errorf("%d: %+v, %v", epoch, kept.Statement, warning)
		}
	}
}

// TestAFullVolumeKeepsEpochsI5: on a real file system without a byte left the epoch is saved, so the site can acknowledge it. It needs
// the right to mount.
func TestAFullVolumeKeepsEpochsI5(t *testing.T) {
	for name, before := range map[string]func(*testing.T, Store){
		"used by this release": func(t *testing.T, s Store) {
			t.Helper()
			k := keptAt(t, 6)
			k.Heard = true
			save(t, s, k)
		},
		"used by an older release": func(t *testing.T, s Store) {
			t.Helper()
			for _, file := range []string{StatementFile, copyFile} {
				if err := os.WriteFile(filepath.Join(s.Dir, file), []byte(keptAt(t, 6).Signed+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(s.Dir, heardFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for kind, mount := range map[string]func(*testing.T, string) error{"tmpfs": mountTmpfs, "ext4": mountExt4} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := Store{Dir: t.TempDir()}
				if err := mount(t, s.Dir); err != nil {
					t.Skipf("mount: %v", err)
				}
				t.Cleanup(func() { _ = unix.Unmount(s.Dir, 0) })
				before(t, s)
				fill(t, s.Dir)
				for epoch := int64(7); epoch < 12; epoch++ {
					k := keptAt(t, epoch)
					k.Heard = true
					save(t, s, k)
					if kept, warning := load(t, s); kept.Statement.Epoch != epoch || !kept.Heard || warning != nil {
						t.Fatalf("I5: epoch %d: %+v, %v", epoch, kept, warning)
					}
				}
			})
		}
	}
}

func mountTmpfs(_ *testing.T, dir string) error {
	return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k")
}

func mountExt4(t *testing.T, dir string) error {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, make([]byte, 2<<20), 0o600); err != nil {
		return err
	}
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", "-F", "-b", "4096", image).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "loop", image, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// fill leaves no room on a volume, not even for an empty file.
func fill(t *testing.T, dir string) {
	t.Helper()
	for i := range 100_000 {
		err := os.WriteFile(filepath.Join(dir, fmt.Sprint("filler", i)), make([]byte, 4096), 0o600)
		if errors.Is(err, unix.ENOSPC) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the volume does not get full")
}
