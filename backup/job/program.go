// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Program is one run.
type Program struct {
	Config Config
	// Out gets lines of JSON.
	Out io.Writer
	Log *slog.Logger
	// Version is noted in the manifest.
	Version string

	report *reporter
	// reached is the set of GTIDs of the target of a load, once it is settled.
	reached string
}

// Commands are what Run knows.
var Commands = []string{"make", "load", "verify", "list", "fetch", "delete", "sweep"}

// Run does one thing, reports the outcome, and returns the code to exit with. It gives way once ctx ends.
func (p *Program) Run(ctx context.Context, command string) int {
	began := time.Now()
	p.report = newReporter(p.Config, p.Out)
	if command == "fetch" { // its output is the backup itself
		p.report = newReporter(p.Config, io.Discard)
	}
	ctx, stop := p.bounded(ctx)
	defer stop()
	res, err := p.dispatch(ctx, command)
	err = cause(ctx, err)
	if p.Config.Backup != "" {
		res.Backup = p.Config.Backup
	}
	if res.Seconds == 0 { // unless an earlier run did it, and this one tells of it
		res.Seconds = time.Since(began).Seconds()
	}
	res.Reason = ReasonOf(err)
	if err != nil {
		res.Message = err.Error()
		p.Log.Error("backup "+command+" ends", "reason", string(res.Reason), "error", clip(res.Message, messageMax))
	}
	p.report.end(p.Config, res)
	return res.Reason.ExitCode()
}

func (p *Program) dispatch(ctx context.Context, command string) (Result, error) {
	switch command {
	case "make":
		return p.Make(ctx)
	case "load":
		return p.Load(ctx)
	case "verify":
		return p.Verify(ctx)
	case "list":
		return p.list(ctx)
	case "fetch":
		return p.fetch(ctx)
	case "delete":
		return p.remove(ctx)
	case "sweep":
		return p.sweep(ctx)
	}
	return Result{}, fail(BadConfig, fmt.Errorf("backup %q: choose one of %s", command, strings.Join(Commands, ", ")))
}

// yieldInterval is how often it is looked whether the file is there that tells to give way.
const yieldInterval = 200 * time.Millisecond

// bounded ends when the time is over, or when it is to give way, with that as the cause.
func (p *Program) bounded(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	done := make(chan struct{})
	go func() {
		defer close(done)
		deadline, ticker := time.NewTimer(p.Config.timeout()), time.NewTicker(yieldInterval)
		defer deadline.Stop()
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-parent.Done():
				cancel(errYield)
				return
			case <-deadline.C:
				cancel(errTimeout)
				return
			case <-ticker.C:
				if p.report.stalled(p.Config.idleTimeout()) {
					cancel(errStalled)
					return
				}
				if p.Config.YieldFile == "" {
					continue
				}
				if _, err := os.Stat(p.Config.YieldFile); err == nil {
					cancel(errYield)
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// list writes the manifests, one a line, and no progress.
func (p *Program) list(ctx context.Context) (Result, error) {
	b, err := bucket.Open(ctx, p.Config.Bucket)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = b.Close() }()
	entries, err := b.List(ctx)
	if err != nil {
		return Result{}, err
	}
	for _, e := range entries {
		line := struct {
			Name     string           `json:"name"`
			Manifest *bucket.Manifest `json:"manifest,omitempty"`
			Error    string           `json:"error,omitempty"`
		}{Name: e.Name, Manifest: e.Manifest}
		if e.Err != nil {
			line.Error = e.Err.Error()
		}
		if err := json.NewEncoder(p.Out).Encode(line); err != nil {
			return Result{}, err
		}
	}
	return Result{}, nil
}

// remove removes one backup. One that is gone is no error: it may be asked again. Neither is one that is not ours: it stays, and of ours there is
// nothing.
func (p *Program) remove(ctx context.Context) (Result, error) {
	if p.Config.Backup == "" {
		return Result{}, fail(BadConfig, fmt.Errorf("which backup is to be removed? set backup"))
	}
	b, err := bucket.Open(ctx, p.Config.Bucket)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = b.Close() }()
	why, err := p.notOurs(ctx, b)
	if err != nil {
		return Result{}, err
	}
	if why != "" {
		return Result{Warnings: []string{why}}, nil
	}
	if err := b.Delete(ctx, p.Config.Backup); err != nil && bucket.KindOf(err) != bucket.NotFound {
		return Result{}, err
	}
	return Result{Removed: 1}, nil
}

// notOurs is why what lies under the name of the backup must not be removed: two groups of one name, in two clusters, give their backups the same names,
// and a backup that was kept from an earlier MysqlBackup of the name is not this one's. It is empty if it may be removed.
func (p *Program) notOurs(ctx context.Context, b *bucket.Bucket) (string, error) {
	foreign, err := p.foreign(ctx, b)
	if err != nil {
		return "", err
	}
	stored, err := b.OpenStored(ctx, p.Config.Backup)
	switch kind := bucket.KindOf(err); {
	case err == nil && p.Config.isOlder(stored.Manifest):
		return "it was kept from an earlier MysqlBackup of this name, and stays", nil
	case err == nil && p.Config.GroupUID != "" && stored.Manifest.GroupUID == p.Config.GroupUID:
		return "", nil // it names us, so it is ours, also in a place that another group has taken since
	case err != nil && kind != bucket.NotFound && kind != bucket.Damaged && kind != bucket.TooNew:
		return "", err
	case foreign:
		return "the place is another group's, and what is there stays: nothing of it is this one's", nil
	}
	return "", nil
}

// foreign is true if the place is another group's.
func (p *Program) foreign(ctx context.Context, b *bucket.Bucket) (bool, error) {
	if p.Config.GroupUID == "" {
		return false, nil
	}
	return b.IsForeign(ctx, p.Config.GroupUID)
}

// sweepMin is the least age of what is swept, whatever was asked for: an attempt may still run.
const sweepMin = time.Hour

func (p *Program) sweep(ctx context.Context) (Result, error) {
	b, err := bucket.Open(ctx, p.Config.Bucket)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = b.Close() }()
	foreign, err := p.foreign(ctx, b)
	if err != nil {
		return Result{}, err
	}
	if foreign {
		return Result{Warnings: []string{"the place is another group's: nothing is swept"}}, nil
	}
	age := max(sweepMin, time.Duration(p.Config.OlderThanSeconds)*time.Second)
	swept, err := b.Sweep(ctx, time.Now().Add(-age))
	return Result{Removed: swept.Objects + swept.Uploads, StoredBytes: swept.Bytes}, err
}

// toolVersion is what mysqldump says of itself.
func toolVersion(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "mysqldump", "--version").Output()
	if err != nil {
		return "", fail(BadConfig, fmt.Errorf("ask mysqldump for its version: %w", err))
	}
	return clip(oneLine(string(out)), 200), nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
