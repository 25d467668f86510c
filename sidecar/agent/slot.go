// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/api/wire"
)

// A slot is a file of one fixed size: the statement, a line with its checksum, and blanks. It is overwritten in place, which takes
// no room on the volume. A statement that does not fit gets a longer file, which is written beside it and renamed. Earlier releases
// wrote the statement alone.

// slotSize is one block of the usual file systems: even on a full volume, a file of an older release can grow to it.
const slotSize = 4096

var errTorn = errors.New("the checksum does not fit")

// slot is the content of a slot; longer than slotSize if the statement does not fit.
func slot(signed wire.Signed) []byte {
	sum := sha256.Sum256([]byte(signed))
	text := string(signed) + "\n" + hex.EncodeToString(sum[:]) + "\n"
	return append([]byte(text), bytes.Repeat([]byte(" "), max(0, slotSize-len(text)))...)
}

// unslot returns the statement in a file. A torn slot is an error: parts of two statements could pass for a third one.
func unslot(raw []byte) (wire.Signed, error) {
	signed, rest, _ := strings.Cut(strings.TrimSpace(string(raw)), "\n")
	if rest == "" && len(raw) != slotSize {
		return wire.Signed(signed), nil
	}
	sum := sha256.Sum256([]byte(signed))
	if line, _, _ := strings.Cut(rest, "\n"); line != hex.EncodeToString(sum[:]) {
		return "", errTorn
	}
	return wire.Signed(signed), nil
}

// worstFirst are the names of the copies: first one that cannot be read, then the one with the lower epoch. If the write of the first
// is torn, only the last one holds all that was acknowledged. After a crash between the two writes one copy is older than the other,
// and it stays so until the next statement.
func (s Store) worstFirst() []string {
	names := []string{StatementFile, copyFile}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(s.epochIn(a), s.epochIn(b)) })
	return names
}

// epochIn is the epoch of the statement in a file, 0 if no statement can be read.
func (s Store) epochIn(name string) int64 {
	kept, _ := s.read(name, unverified)
	return kept.Statement.Epoch
}

// overwrite puts a statement into one of the two files. The other one must be whole, or worth no more than this one.
func (s Store) overwrite(name string, signed wire.Signed) error {
	content := slot(signed)
	raw, err := os.ReadFile(filepath.Join(s.Dir, name))
	if len(raw) == slotSize && len(content) == slotSize {
		return s.inPlace(name, content)
	}
	full := s.write(name, content)
	if !noRoom(full) || err != nil || len(content) != slotSize || len(raw) > slotSize {
		return full
	}
	// A file of an older release, and no room for another one. First it grows to a slot with its own statement: that takes no room
	// within its block, and keeps the statement even if the write is torn. A file that cannot be read is worth nothing.
	_ = os.Remove(filepath.Join(s.Dir, name+tempSuffix))
	old, _ := unslot(raw)
	for _, step := range [][]byte{slot(old), content} {
		if err := s.inPlace(name, step); err != nil {
			return errors.Join(full, err)
		}
	}
	return nil
}

// noRoom is true if a volume, or the part of it that may be used, is full.
func noRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// inPlace overwrites an existing file. After a crash, any part of the content may be in it.
func (s Store) inPlace(name string, content []byte) (err error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, name), os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt(content, 0); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Sync()
}
