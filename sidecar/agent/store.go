// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// Names of the files in the state directory.
const (
	// StatementFile is the newest statement known.
	StatementFile = "statement.jws"
	// copyFile is a second copy: the epoch must survive a damaged file.
	copyFile = "statement.copy.jws"
	// heardFile exists once the operator itself answered this site.
	heardFile = "operator-heard"
	// openingFile names the mysqld in which writes are being opened, or is empty.
	openingFile = "opening"
	// someMysqld is what an earlier release wrote into it if it did not know which mysqld; an empty line means the same.
	someMysqld = "?"
	tempSuffix = ".tmp"
)

// ErrDamaged is returned if no copy of the statement can be read although there was one.
var ErrDamaged = errors.New("the statement kept on the data volume is damaged")

// Store keeps the newest statement on the data volume (I5). Save writes both copies before it returns, one after the other, so
// either of them alone holds everything that was ever acknowledged, and a crash leaves one of them whole. Save overwrites copies
// in place if they exist (slot.go): a full volume must not keep a site from acknowledging an epoch, because as long as it does,
// the site counts among those that may vouch for the old active site.
type Store struct {
	Dir string
}

// Save writes what has to survive a crash; once it returns nil, that will.
func (s Store) Save(k fence.Kept) error {
	for _, name := range s.worstFirst() {
		if err := s.overwrite(name, k.Signed); err != nil {
			return fmt.Errorf("keep statement: %w", err)
		}
	}
	if !k.Heard {
		return nil
	}
	if _, err := os.Stat(filepath.Join(s.Dir, heardFile)); err == nil {
		return nil // replacing it would take room
	}
	// This comes last: it says that the statement beside it is not older than what the operator said.
	if err := s.write(heardFile, nil); err != nil {
		return fmt.Errorf("keep that the operator was heard: %w", err)
	}
	return nil
}

// write replaces a file so that after a crash it has either its old content or the new one.
func (s Store) write(name string, content []byte) (err error) {
	path := filepath.Join(s.Dir, name)
	temp := path + tempSuffix
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(temp) // it must not keep a full volume full
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(s.Dir)
}

// MarkOpening writes the file in place: an opening waits for it, so it costs one small fsync. It syncs the directory only
// if the file is new.
func (s Store) MarkOpening(process string) (err error) {
	path := filepath.Join(s.Dir, openingFile)
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(process + "\n")
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if missing == nil {
		return err
	}
	return errors.Join(err, syncDir(s.Dir))
}

// UnmarkOpening empties the file, without a sync: a mark that comes back after a power loss names a mysqld that is lost too.
func (s Store) UnmarkOpening() error {
	err := os.Truncate(filepath.Join(s.Dir, openingFile), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// MarkedOpening returns the mysqld in which an earlier run was opening writes, if one is marked.
func (s Store) MarkedOpening() (process string, marked bool, err error) {
	raw, err := os.ReadFile(filepath.Join(s.Dir, openingFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look for %s: %w", openingFile, err)
	}
	process, whole := strings.CutSuffix(string(raw), "\n")
	if process == someMysqld || !whole {
		// Half of a name would look like the name of a mysqld that has ended.
		return "", len(raw) > 0, nil
	}
	return process, true, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load returns what is kept, and a warning if one of the copies is damaged. If there are copies but none is readable,
// it refuses: a sidecar that forgets its epoch could vouch for, or open under, an older one.
func (s Store) Load(verify func(wire.Signed) (wire.Statement, error)) (kept fence.Kept, warning, err error) {
	var found int
	for _, name := range []string{StatementFile, copyFile} {
		k, err := s.read(name, verify)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			warning = errors.Join(warning, fmt.Errorf("read %s: %w", name, err))
		case k.Statement.Epoch > kept.Statement.Epoch:
			kept = k
		}
		found++
	}
	if found > 0 && kept.Statement.Epoch == 0 {
		return fence.Kept{}, nil, errors.Join(ErrDamaged, warning)
	}
	_, err = os.Stat(filepath.Join(s.Dir, heardFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fence.Kept{}, nil, fmt.Errorf("look for %s: %w", heardFile, err)
	}
	kept.Heard = err == nil && kept.Statement.Epoch > 0
	return kept, warning, nil
}

func (s Store) read(name string, verify func(wire.Signed) (wire.Statement, error)) (fence.Kept, error) {
	raw, err := os.ReadFile(filepath.Join(s.Dir, name))
	if err != nil {
		return fence.Kept{}, err
	}
	signed, err := unslot(raw)
	if err != nil {
		return fence.Kept{}, err
	}
	if statement, err := verify(signed); err == nil {
		return fence.Kept{Signed: signed, Statement: statement, Verified: true}, nil
	}
	// Another key signs by now. The signature was checked before this was written, so the epoch still binds.
	statement, err := unverified(signed)
	if err != nil {
		return fence.Kept{}, err
	}
	return fence.Kept{Signed: signed, Statement: statement}, nil
}

// unverified decodes a statement without checking its signature.
func unverified(signed wire.Signed) (wire.Statement, error) {
	parts := strings.Split(string(signed), ".")
	if len(parts) != 3 || parts[2] == "" {
		return wire.Statement{}, errors.New("not a signed statement")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return wire.Statement{}, fmt.Errorf("decode statement: %w", err)
	}
	var s wire.Statement
	if err := json.Unmarshal(body, &s); err != nil {
		return wire.Statement{}, fmt.Errorf("decode statement: %w", err)
	}
	if s.Epoch < 1 || s.ActiveSite == "" {
		return wire.Statement{}, wire.ErrStatement
	}
	return s, nil
}
