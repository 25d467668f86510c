// SPDX-License-Identifier: Apache-2.0

// Package measure reads what a database administrator watches: counters of mysqld, replication, and the room on the data volume. It runs
// beside everything else, and nothing waits for it: it decides nothing, takes no lock of the agent, and has a connection of its own.
// Scrapes get the values that it last read, so they cost mysqld nothing, however many there are.
package measure

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

const (
	// interval is how often the agent reads mysqld and the volume, timeout how long reading mysqld may take altogether.
	interval = 15 * time.Second
	timeout  = 2 * time.Second
	// staleAfter is the age at which values do not count any more: a hung server must not look like an idle one.
	staleAfter = time.Minute
)

// MySQL is the server, through a connection that nothing else uses.
type MySQL interface {
	Status(ctx context.Context) (mysql.Status, error)
	Measures(ctx context.Context, names []string) (map[string]float64, error)
}

// Use is how much of the data volume is taken.
type Use struct {
	// Size and Available are in bytes; Available is what mysqld can still take. Files and FilesFree count inodes; 0 if the file
	// system has no limit to them.
	Size, Available, Files, FilesFree float64
	// Used is what is taken, in bytes. Used and Available add up to less than Size if only root may take the rest.
	Used float64
	// Binlogs counts the binary logs, BinlogBytes is how many bytes they take. Both are -1 if that is not known.
	Binlogs, BinlogBytes float64
}

// Agent reads at an interval. Its fields are set before Run; it is a prometheus.Collector.
type Agent struct {
	MySQL MySQL
	// Volume looks at the data volume. It may hang for as long as the volume does.
	Volume func() (Use, error)
	// Answers is true while mysqld answers the sidecar. A mysqld that does not is left alone: each try on a server that hangs
	// leaves a connection in the queue in which the fence needs its own.
	Answers func() bool
	Log     *slog.Logger

	// looking is closed once the last look at the volume has ended; only the loop touches it.
	looking chan struct{}
	said    string

	mu     sync.Mutex
	server server
	volume volume
}

// server is what mysqld said of itself, and when it was asked; taken is how long the answer took.
type server struct {
	at     time.Time
	taken  time.Duration
	status mysql.Status
	values map[string]float64
}

// volume is what a look at the volume showed, and when the look began.
type volume struct {
	at  time.Time
	use Use
}

// Run reads until ctx ends. It never waits for the volume.
func (a *Agent) Run(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		a.lookAtVolume()
		a.askServer(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

var errSilent = errors.New("mysqld does not answer the sidecar")

// askServer reads mysqld, if it answers at all.
func (a *Agent) askServer(ctx context.Context) {
	err := errSilent
	if a.Answers() {
		err = a.readServer(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != "" && a.said == "" {
		a.Log.Info("mysqld cannot be measured; its metrics are left out after a minute", "error", said)
	}
	a.said = said
}

func (a *Agent) readServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	status, err := a.MySQL.Status(ctx)
	if err != nil {
		return err
	}
	values, err := a.MySQL.Measures(ctx, names())
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = server{at: began, taken: time.Since(began), status: status, values: values}
	return nil
}

// lookAtVolume begins a look at the volume, unless the last one still hangs: a thread that waits for a disk cannot be stopped.
func (a *Agent) lookAtVolume() {
	if a.looking != nil {
		select {
		case <-a.looking:
		default:
			return
		}
	}
	done, began := make(chan struct{}), time.Now()
	a.looking = done
	go func() {
		defer close(done)
		use, err := a.Volume()
		if err != nil {
			return // after a minute the last values are left out
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.volume = volume{at: began, use: use}
	}()
}

// VolumeUse is how full the data volume is, as df counts: room that only root may take is neither used nor part of the whole. It is nil
// while that is not known.
func (a *Agent) VolumeUse() *wire.VolumeUse {
	_, _, v, counts := a.last()
	if !counts {
		return nil
	}
	return &wire.VolumeUse{UsedBytes: int64(v.use.Used), TotalBytes: int64(v.use.Used + v.use.Available)}
}

// OpenChange is how many rows the largest open transaction has changed; nil while that is not known.
func (a *Agent) OpenChange() *int64 {
	s, counts, _, _ := a.last()
	rows, known := s.values[mysql.MeasureOpenChange]
	if !counts || !known {
		return nil
	}
	return new(int64(rows))
}

// last is what was last read of server and volume, each with whether it still counts.
func (a *Agent) last() (s server, serverCounts bool, v volume, volumeCounts bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fresh := func(at time.Time) bool { return !at.IsZero() && time.Since(at) < staleAfter }
	return a.server, fresh(a.server.at), a.volume, fresh(a.volume.at)
}
