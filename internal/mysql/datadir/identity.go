// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Files below a data directory. mysqld makes clonedFile when a clone has brought everything, and removes it when its next
// start has put that in place; while the clone still copies, or if it ended early, the file does not exist (seen with 9.7).
const (
	identityFile = "auto.cnf"
	clonedFile   = "#clone/#status_fix"
)

// RenewIdentity gives a server whose data a clone has just replaced another server_uuid, before it starts with that data. The
// program that starts mysqld calls it, while no mysqld runs. Without such a clone it does nothing.
//
// MySQL keeps the old server_uuid, and its new data may lack transactions that the server wrote under it and lost in a failover.
// If clients wrote to it again, the server would give their numbers to other transactions, and a site that comes back with the
// lost ones would count as whole (I10).
//
// It may be called any number of times, and killed anywhere: the old identity holds until the new one is on the disk, and
// mysqld takes the cloned data only after that. A server that is renewed twice has the second identity, which is as good.
func RenewIdentity(datadir string) (renewed string, err error) {
	_, err = os.Lstat(filepath.Join(datadir, clonedFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for a clone: %w", err)
	}
	uuid := newUUID()
	path := filepath.Join(datadir, identityFile)
	if err := replaceDurably(path, "[auto]\nserver-uuid="+uuid+"\n"); err != nil {
		return "", fmt.Errorf("renew server_uuid after a clone: %w", err)
	}
	return uuid, nil
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// replaceDurably replaces a file, so that after a crash either the old or the new one exists.
func replaceDurably(path, text string) error {
	partial := path + ".new"
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
