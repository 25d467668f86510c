// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/loading"
	"github.com/mysql-mfg/mfg/backup/job/making"
	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// Program is one run.
type Program struct {
	Config terms.Config
	// Out gets lines of JSON.
	Out io.Writer
	Log *slog.Logger
	// Version is noted in the manifest.
	Version string

	report *terms.Reporter
	// patience is endTimeout, unless a test has less.
	patience time.Duration
}

// endTimeout is how long a run may take to end that is to end: 10 s for its sessions on the site, 30 s to remove what was stored, and a little
// for its programs. The grace period of its pod is longer.
const endTimeout = 45 * time.Second

// Commands are what Run knows.
var Commands = []string{"make", "load", "verify", "list", "fetch", "delete", "sweep"}

// Run does one thing, reports the outcome, and returns the code to exit with. It gives way once ctx ends.
func (p *Program) Run(ctx context.Context, command string) int {
	began := time.Now()
	out := p.Out
	if command == "fetch" { // its output is the backup itself
		out = io.Discard
	}
	p.report = terms.NewReporter(out, p.Config.ProgressFile)
	ctx, stop := p.bounded(ctx)
	defer stop()
	res, err := p.whole(ctx, command)
	if p.Config.Backup != "" {
		res.Backup = p.Config.Backup
	}
	if res.Seconds == 0 { // unless an earlier run did it, and this one tells of it
		res.Seconds = time.Since(began).Seconds()
	}
	res.Reason = terms.ReasonOf(err)
	if err != nil {
		res.Message = err.Error()
		p.Log.Error("backup "+command+" ends", "reason", string(res.Reason), "error", res.Bounded().Message)
	}
	p.report.End(res, p.Config.ResultFile)
	return res.Reason.ExitCode()
}

// whole does it, to its end or to that of our patience. Nothing ends a call that waits for a volume or a storage that does not answer, nor a
// mysqld that the kernel keeps waiting for its disk. So such a call is left behind, and the end of the process ends it, with every mysqld.
func (p *Program) whole(ctx context.Context, command string) (terms.Result, error) {
	type outcome struct {
		res terms.Result
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		res, err := p.dispatch(ctx, command)
		ended <- outcome{res, err}
	}()
	select {
	case o := <-ended:
		return o.res, cause(ctx, o.err)
	case <-ctx.Done():
	}
	patience := p.patience
	if patience == 0 {
		patience = endTimeout
	}
	select {
	case o := <-ended:
		return o.res, cause(ctx, o.err)
	case <-time.After(patience):
		return terms.Result{}, fmt.Errorf("%w; %s later it had not ended: a volume or the storage does not answer", context.Cause(ctx), patience)
	}
}

func (p *Program) dispatch(ctx context.Context, command string) (terms.Result, error) {
	switch command {
	case "make":
		return making.Maker{Config: p.Config, Log: p.Log, Report: p.report, Version: p.Version}.Make(ctx)
	case "load", "verify":
		return p.load(ctx, command)
	case "list":
		return p.list(ctx)
	case "fetch":
		return p.fetch(ctx)
	case "delete":
		return p.remove(ctx)
	case "sweep":
		return p.sweep(ctx)
	}
	return terms.Result{}, terms.Fail(terms.BadConfig, fmt.Errorf("backup %q: choose one of %s", command, strings.Join(Commands, ", ")))
}

// load loads a backup, to stay or to be looked at.
func (p *Program) load(ctx context.Context, command string) (res terms.Result, err error) {
	l := &loading.Loader{Config: p.Config, Log: p.Log, Report: p.report}
	defer func() { // the result names the backup however the load ended
		if l.Config.Backup != "" {
			res.Backup = l.Config.Backup
		}
	}()
	if command == "verify" {
		return l.Verify(ctx)
	}
	return l.Load(ctx)
}

// yieldInterval is how often it is looked whether the file is there that tells to give way.
const yieldInterval = 200 * time.Millisecond

// bounded ends when the time is over, or when it is to give way, with that as the cause.
func (p *Program) bounded(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	done := make(chan struct{})
	go func() {
		defer close(done)
		deadline, ticker := time.NewTimer(p.Config.Timeout()), time.NewTicker(yieldInterval)
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
				if p.report.Stalled(p.Config.IdleTimeout()) {
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

// What ends a run before its time.
var (
	errYield   = terms.Fail(terms.Yielded, errors.New("told to give way"))
	errStalled = terms.Fail(terms.Stalled, errors.New("not a byte went on any more: look at the disk, and at the storage or the site that it came from"))
	errTimeout = terms.Fail(terms.TimedOut, errors.New("the time for all of it is over: raise the timeout of the profile, or look at what was slow"))
)

// cause says why everything was ended, instead of what came of it.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); err != nil && (errors.Is(why, errYield) || errors.Is(why, errTimeout) || errors.Is(why, errStalled)) {
		return why
	}
	return err
}
