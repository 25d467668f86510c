// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// The load: at least 200 commits a second must go through the Service, so a little more is asked for. Each connection
// is due every 25 ms, which is part of what it sees as a pause.
const wantRate = 200.0

// fullRate is what the writer behind the Service asks for, in commits a second.
const fullRate = 240

// loaded gives a group the writers of a rate; 0 is fullRate. At that, with six mysqlds or more, two processors are never idle: what is
// measured then is how long things wait for a processor. With a lower rate the direct writers are slower too, in proportion.
func loaded(g *stage.Group, rate int) {
	g.ProbeArgs = nil
	if rate > 0 {
		g.ProbeArgs = []string{fmt.Sprintf("--rate=%d", max(10, 100*rate/fullRate)), fmt.Sprintf("--refused-rate=%d", max(10, 40*rate/fullRate))}
	}
	g.WriterArgs = []string{"--concurrency=6", fmt.Sprintf("--rate=%d", cmp.Or(rate, fullRate)), "--retry=10ms", "--dial-timeout=100ms", "--timeout=1s"}
}

// writerLife is after how long the writer behind the Service makes way for the next one. Its journal goes through the
// log of its container, which the kubelet cuts at 10 MiB: six minutes at this rate.
const writerLife = 150 * time.Second

// session is one set of writers and the runs that they saw. The writers behind the Service follow each other without a
// gap; the direct ones stay.
type session struct {
	*stage.Group
	name, dir string

	probes  *stage.Probes
	writer  *stage.ServiceWriter
	since   time.Time
	writers int
	served  []journal.Journal
	// logs are the binary logs of all sites, for the second judge.
	logs *stage.Logs

	epoch int64
	turns []string
	// epochs are the turns with the moments at which they were persisted.
	epochs []commits.Turn
	marks  []mark
}

// mark is one run: what was done to which site when, and what the group has recorded of it.
type mark struct {
	site        string
	at, end     time.Duration
	moved       bool
	records     []v1alpha1.FailoverRecord
	pauseMillis *int64
	// stolen is the percentage of the machine's time that its host gave to others from the fault to the end.
	stolen float64
}

// openSession starts writers on a group that is whole, over an empty table.
func openSession(ctx context.Context, g *stage.Group, name string, rate int) (*session, error) {
	before, err := g.AwaitReady(ctx, bringUp)
	if err != nil {
		return nil, err
	}
	s := &session{
		Group: g, name: fmt.Sprintf("%s-%d", name, time.Now().Unix()%1_000_000),
		epoch: before.Status.Epoch, turns: []string{before.Status.ActiveSite},
		epochs: []commits.Turn{{Site: before.Status.ActiveSite, Epoch: before.Status.Epoch}},
	}
	s.dir = filepath.Join(g.Repo, "out", "journals", s.name)
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory for journals: %w", err)
	}
	if err := g.EnsureApp(ctx); err != nil {
		return nil, err
	}
	// The rows of earlier sessions are judged, and all rows are read in the end.
	if _, err := g.RootSQL(ctx, before.Status.ActiveSite, "TRUNCATE TABLE "+writesTable); err != nil {
		return nil, fmt.Errorf("empty the table: %w", err)
	}
	loaded(g, rate)
	if s.logs, err = g.KeepLogs(ctx, s.name); err != nil {
		return nil, err
	}
	if s.probes, err = g.StartProbes(ctx, s.name, s.dir); err != nil {
		return nil, errors.Join(err, s.abandon(ctx))
	}
	if err = s.relieve(ctx); err == nil {
		err = s.probes.AwaitCommit(ctx, before.Status.ActiveSite, 30*time.Second)
	}
	if err != nil {
		return nil, errors.Join(err, s.abandon(ctx))
	}
	return s, nil
}

// relieve starts the next writer behind the Service, if the last one is due, and then ends that one.
func (s *session) relieve(ctx context.Context) error {
	if s.writer != nil && time.Since(s.since) < writerLife {
		return nil
	}
	next, err := s.StartServiceWriter(ctx, fmt.Sprintf("%s-%d", s.name, s.writers), s.dir)
	if err != nil {
		if next != nil {
			err = errors.Join(err, next.Remove(ctx))
		}
		return err
	}
	s.writers++
	err = s.stopWriter(ctx)
	s.writer, s.since = next, time.Now()
	return err
}

func (s *session) stopWriter(ctx context.Context) error {
	if s.writer == nil {
		return nil
	}
	j, err := s.writer.Stop(ctx)
	if err != nil {
		return err
	}
	s.served, s.writer = append(s.served, j), nil
	return nil
}

// abandon ends the writers without asking what they saw.
func (s *session) abandon(ctx context.Context) error {
	var errs []error
	if s.probes != nil {
		_, _, err := s.probes.Stop()
		errs = append(errs, err)
		s.probes = nil
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Remove(ctx))
	}
	return errors.Join(append(errs, s.logs.Abandon())...)
}

// pace is how long rows are written before and after a fault, so that its edges are seen.
type pace struct{ before, after time.Duration }

// once makes one fault on the active site of a group that is whole. Its mark is kept even if the group then does not
// recover: what the writers saw until then counts.
func (s *session) once(ctx context.Context, c benchCase, p pace) error {
	before, err := s.AwaitReady(ctx, bringUp)
	if err != nil {
		return err
	}
	if c.prepare != nil {
		if err := c.prepare(ctx, s.Group, before.Status.ActiveSite); err != nil {
			return err
		}
		if before, err = s.AwaitReady(ctx, bringUp); err != nil {
			return err
		}
	}
	if err := s.relieve(ctx); err != nil {
		return err
	}
	time.Sleep(p.before)
	m := mark{site: before.Status.ActiveSite}
	start, err := readProcessors()
	if err != nil {
		return err
	}
	if m.at, err = s.Break(ctx, c.Fault, m.site); err != nil {
		return err
	}
	if err := s.overcome(ctx, c, before); err != nil {
		return err
	}
	time.Sleep(p.after)
	m.end = load.Now()
	now, err := readProcessors()
	if err != nil {
		return err
	}
	m.stolen = start.stolenUntil(now)
	if c.batch <= 1 {
		// Repairs take minutes, and the journal's room is limited.
		if err := s.stopWriter(ctx); err != nil {
			return err
		}
	}
	if err := s.Undo(ctx, c.Fault, m.site); err != nil {
		return err
	}
	err = s.note(ctx, &m)
	s.marks = append(s.marks, m)
	return err
}

// settle is how long after a fault that need not move anything it is too early to ask whether all is well again.
const settle = 5 * time.Second

// overcome waits until the fault is overcome and rows go through the Service.
func (s *session) overcome(ctx context.Context, c benchCase, before *v1alpha1.MysqlFailoverGroup) error {
	var err error
	switch {
	case c.recover != nil:
		err = c.recover(ctx, s.Group, before)
	case c.Moves:
		_, err = s.Await(ctx, recovery, "another site to be active", func(group *v1alpha1.MysqlFailoverGroup) error {
			if group.Status.ActiveSite == before.Status.ActiveSite || group.Status.Transition != nil {
				return errors.New(stage.Describe(group))
			}
			return nil
		})
	default:
		time.Sleep(settle)
		_, err = s.Await(ctx, recovery, "every site to have its place", inPlace)
	}
	if err != nil {
		return err
	}
	return s.writer.AwaitCommit(ctx, recovery)
}

// inPlace tells why a group is not done with a fault: one site takes writes, and every other one follows it or is held
// for a person because of what was lost.
func inPlace(group *v1alpha1.MysqlFailoverGroup) error {
	st := group.Status
	settled := st.Transition == nil && len(st.Sites) >= len(group.Spec.Sites)
	primary := false
	for _, site := range st.Sites {
		switch site.State {
		case v1alpha1.SitePrimary:
			primary = true
		case v1alpha1.SiteReplica, v1alpha1.SiteDiverged:
		default:
			settled = false
		}
	}
	if !settled || !primary {
		return errors.New(stage.Describe(group))
	}
	return nil
}

// note takes over what the group has recorded since the last run. What an emergency lost is known for certain only once
// the old active site was seen again.
func (s *session) note(ctx context.Context, m *mark) error {
	after, err := s.Get(ctx)
	if err != nil {
		return err
	}
	m.moved = after.Status.ActiveSite != m.site
	if p := after.Status.PlannedFailover; p != nil && m.moved && p.To == after.Status.ActiveSite {
		m.pauseMillis = p.WritePauseMillis
	}
	if m.moved && newestKind(after) != v1alpha1.FailoverPlanned {
		if _, err := s.AwaitExactLoss(ctx, comeBack); err != nil {
			return err
		}
		if after, err = s.Get(ctx); err != nil {
			return err
		}
	}
	m.records = s.news(after)
	if m.moved && len(m.records) == 0 {
		return fmt.Errorf("the role moved from %s to %s and status.failovers does not say so", m.site, after.Status.ActiveSite)
	}
	return nil
}

// news are the changes of the active site that the group recorded since this was asked last, oldest first.
func (s *session) news(group *v1alpha1.MysqlFailoverGroup) []v1alpha1.FailoverRecord {
	var records []v1alpha1.FailoverRecord
	for i := len(group.Status.Failovers) - 1; i >= 0; i-- {
		if r := group.Status.Failovers[i]; r.Epoch > s.epoch {
			records = append(records, r)
			s.turns = append(s.turns, r.To)
			s.epochs = append(s.epochs, commits.Turn{Site: r.To, Epoch: r.Epoch, Began: r.StartedAt.Time})
			s.epoch = r.Epoch
		}
	}
	return records
}

func newestKind(group *v1alpha1.MysqlFailoverGroup) v1alpha1.FailoverKind {
	if len(group.Status.Failovers) == 0 {
		return ""
	}
	return group.Status.Failovers[0].Kind
}

// lost is true if a run of this session lost something: the old active site then stays as it is, for a person.
func (s *session) lost() bool {
	for _, m := range s.marks {
		for _, r := range m.records {
			if r.LostTransactions > 0 {
				return true
			}
		}
	}
	return false
}
