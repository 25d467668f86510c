// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/volumelock"
)

// I25: a pod that was deleted by force may still load. The pod behind it touches nothing of that volume until the other one has ended, and
// holds the lock no longer than its own load: bootstrap of the same pod takes it next.
func TestOneLoadAtATimeOnAVolumeI25(t *testing.T) {
	p := volume(t)
	c := &p.Config.Server
	p.Report = terms.NewReporter(io.Discard, "")
	c.StateDir = filepath.Join(filepath.Dir(c.Dir), "mfg")
	// What the other pod has loaded, with a keyring that is in the memory of that pod: to this one it is data without its keys, to be loaded again.
	c.KeyringFile = filepath.Join(c.RunDir, "keyring")
	put(t, filepath.Join(c.Dir, "ibdata1"), "data")
	if err := p.note(record{GroupUID: "uid", Location: p.Config.Bucket.Location(), Backup: "monday"}); err != nil {
		t.Fatal(err)
	}
	unlock, err := volumelock.Take(t.Context(), c.StateDir, p.Log)
	if err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := p.Load(within); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it does not wait for the other pod: %v", err)
	}
	if _, err := p.lock(t.Context(), 50*time.Millisecond); terms.ReasonOf(err) != terms.Stalled || !strings.Contains(err.Error(), "an older pod that still works") {
		t.Errorf("I25: nobody is told for whom it waits: %v", err)
	}
	mark := c.Dir + mysqld.PartialSuffix
	if there, err := isThere(mark); err != nil || there {
		t.Errorf("what the other pod has loaded is marked as half a load: %v", err)
	}
	unlock()
	if _, err := p.Load(t.Context()); terms.ReasonOf(err) != terms.Reason(bucket.NotFound) { // the storage of this test is empty
		t.Errorf("the other pod has ended: %v", err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the other pod has ended, and nothing was begun: %v", err)
	}
	after, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if unlock, err = volumelock.Take(after, c.StateDir, p.Log); err != nil {
		t.Fatalf("a load that has ended holds the lock: %v", err)
	}
	unlock()
}
