// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"errors"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Reason is why something ended, in the words that conditions are made of. Those of the storage are the kinds of internal/bucket.
type Reason string

// Why something ended.
const (
	Succeeded Reason = "Succeeded"
	// BadConfig: the Job was told nonsense; trying again does not help.
	BadConfig Reason = "BadConfig"
	// Yielded: told to give way. Nothing is wrong; take another site.
	Yielded Reason = "Yielded"
	// Stalled: not a byte went on for so long that nothing will come any more.
	Stalled Reason = "Stalled"
	// TimedOut: the time for all of it is over.
	TimedOut Reason = "TimedOut"
	// SourceUnreachable: the site does not answer.
	SourceUnreachable Reason = "SourceUnreachable"
	// SourceRefused: the site does not let the account in, or the account lacks a right.
	SourceRefused Reason = "SourceRefused"
	// SourceLost: the site went away, or ended the sessions, in the middle. Take another site.
	SourceLost Reason = "SourceLost"
	// SourceBusy: something on the site kept the dump from beginning: what runs for long, or an XA transaction that is prepared. Try later.
	SourceBusy Reason = "SourceBusy"
	// DumpFailed: mysqldump ended with an error, or without its last line.
	DumpFailed Reason = "DumpFailed"
	// CloneFailed: CLONE ended with an error.
	CloneFailed Reason = "CloneFailed"
	// ServerFailed: the mysqld that is run here did not start, or ended.
	ServerFailed Reason = "ServerFailed"
	// TargetNotEmpty: there is data where the backup was to be loaded; nothing was touched.
	TargetNotEmpty Reason = "TargetNotEmpty"
	// VolumeTooSmall: the volume has too little room; nothing was touched.
	VolumeTooSmall Reason = "VolumeTooSmall"
	// VersionTooOld: the backup is of a later MySQL version than the server here; nothing was touched.
	VersionTooOld Reason = "VersionTooOld"
	// EncryptionMismatch: a Physical backup fits a group that is encrypted as its own was; nothing was touched.
	EncryptionMismatch Reason = "EncryptionMismatch"
	// SettingsMismatch: the backup was made with settings of MySQL that a data directory keeps for ever, and this group has others; nothing was
	// touched.
	SettingsMismatch Reason = "SettingsMismatch"
	// LoadFailed: the data could not be loaded.
	LoadFailed Reason = "LoadFailed"
	// Differs: what was loaded is not what the backup says that it holds.
	Differs Reason = "Differs"
	// QueryFailed: the query of the verification failed, or returned nothing that counts as yes.
	QueryFailed Reason = "QueryFailed"
	// WrongIdentity: no identity opens the backup.
	WrongIdentity Reason = Reason(bucket.WrongIdentity)
	// TargetBeforeBackup: the backup holds more than the target; nothing was touched.
	TargetBeforeBackup Reason = "TargetBeforeBackup"
	// TargetNotArchived: the target is beyond what is archived, or the archive knows nothing of it; nothing was touched.
	TargetNotArchived Reason = "TargetNotArchived"
	// TargetInGap: what leads to the target is missing in the archive; nothing was touched.
	TargetInGap Reason = "TargetInGap"
	// TransactionLost: a failover lost the transaction; nothing was touched.
	TransactionLost Reason = "TransactionLost"
	// BackupDiverged: the backup holds what a failover lost; nothing was touched.
	BackupDiverged Reason = "BackupDiverged"
	// ReplayFailed: a transaction of the archive could not be applied.
	ReplayFailed Reason = "ReplayFailed"
	// Failed has no word of its own.
	Failed Reason = "Failed"
)

// Classes of exits: a Job's container ends with one of these numbers. The result says exactly what it was.
const (
	ExitSucceeded = 0
	// ExitFailed is what has no class of its own.
	ExitFailed = 1
	// ExitConfig does not pass by itself: a person has to change something.
	ExitConfig = 2
	// ExitStorage is the storage's.
	ExitStorage = 10
	// ExitSource is the site's: another one, or another time, may do.
	ExitSource = 11
	// ExitYielded gave way.
	ExitYielded = 12
	// ExitTimedOut ran out of time.
	ExitTimedOut = 13
	// ExitRefused found before anything was touched that it cannot be.
	ExitRefused = 14
	// ExitDamaged says that the backup is not good.
	ExitDamaged = 15
)

// ExitCode is the class of a reason.
func (r Reason) ExitCode() int {
	switch r {
	case Succeeded:
		return ExitSucceeded
	case BadConfig:
		return ExitConfig
	case Yielded:
		return ExitYielded
	case TimedOut:
		return ExitTimedOut
	case SourceUnreachable, SourceRefused, SourceLost, SourceBusy, DumpFailed, CloneFailed, Stalled:
		return ExitSource
	case TargetNotEmpty, VolumeTooSmall, VersionTooOld, EncryptionMismatch, SettingsMismatch, WrongIdentity, Reason(bucket.TooNew),
		TargetBeforeBackup, TargetNotArchived, TargetInGap, TransactionLost, BackupDiverged:
		return ExitRefused
	case Differs, QueryFailed, ReplayFailed, Reason(bucket.Damaged):
		return ExitDamaged
	case Reason(bucket.AccessDenied), Reason(bucket.NoSuchBucket), Reason(bucket.UntrustedTLS), Reason(bucket.Full), Reason(bucket.ClockSkew),
		Reason(bucket.Unreachable), Reason(bucket.NotFound), Reason(bucket.NoDeleteRight), Reason(bucket.Exists), Reason(bucket.Foreign), Reason(bucket.Other):
		return ExitStorage
	case ServerFailed, LoadFailed, Failed:
		return ExitFailed
	}
	return ExitFailed
}

// failure is an error with its reason.
type failure struct {
	reason Reason
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Fail gives an error its reason. One that has a reason keeps it.
func Fail(reason Reason, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*failure](err); ok && known != nil || bucket.KindOf(err) != "" {
		return err
	}
	return &failure{reason: reason, err: err}
}

// ReasonOf is the reason of an error.
func ReasonOf(err error) Reason {
	if err == nil {
		return Succeeded
	}
	if known, ok := errors.AsType[*failure](err); ok {
		return known.reason
	}
	if kind := bucket.KindOf(err); kind != "" {
		return Reason(kind)
	}
	return Failed
}
