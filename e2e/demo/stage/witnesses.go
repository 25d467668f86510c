// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// Witnesses are the writers of one test: one through the primary Service, one directly at every pod.
type Witnesses struct {
	Group   *Group
	Service *ServiceWriter
	Probes  *Probes
	// Before is the group as it was when they started.
	Before *v1alpha1.MysqlFailoverGroup
	// Dir holds their journals.
	Dir string

	service journal.Journal
	logs    *Logs
	// remembered are failovers that the group's status may forget.
	remembered []v1alpha1.FailoverRecord
}

// Remember notes the failovers in a group's status, for tests that take the status back: the judge must know whose turn it was.
func (w *Witnesses) Remember(group *v1alpha1.MysqlFailoverGroup) {
	w.remembered = slices.Clone(group.Status.Failovers)
}

// StartWitnesses starts all writers and waits until rows go through the Service and at the active site's probe.
func (g *Group) StartWitnesses(ctx context.Context, name string) (*Witnesses, error) {
	before, err := g.Get(ctx)
	if err != nil {
		return nil, err
	}
	run := fmt.Sprintf("%s-%d", name, time.Now().Unix()%1_000_000)
	w := &Witnesses{Group: g, Before: before, Dir: filepath.Join(g.Repo, "out", "journals", run)}
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory for journals: %w", err)
	}
	if err := g.EnsureApp(ctx); err != nil {
		return nil, err
	}
	if w.logs, err = g.KeepLogs(ctx, run); err != nil {
		return nil, err
	}
	if w.Probes, err = g.StartProbes(ctx, run, w.Dir); err != nil {
		return nil, errors.Join(err, w.Abandon(ctx))
	}
	w.Service, err = g.StartServiceWriter(ctx, run, w.Dir)
	if err == nil {
		err = w.Probes.AwaitCommit(ctx, before.Status.ActiveSite, 30*time.Second)
	}
	if err != nil {
		return nil, errors.Join(err, w.Abandon(ctx))
	}
	return w, nil
}

// Abandon ends the writers without asking what they saw.
func (w *Witnesses) Abandon(ctx context.Context) error {
	var errs []error
	if w.Probes != nil && w.Probes.procs != nil {
		_, _, err := w.Probes.Stop()
		errs = append(errs, err)
	}
	if w.Service != nil {
		errs = append(errs, w.Service.Remove(ctx))
	}
	if w.logs != nil {
		errs = append(errs, w.logs.Abandon())
	}
	return errors.Join(errs...)
}

// Testimony is what the witnesses saw.
type Testimony struct {
	Service journal.Journal
	Direct  []journal.Journal
	// Mixed are of the writers that commit something else than single rows (Mix). When they did counts; their rows are not
	// looked for.
	Mixed []journal.Journal
	// Logs are what the servers' binary logs say was committed since the witnesses started. Where they cannot be read Unread
	// says why, and only what was acknowledged is judged.
	Logs   []commits.Transaction
	Unread string
}

// All are the journals of all witnesses, Rows those of the ones that wrote single rows.
func (t Testimony) All() []journal.Journal { return append(t.Rows(), t.Mixed...) }

// Rows are the journals of the witnesses that wrote single rows.
func (t Testimony) Rows() []journal.Journal { return append([]journal.Journal{t.Service}, t.Direct...) }

// Refused adds up why the direct writers were refused.
func (t Testimony) Refused() map[string]int64 {
	sum := map[string]int64{}
	for _, j := range t.Direct {
		for reason, n := range j.Refused {
			sum[reason] += n
		}
	}
	return sum
}

// Stop ends the writers in good order, those that still run. A witness that did not tell everything is an error.
func (w *Witnesses) Stop(ctx context.Context) (Testimony, error) {
	serviceErr := w.StopService(ctx)
	direct, mixed, probesErr := w.Probes.Stop()
	t := Testimony{Service: w.service, Direct: direct, Mixed: mixed}
	var logsErr error
	t.Logs, t.Unread, logsErr = w.logs.End()
	return t, errors.Join(serviceErr, probesErr, logsErr)
}

// StopService ends the writer behind the Service. The direct ones go on: a site that comes back is when a second
// writer would show.
func (w *Witnesses) StopService(ctx context.Context) error {
	if w.Service == nil {
		return nil
	}
	j, err := w.Service.Stop(ctx)
	w.service, w.Service = j, nil
	return err
}

// settle is how long after a fault that moves nothing it is too early to ask whether all is well again.
const settle = 5 * time.Second

// AwaitRecovery waits until a fault is overcome: the role moved, or the group is whole again where it stays, and rows
// go through the Service.
func (w *Witnesses) AwaitRecovery(ctx context.Context, f Fault, limit time.Duration) error {
	var err error
	if f.Moves {
		_, err = w.Group.Await(ctx, limit, "another site to be active", func(group *v1alpha1.MysqlFailoverGroup) error {
			if group.Status.ActiveSite == w.Before.Status.ActiveSite || group.Status.Transition != nil {
				return errors.New(Describe(group))
			}
			return nil
		})
	} else {
		time.Sleep(settle)
		_, err = w.Group.AwaitReady(ctx, limit)
	}
	if err != nil {
		return err
	}
	return w.Service.AwaitCommit(ctx, limit)
}
