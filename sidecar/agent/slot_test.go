// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// TestTheOnlyWholeCopyIsWrittenLastI5: were it torn first, nothing would be left.
func TestTheOnlyWholeCopyIsWrittenLastI5(t *testing.T) {
	for _, bad := range []string{StatementFile, copyFile} {
		s := Store{Dir: t.TempDir()}
		save(t, s, keptAt(t, 6))
		torn := slices.Concat(slot(keptAt(t, 7).Signed)[:150], slot(keptAt(t, 6).Signed)[150:])
		if err := os.WriteFile(filepath.Join(s.Dir, bad), torn, 0o600); err != nil {
			t.Fatal(err)
		}
		if first := s.worstFirst()[0]; first != bad {
			t.Errorf("I5: %s is torn, and %s is overwritten first", bad, first)
		}
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
	for epoch, names := range map[int64]int{6: 2000, 7: 1} {
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
