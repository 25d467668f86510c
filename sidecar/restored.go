// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	// restoredSuffix is the ending of the directory in which `backup load` makes the data directory of this site.
	restoredSuffix = ".restored"
	// loadingSuffix is the ending of the mark beside a directory that is not whole yet; the mark comes first (backup/job/mysqld).
	loadingSuffix = ".loading"
)

// errNotRestored prevents an empty database where a backup belongs. errRestoreGone does so where only a new pod loads it: it goes into the
// termination message of every start, because the operator may miss any one of them.
var (
	errNotRestored = errors.New("a backup belongs onto this volume and is not there, or not all of it: the restore loads it, from the beginning; " +
		"to give the restore up, delete the group and its volume claims")
	errRestoreGone = errors.New(wire.MarkRestoreLost + ": a backup belongs onto this volume, and the volume is empty; it is loaded again in a new pod; " +
		"to give the restore up, delete the group and its volume claims")
)

// errRestoreLost goes into the termination message.
var errRestoreLost = errors.New(wire.MarkRestoreLost + ": its keyring was lost with an earlier pod, before it was in escrow; it is loaded again in a new pod")

// mayMake refuses to make an empty data directory where that could lose data, or where a backup belongs.
func mayMake(s settings, wiping bool) error {
	switch {
	case wiping && s.restore:
		return restoreAgain(s)
	case wiping:
		return nil
	}
	return mayInitialise(s)
}

// restoreAgain ends a start whose restored data was lost with its keyring. Only the backup may replace that data, and only the next pod
// loads it: the operator makes that pod when it sees this error.
func restoreAgain(s settings) error {
	if err := endWipe(s); err != nil {
		return err
	}
	return errRestoreLost
}

// takeRestored takes a data directory that was loaded from a backup as the site's own, and returns true if it did. It never allows an
// empty data directory for a site whose group is restored, or on a volume on which a load began.
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
	case begun:
		return false, errNotRestored
	case s.restore:
		if err := mayTake(s, whole); err != nil {
			return false, err
		}
	case !whole:
		return false, nil
	}
	// As with a fresh directory, the marker comes before the name: a marker without a datadir means that only the rename in checkData is
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

// mayTake refuses what a load cannot have left, though it has succeeded before each start of bootstrap. Where it leaves things as they are in
// this pod, and loads them in a new one, the error asks the operator for that.
func mayTake(s settings, whole bool) error {
	if whole {
		// A load never leaves encrypted data without its keyring: the keyring went with an earlier pod, or in a wipe.
		there, err := hasKeyring(s)
		if err == nil && !there {
			return errRestoreLost
		}
		return err
	}
	for _, dir := range []string{s.datadir, s.datadir + restoredSuffix} {
		if empty, err := emptyOrMissing(dir); err != nil || !empty {
			return errors.Join(err, errNotRestored) // a new pod would find it too
		}
	}
	return errRestoreGone
}

// hasKeyring is true for a site without encryption too.
func hasKeyring(s settings) (bool, error) {
	if s.keyring.file == "" {
		return true, nil
	}
	return exists(s.keyring.file)
}

// restoredWhole is true while a loaded directory waits for its name.
func restoredWhole(s settings) (bool, error) {
	return exists(filepath.Join(s.datadir+restoredSuffix, "auto.cnf"))
}
