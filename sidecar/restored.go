// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	// restoredSuffix is where `backup load` makes the data directory of this site.
	restoredSuffix = ".restored"
	// loadingSuffix is the mark beside a directory that is not whole yet; it is made before the directory is (backup/job).
	loadingSuffix = ".loading"
)

// errNotRestored keeps an empty database from being made where a backup belongs.
var errNotRestored = errors.New("a backup belongs onto this volume and is not there, or not all of it: the restore loads it, from the beginning; " +
	"to give the restore up, delete the group and its volume claims")

// errRestoreLost is in the termination message.
var errRestoreLost = errors.New(wire.MarkRestoreLost + ": its keyring was lost with an earlier pod, before it was in escrow; it is loaded again in a new pod")

// mayMake refuses an empty data directory where data might be lost, or where a backup belongs.
func mayMake(s settings, wiping bool) error {
	switch {
	case wiping && s.restore:
		return restoreAgain(s)
	case wiping:
		return nil
	}
	return mayInitialise(s)
}

// restoreAgain ends a start whose restored data went with its keyring. What comes in its place is the backup and nothing else, and only
// the next pod loads it: the operator makes one when it is told so.
func restoreAgain(s settings) error {
	if err := endWipe(s); err != nil {
		return err
	}
	return errRestoreLost
}

// takeRestored takes a data directory that was loaded from a backup as the site's own. It is true if it did. A site whose group is
// restored is never initialised empty, and neither is a volume on which a load was begun.
func takeRestored(s settings) (bool, error) {
	dir := s.datadir + restoredSuffix
	begun, err := exists(dir + loadingSuffix)
	if err != nil {
		return false, fmt.Errorf("look for a restore: %w", err)
	}
	whole, err := restoredWhole(s)
	if err != nil {
		return false, fmt.Errorf("look for a restore: %w", err)
	}
	switch {
	case begun || s.restore && !whole:
		return false, errNotRestored
	case !whole:
		return false, nil
	}
	// As with a fresh directory the marker comes before the name: with it and without a datadir, the rename in checkData was all that was
	// missing.
	if err := mayInitialise(s); err != nil {
		return false, err
	}
	if err := nameVolume(s); err != nil {
		return false, err
	}
	if err := markInitialised(s); err != nil {
		return false, err
	}
	return true, nil
}

// restoredWhole is true while a directory that was loaded waits for its name.
func restoredWhole(s settings) (bool, error) {
	return exists(filepath.Join(s.datadir+restoredSuffix, "auto.cnf"))
}
