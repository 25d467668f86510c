// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// recordFile is the name of the record in the state directory.
const recordFile = "keyring.json"

// ErrRecord says that the record is damaged: then it is not known which keyring the data needs.
var ErrRecord = errors.New("the record of the keyring on the data volume is damaged")

// Record is what the data volume remembers of the keyring that its data was written with: digests, and nothing of the keys.
type Record struct {
	// Needs is the digest of the keyring when it was last seen; empty if there never was one.
	Needs string `json:"needs,omitempty"`
	// Escrowed is the digest that the operator last confirmed as stored, Version the number of that version.
	Escrowed string `json:"escrowed,omitempty"`
	Version  int64  `json:"version,omitempty"`
	// Made is true if the data directory was made with a keyring. Otherwise it is older than its encryption, and may hold
	// commits that were acknowledged before there was any.
	Made bool `json:"made,omitempty"`
	// Round is the operator's round of work in which the data directory last began with a fresh keyring; empty if there was none.
	Round string `json:"round,omitempty"`
	// Covering is true from when the data dictionary was seen unencrypted until its encryption is behind a checkpoint: a server
	// cloned in between may not start.
	Covering bool `json:"covering,omitempty"`
}

// Store keeps the record in the state directory on the data volume.
type Store struct{ Dir string }

// Load returns the record; an empty one if there is none.
func (s Store) Load() (Record, error) {
	raw, err := os.ReadFile(filepath.Join(s.Dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("read record of the keyring: %w", err)
	}
	var r Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return Record{}, fmt.Errorf("%w: %s", ErrRecord, recordFile)
	}
	return r, nil
}

// Save replaces the record; once it returns nil, the record survives a crash.
func (s Store) Save(r Record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record of the keyring: %w", err)
	}
	if err := s.write(append(raw, '\n')); err != nil {
		return fmt.Errorf("keep record of the keyring: %w", err)
	}
	return nil
}

func (s Store) write(content []byte) error {
	path := filepath.Join(s.Dir, recordFile)
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	d, err := os.Open(s.Dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Remove removes the record, because the data that it described is gone.
func (s Store) Remove() error {
	if err := os.Remove(filepath.Join(s.Dir, recordFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of the keyring: %w", err)
	}
	return nil
}
