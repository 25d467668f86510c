// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

const (
	// coverInterval is how often the agent asks MySQL what is encrypted, coverSoon how often until MySQL answers.
	coverInterval = 10 * time.Second
	coverSoon     = time.Second
	// coverShare bounds the load on a server with very many tables: the agent waits this many times as long as a question
	// took before it asks again.
	coverShare = 30
	// coverTimeout bounds one question, encryptTimeout one statement that encrypts.
	coverTimeout   = 30 * time.Second
	encryptTimeout = 5 * time.Minute
	// encryptPause is the time between two tries to encrypt.
	encryptPause = 30 * time.Second
)

// cover asks what is encrypted, and encrypts what MySQL itself made without encryption.
func (a *Agent) cover(ctx context.Context) {
	var nextTry time.Time
	for {
		began := time.Now()
		covered, ok := a.readCoverage(ctx)
		wait := coverSoon
		if ok {
			wait = max(coverInterval, coverShare*time.Since(began))
		}
		switch {
		case !ok || !a.CoverSystem:
		case covered.SystemTablespace && a.covering():
			wait = a.settleCover(ctx)
		case !covered.SystemTablespace && a.Open() && !time.Now().Before(nextTry):
			nextTry = time.Now().Add(encryptPause)
			a.encrypt(ctx)
			wait = 0
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (a *Agent) readCoverage(ctx context.Context) (wire.CoverageReport, bool) {
	ctx, cancel := context.WithTimeout(ctx, coverTimeout)
	defer cancel()
	c, err := a.MySQL.Coverage(ctx)
	if err != nil {
		// Not logged: others report a MySQL that does not answer, and the last answer stays valid.
		a.refused(err)
		return wire.CoverageReport{}, false
	}
	r := wire.CoverageReport{
		SystemTablespace: c.SystemTablespace, Unencrypted: int32(min(c.Unencrypted+plainTables(a.Datadir), 1<<30)),
		RedoLog: c.RedoLog, UndoLog: c.UndoLog, BinaryLog: c.BinaryLog && !plainLogs(a.Datadir),
	}
	if !c.SystemTablespace && a.CoverSystem && !a.update(func(r *Record) { r.Covering = true }) {
		// If the volume cannot remember it, encryption does not begin: after a crash nothing would wait for the checkpoint.
		return r, false
	}
	told := r
	told.SystemTablespace = r.SystemTablespace && !a.covering()
	a.mu.Lock()
	a.report.Coverage = &told
	a.mu.Unlock()
	return r, true
}

// covering is true while the encryption of the data dictionary may not be behind a checkpoint yet.
func (a *Agent) covering() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.record.Covering
}

// settleCover waits until the encryption of the data dictionary is behind a checkpoint, whichever site encrypted it: on a
// replica the statement comes from the active site. It returns how soon to look again.
func (a *Agent) settleCover(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, encryptTimeout)
	defer cancel()
	if err := a.MySQL.AwaitCheckpoint(ctx); err != nil {
		a.Log.Warn("the encryption of the data dictionary is not behind a checkpoint yet; no clone may begin from here", "error", err)
		return coverSoon
	}
	a.update(func(r *Record) { r.Covering = false })
	return 0
}

// encrypt encrypts the tablespaces that MySQL makes unencrypted. That replicates, so only the open site does it.
func (a *Agent) encrypt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, encryptTimeout)
	defer cancel()
	a.Log.Info("encrypting the tablespaces mysql and sys/sys_config")
	if err := a.MySQL.EncryptSystemTablespaces(ctx); err != nil {
		a.Log.Warn("the tablespaces that MySQL made are not encrypted; trying again", "error", err)
		a.refused(err)
	}
}

// refused reports a right that our account lacks; a clone may have taken it away.
func (a *Agent) refused(err error) {
	if errors.Is(err, mysql.ErrRightMissing) && a.RightMissing != nil {
		a.lacks.Do(func() {
			a.Log.Warn("our account lacks a right that encryption needs; it gets it when its pod is next replaced", "error", err)
		})
		a.RightMissing()
	}
}

// plainMagic is the beginning of a binary or relay log that is not encrypted.
var plainMagic = []byte{0xfe, 'b', 'i', 'n'}

// plainLogs is true if an unencrypted binary or relay log is left: switching encryption on does not rewrite old ones. A log
// that cannot be read counts as unencrypted.
func plainLogs(datadir string) bool {
	entries, err := os.ReadDir(datadir)
	if err != nil {
		return true
	}
	for _, e := range entries {
		stem, number, ok := strings.Cut(e.Name(), ".")
		if !ok || (stem != "binlog" && stem != "relay-bin") || strings.Trim(number, "0123456789") != "" {
			continue
		}
		if plainLog(filepath.Join(datadir, e.Name())) {
			return true
		}
	}
	return false
}

// plainTables counts the tables of engines that cannot encrypt. MySQL lists tables only to accounts with rights on them, so this counts
// files: one file of each table or partition holds its rows. MySQL's own tables in such engines hold no data of users.
func plainTables(datadir string) int {
	schemas, err := os.ReadDir(datadir)
	if err != nil {
		return 1 // what cannot be read counts as not encrypted
	}
	n := 0
	for _, schema := range schemas {
		if !schema.IsDir() || slices.Contains(ownSchemas, schema.Name()) {
			continue
		}
		tables, err := os.ReadDir(filepath.Join(datadir, schema.Name()))
		if err != nil && !os.IsNotExist(err) {
			n++
		}
		for _, table := range tables {
			if slices.Contains(plainEngines, filepath.Ext(table.Name())) {
				n++
			}
		}
	}
	return n
}

var (
	// ownSchemas are directories of MySQL itself.
	ownSchemas = []string{"mysql", "performance_schema", "sys"}
	// plainEngines are the endings of the files that hold rows of MyISAM, CSV and ARCHIVE.
	plainEngines = []string{".MYD", ".CSV", ".ARZ"}
)

func plainLog(path string) bool {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return false // purged meanwhile
	}
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, len(plainMagic))
	if _, err := io.ReadFull(f, head); err != nil {
		return false // no event fits into less
	}
	return bytes.Equal(head, plainMagic)
}
