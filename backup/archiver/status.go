// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
)

// statusEvery is how often the status is written, whether or not anything changed: a status that is old is one of an archiver that hangs.
const statusEvery = 2 * time.Second

// board is what the archiver says. Everybody writes on it, and one writes it down.
type board struct {
	mu     sync.Mutex
	status wire.ArchiverStatus
}

func (b *board) set(change func(*wire.ArchiverStatus)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.status)
}

func (b *board) get() wire.ArchiverStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// outcome says how it goes: an error is why it does not come further.
func (b *board) outcome(state wire.ArchiverState, err error, now time.Time) {
	b.set(func(s *wire.ArchiverStatus) {
		s.State, s.Reason, s.Message = state, "", ""
		if err == nil {
			s.FailingSince = time.Time{}
			return
		}
		s.State, s.Reason, s.Message = wire.ArchiverFailing, reasonOf(err), err.Error()
		if s.FailingSince.IsZero() {
			s.FailingSince = now.UTC()
		}
	})
}

// tell puts down what the archive holds.
func (b *board) tell(l archive.Listing, past archive.Past) {
	b.set(func(s *wire.ArchiverStatus) {
		s.Earliest, s.Latest, s.Bytes, s.Logs = past.Earliest, past.Latest, l.Bytes, len(l.Logs)+l.Replaced.Files
		s.ArchivedGTID = short(past.Archived.String(), wire.MaxArchiverGTIDBytes)
		s.GapCount, s.Gaps = len(past.Gaps), nil
		for _, g := range past.Gaps[max(0, len(past.Gaps)-wire.MaxArchiverGaps):] {
			s.Gaps = append(s.Gaps, wire.ArchiverGap{GTIDs: short(g.GTIDs.String(), wire.MaxGapGTIDBytes), Transactions: g.GTIDs.Count(), After: g.After,
				Before: g.Before, Epoch: g.Epoch, Site: g.Site})
		}
	})
}

// short leaves out what is too long: half a set is another set.
func short(text string, most int) string {
	if len(text) > most {
		return ""
	}
	return text
}

// write replaces the file by rename: who reads it never sees half a status.
func (b *board) write(path string, now time.Time) error {
	s := b.get()
	s.At = now.UTC()
	s.Message = cutText(s.Message)
	s.PruneMessage = cutText(s.PruneMessage)
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(raw) > wire.MaxArchiverStatusBytes {
		return fmt.Errorf("the status has %d bytes", len(raw))
	}
	// One name, so that what a killed process leaves is written over. It holds no secret, and the sidecar may have another user.
	beside := path + ".new"
	if err := os.WriteFile(beside, raw, 0o644); err != nil { //nolint:gosec // see above
		return err
	}
	return os.Rename(beside, path)
}

// messageMax bounds what is told to people.
const messageMax = 1000

func cutText(text string) string {
	if len(text) > messageMax {
		return text[:messageMax]
	}
	return text
}
