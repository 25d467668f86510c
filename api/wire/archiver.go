// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// Endpoints of the sidecar for the archive of binary logs, which is the container `archiver` beside it.
const (
	// PathArchiverStatus is what the archiver wrote last, an ArchiverStatus. The sidecar adds nothing to it.
	PathArchiverStatus = "/archiver/status"
	// PathArchiverTurn is asked by the archiver: whether this site is the one that archives, an ArchiverTurn.
	PathArchiverTurn = "/archiver/turn"
)

// ArchiverStatusFile is the name of the status in the run directory that the archiver shares with the sidecar. It is replaced by rename.
const ArchiverStatusFile = "archiver.json"

// Bounds of a status. What is beyond them was not written by the archiver.
const (
	MaxArchiverStatusBytes = 128 << 10
	// MaxArchiverGaps is how many gaps are told, the newest; GapCount counts all.
	MaxArchiverGaps = 16
	// MaxArchiverGTIDBytes bounds ArchivedGTID, and maxGapGTIDBytes the set of each gap. What is longer is left out.
	MaxArchiverGTIDBytes = 48 << 10
	MaxGapGTIDBytes      = 2 << 10
	archiverMessageMax   = 1100
	archiverNameMax      = 255
	archiverCounterMax   = 1 << 60
)

// ArchiverTurn says whose turn it is to archive, as the sidecar knows it by the operator's signed statement.
type ArchiverTurn struct {
	// Epoch is that of the newest statement, and Site its active site. Epoch 0 and no site: there is none yet.
	Epoch int64  `json:"epoch"`
	Site  string `json:"site,omitempty"`
	// Active is true if this very pod is open for writes as the active site of Epoch.
	Active bool `json:"active"`
}

// ArchiverState is what the archiver of a pod is about.
type ArchiverState string

// The states.
const (
	// ArchiverStarting: it has not looked at anything yet.
	ArchiverStarting ArchiverState = "Starting"
	// ArchiverStandby: another site is the active one, or none; nothing is archived here.
	ArchiverStandby ArchiverState = "Standby"
	// ArchiverArchiving: the archive grows. Once it has caught up, Latest is never older than the interval and an upload; PendingBytes says what is
	// left until then.
	ArchiverArchiving ArchiverState = "Archiving"
	// ArchiverFailing: it is this site's turn, and it does not come further. Reason and Message say why; it tries again.
	ArchiverFailing ArchiverState = "Failing"
)

// ArchiverStatus is what the archiver of one pod says. Times are in UTC.
type ArchiverStatus struct {
	// At is when it was written: every few seconds. One that is older than a minute is of an archiver that hangs or is gone.
	At    time.Time     `json:"at"`
	State ArchiverState `json:"state"`
	// Reason is one CamelCase word if State is Failing: a kind of internal/bucket, or one of backup/archive. Message says it for people.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// FailingSince is when it began to fail; zero unless State is Failing.
	FailingSince time.Time `json:"failingSince,omitzero"`

	// Site, ServerUUID and Epoch are whose logs are archived. Epoch is 0 on Standby.
	Site       string `json:"site"`
	ServerUUID string `json:"serverUUID,omitempty"`
	Epoch      int64  `json:"epoch"`
	// StartedAt is when the process started. Counters count from then.
	StartedAt time.Time `json:"startedAt"`

	// Earliest is the commit of the first transaction in the archive, Latest the latest point that can be recovered: everything that was
	// committed until then is in the archive. Zero if there is nothing. On Standby both are as they were last known here.
	Earliest time.Time `json:"earliest,omitzero"`
	Latest   time.Time `json:"latest,omitzero"`
	// ArchivedGTID is the set of all transactions that the archive holds of the history; empty if it is longer than may be told.
	ArchivedGTID string `json:"archivedGTID,omitempty"`
	// Log and Position are how far the server's log is archived, PendingBytes what of its logs is not, Log included.
	Log          string `json:"log,omitempty"`
	Position     int64  `json:"position,omitempty"`
	PendingBytes int64  `json:"pendingBytes"`

	// Gaps are transactions of the history that are not in the archive and that no server was seen to have; the newest come last.
	Gaps     []ArchiverGap `json:"gaps,omitempty"`
	GapCount int           `json:"gapCount"`

	// Bytes is how much room the archive takes in the storage, Logs how many files of it there are, segments included.
	Bytes int64 `json:"bytes"`
	Logs  int   `json:"logs"`

	// Counters of this process.
	UploadsSucceeded int64 `json:"uploadsSucceeded"`
	UploadsFailed    int64 `json:"uploadsFailed"`
	UploadedBytes    int64 `json:"uploadedBytes"`
	Pruned           int64 `json:"pruned"`
	// PruneMessage says why nothing can be pruned, such as credentials that may not delete. It is no failure.
	PruneMessage string `json:"pruneMessage,omitempty"`
}

// ArchiverGap is what is missing.
type ArchiverGap struct {
	// GTIDs are the transactions, or empty if the set is too long; Transactions is how many they are.
	GTIDs        string `json:"gtids,omitempty"`
	Transactions int64  `json:"transactions"`
	// Between After and Before they were committed: the last commit that is archived before them, and the first one after. Either may be
	// zero.
	After  time.Time `json:"after,omitzero"`
	Before time.Time `json:"before,omitzero"`
	// Epoch and Site are of the log that shows that they were there.
	Epoch int64  `json:"epoch"`
	Site  string `json:"site"`
}

var errNoArchiverStatus = errors.New("this is not the status of an archiver")

// ParseArchiverStatus reads a status strictly: unknown fields and bounds are errors. Anyone who can write the run directory may have written
// it: texts come back as printable text on one line.
func ParseArchiverStatus(raw []byte) (ArchiverStatus, error) {
	if len(raw) > MaxArchiverStatusBytes {
		return ArchiverStatus{}, errNoArchiverStatus
	}
	var s ArchiverStatus
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return ArchiverStatus{}, errNoArchiverStatus
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || !s.sound() {
		return ArchiverStatus{}, errNoArchiverStatus
	}
	s.Message, s.PruneMessage = line(s.Message, archiverMessageMax), line(s.PruneMessage, archiverMessageMax)
	s.Site, s.ServerUUID, s.Log = line(s.Site, archiverNameMax), line(s.ServerUUID, archiverNameMax), line(s.Log, archiverNameMax)
	s.ArchivedGTID = line(s.ArchivedGTID, MaxArchiverGTIDBytes)
	for i := range s.Gaps {
		s.Gaps[i].GTIDs, s.Gaps[i].Site = line(s.Gaps[i].GTIDs, MaxGapGTIDBytes), line(s.Gaps[i].Site, archiverNameMax)
	}
	return s, nil
}

func (s ArchiverStatus) sound() bool {
	switch s.State {
	case ArchiverStarting, ArchiverStandby, ArchiverArchiving, ArchiverFailing:
	default:
		return false
	}
	for _, n := range []int64{s.Epoch, s.Position, s.PendingBytes, int64(s.GapCount), s.Bytes, int64(s.Logs), s.UploadsSucceeded, s.UploadsFailed,
		s.UploadedBytes, s.Pruned} {
		if n < 0 || n > archiverCounterMax {
			return false
		}
	}
	for _, g := range s.Gaps {
		if g.Transactions < 0 || g.Epoch < 0 || len(g.GTIDs) > MaxGapGTIDBytes {
			return false
		}
	}
	return !s.At.IsZero() && (s.Reason == "" || word(s.Reason)) && len(s.Gaps) <= MaxArchiverGaps && len(s.ArchivedGTID) <= MaxArchiverGTIDBytes &&
		len(s.Site) <= archiverNameMax && len(s.ServerUUID) <= archiverNameMax && len(s.Log) <= archiverNameMax
}
