// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/backup/replay"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// targetOf is the point as the archive knows it; false without one.
func targetOf(c terms.Config) (archive.Target, bool) {
	p := c.PointInTime
	switch {
	case p == nil && !c.Replay:
		return archive.Target{}, false
	case p == nil:
		return archive.Target{Latest: true}, true
	}
	t := archive.Target{GTID: p.GTID, BeforeGTID: p.BeforeGTID, BeforeFailover: p.BeforeFailover, Latest: p.Latest}
	if p.Time != nil {
		t.Time = p.Time.UTC()
	}
	return t, true
}

// point is the target as one text, by which a later try knows whether it is still the same; empty without one.
func point(c terms.Config) string {
	if c.PointInTime == nil {
		return ""
	}
	raw, err := json.Marshal(c.PointInTime)
	if err != nil {
		return fmt.Sprintf("%+v", *c.PointInTime) // a time that JSON cannot hold
	}
	return string(raw)
}

// journey is what leads from a backup to a point behind it.
type journey struct {
	road replay.Road
	have gtid.Set
	// unreplayed is why a verification replays nothing; empty normally.
	unreplayed string
	done       replay.Applied
}

// refusals are the reasons of those of the archive.
var refusals = map[archive.RefusalKind]terms.Reason{
	archive.BadTarget: terms.BadConfig, archive.InGap: terms.TargetInGap, archive.BeyondLatest: terms.TargetNotArchived, archive.NotInHistory: terms.TargetNotArchived,
	archive.WasLost: terms.TransactionLost, archive.BackupTooNew: terms.TargetBeforeBackup, archive.BackupDiverged: terms.BackupDiverged,
}

// refused gives a refusal of the archive its reason.
func refused(err error) error {
	if r := archive.RefusalOf(err); r != nil {
		if reason, known := refusals[r.Kind]; known {
			return terms.Fail(reason, err)
		}
	}
	if errors.Is(err, replay.ErrDamaged) {
		return terms.Fail(terms.Reason(bucket.Damaged), err)
	}
	return err
}

// survey lists the archive, if one is needed.
func (l *Loader) survey(ctx context.Context) (*replay.Map, error) {
	if _, wanted := targetOf(l.Config); !wanted {
		return nil, nil //nolint:nilnil // none is needed, and that is an answer
	}
	ids, err := identities(l.Config)
	if err != nil {
		return nil, err
	}
	// It is read until the end of the program, which is that of the load.
	a, err := archive.Open(ctx, l.Config.Bucket)
	if err != nil {
		return nil, err
	}
	return replay.Survey(ctx, a, ids)
}

// find finds the way from a backup to the target. Nothing is touched.
func (l *Loader) find(ctx context.Context, m *replay.Map, b *bucket.Manifest) (*journey, error) {
	have, err := gtid.Parse(b.GTIDExecuted)
	if err != nil {
		return nil, terms.Fail(terms.Reason(bucket.Damaged), err)
	}
	target, _ := targetOf(l.Config)
	from := replay.Start{Have: have, Epoch: b.Epoch, StartedAt: b.StartedAt, FinishedAt: b.FinishedAt}
	j := &journey{have: have}
	if target.Latest && l.reached != "" {
		set, err := gtid.Parse(l.reached)
		if err != nil {
			return nil, terms.Fail(terms.TargetNotEmpty, err)
		}
		j.road, err = m.Onto(from, set)
		return j, refused(err)
	}
	if l.Config.PointInTime == nil && len(m.Past().Files) == 0 {
		j.road.Target = have // a verification of a group that has no archive
		return j, nil
	}
	j.road, err = m.Find(ctx, from, target)
	if r := archive.RefusalOf(err); r != nil && l.Config.PointInTime == nil {
		// A verification is about the backup. That the archive lacks something is told, and has an alert of its own.
		j.road = replay.Road{Target: have}
		j.unreplayed = r.Message
		return j, nil
	}
	return j, refused(err)
}

// startFor is the newest backup that the target can be reached from. One that is too new for it, or holds what a failover lost, is passed
// over; whatever else keeps it from being reached keeps an older one from it too.
func (l *Loader) startFor(ctx context.Context, b *bucket.Bucket, m *replay.Map) (string, error) {
	entries, err := b.List(ctx)
	if err != nil {
		return "", err
	}
	var unreadable []string
	var passed error
	for _, e := range entries {
		if e.Manifest == nil || e.Err != nil {
			unreadable = append(unreadable, e.Name)
			continue
		}
		_, err := l.find(ctx, m, e.Manifest)
		switch reason := terms.ReasonOf(err); {
		case err == nil:
			if len(unreadable) > 0 { // a nearer start would be quicker; what comes out of it is the same
				l.Log.Warn("backups that cannot be read are passed over", "backups", terms.Clip(strings.Join(unreadable, ", "), 200))
			}
			return e.Name, nil
		case reason == terms.TargetBeforeBackup, reason == terms.BackupDiverged:
			if passed == nil {
				passed = err
			}
		default:
			return "", err
		}
	}
	switch {
	case passed != nil && len(unreadable) == 0:
		return "", terms.Fail(terms.ReasonOf(passed), fmt.Errorf("no backup in %s leads to the target; of the newest: %w", l.Config.Bucket.Location(), passed))
	case len(unreadable) > 0:
		return "", terms.Fail(terms.Reason(bucket.Damaged), fmt.Errorf("no backup that can be read leads to the target, and %d cannot be read (%s): name one in initFromBackup.backup",
			len(unreadable), terms.Clip(strings.Join(unreadable, ", "), 200)))
	}
	return "", terms.Fail(terms.Reason(bucket.NotFound), fmt.Errorf("there is no backup in %s: correct the place, or namespace and group in initFromBackup.from", l.Config.Bucket.Location()))
}

// workersMost bounds the threads that apply.
const workersMost = 16

// replay brings the server to the target. It is started again for that: without a binary log, with a number that no server of the group
// has, and with relay logs beside the data.
func (l *loading) replay(ctx context.Context) error {
	j := l.journey
	if j == nil || len(j.road.Logs) == 0 {
		return nil
	}
	l.Report.Begin(terms.Replaying, j.road.Bytes)
	s := l.server
	if err := s.Stop(); err != nil {
		return err
	}
	version, err := mysqld.Version(ctx)
	if err != nil {
		return err
	}
	before := s.Extra
	workers := min(workersMost, max(4, 2*runtime.GOMAXPROCS(0)))
	s.Extra = append(s.Extra, replay.Args(l.relayLogs(), workers, l.Config.Server.KeyringFile != "")...)
	defer func() { s.Extra = before }()
	if err := s.Start(ctx); err != nil {
		return err
	}
	conn, err := s.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// A crash in between has it begin again in any case.
	if err := mysqld.Run(ctx, conn, "ALTER INSTANCE DISABLE INNODB REDO_LOG"); err != nil {
		return terms.Fail(terms.LoadFailed, err)
	}
	r := replay.Replay{Pool: s.Pool(), Version: version, Logs: j.road.Logs, Have: j.have, Target: j.road.Target, Progress: l.Report.Set, Check: l.roomLeft}
	j.done, err = r.Run(ctx)
	if err != nil {
		return l.explainReplay(err)
	}
	if err := l.countEvents(ctx, conn); err != nil {
		return err
	}
	if err := mysqld.Run(ctx, conn, "ALTER INSTANCE ENABLE INNODB REDO_LOG"); err != nil {
		return terms.Fail(terms.LoadFailed, err)
	}
	l.Report.Begin(terms.Checking, 0)
	return nil
}

func (l *loading) explainReplay(err error) error {
	select {
	case <-l.server.Done():
		return terms.Fail(terms.ServerFailed, fmt.Errorf("mysqld ended during the replay: %w: %s", err, l.server.Why()))
	default:
	}
	if errors.Is(err, replay.ErrApply) || errors.Is(err, replay.ErrReceive) {
		return terms.Fail(terms.ReplayFailed, err)
	}
	return refused(err)
}

func (l *loading) relayLogs() string { return filepath.Join(l.Config.Server.Dir, replay.RelayLogs) }

// roomReserve is the room on the volume with less of which a replay ends: mysqld would wait for more without end.
const roomReserve = 64 << 20

func (l *loading) roomLeft() error {
	var st unix.Statfs_t
	if err := unix.Statfs(l.Config.Server.Dir, &st); err != nil {
		return fmt.Errorf("look at the room on the volume: %w", err)
	}
	if have := int64(st.Bavail) * st.Bsize; have < roomReserve {
		return terms.Fail(terms.VolumeTooSmall, fmt.Errorf("the volume has %d MiB left in the middle of the replay: what is replayed needs more room than the backup", have>>20))
	}
	return nil
}

// sweepRelayLogs removes what the channel has left beside the data of a server that has ended.
func (l *loading) sweepRelayLogs() error {
	if l.journey == nil {
		return nil
	}
	names, err := filepath.Glob(l.relayLogs() + "*")
	for _, name := range names {
		if gone := os.Remove(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// tell adds to the outcome what was replayed.
func (l *loading) tell(res *terms.Result) {
	if l.journey == nil {
		return
	}
	if why := l.journey.unreplayed; why != "" {
		res.Warnings = append(res.Warnings, "nothing was replayed: "+why)
	}
	res.GTIDExecuted = l.journey.road.Target.String()
	done := l.journey.done
	res.Replayed, res.ReplaySeconds = done.Transactions, done.Seconds
	if !done.Until.IsZero() {
		until := done.Until.Truncate(time.Microsecond)
		res.ReplayedTo = &until
	}
}
