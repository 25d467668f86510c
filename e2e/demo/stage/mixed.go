// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// Where the writers of each kind write. Rows of XA transactions that stay prepared keep their locks, so nobody else uses it.
const (
	lateTable    = "app.late"
	xaTable      = "app.prepared"
	alteredTable = "app.altered"
	tickTable    = "app.ticks"
	tickEvent    = "app.tick"
)

func tableOf(kind load.Kind) string {
	switch kind {
	case load.Late:
		return lateTable
	case load.XA:
		return xaTable
	case load.DDL:
		return alteredTable
	case load.Rows:
	}
	return appTable
}

// rateOf is how many commits a second a probe of a kind tries at most. On a replica a change of a definition waits for all before it and
// holds up all after it: with as many as the active site can make, no replica of two cores catches up, and a planned failover is refused
// (TargetLags), as it should be.
func rateOf(kind load.Kind) int {
	if kind == load.DDL {
		return 5
	}
	return 100
}

// Mix starts what else can commit, at every site: transactions that are committed long after they were begun, XA, DDL, and an
// event of the scheduler, which no fence can cut off because it is nobody's session.
func (w *Witnesses) Mix(ctx context.Context) error {
	g := w.Group
	statements := []string{
		load.Schema(lateTable), load.Schema(xaTable), load.Schema(alteredTable),
		"CREATE TABLE IF NOT EXISTS " + tickTable + " (id BIGINT AUTO_INCREMENT PRIMARY KEY, host VARCHAR(255))",
		fmt.Sprintf("GRANT ALTER, CREATE ON app.* TO '%s'@'%%'", appUser),
		"CREATE EVENT IF NOT EXISTS " + tickEvent + " ON SCHEDULE EVERY 1 SECOND DO INSERT INTO " + tickTable + " (host) VALUES (@@report_host)",
	}
	if _, err := g.RootSQL(ctx, w.Before.Status.ActiveSite, strings.Join(statements, "; ")); err != nil {
		return fmt.Errorf("prepare writers of other kinds: %w", err)
	}
	w.Probes.mu.Lock()
	w.Probes.kinds = load.Kinds
	w.Probes.mu.Unlock()
	for _, kind := range load.Kinds {
		if err := w.Probes.awaitKind(ctx, w.Before.Status.ActiveSite, kind, 30*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// awaitKind waits until a site acknowledged a commit of a kind: the probes for it are started by those who look for pods.
func (p *Probes) awaitKind(ctx context.Context, site string, kind load.Kind, limit time.Duration) error {
	return Poll(ctx, limit, fmt.Sprintf("a commit of kind %q on %s", kind, site), func(context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, proc := range p.procs {
			if proc.site != site || proc.kind != kind {
				continue
			}
			if j, err := journal.ReadFile(proc.journal); err == nil && len(j.Commits) > 0 {
				return nil
			}
		}
		return errors.New("there is none yet")
	})
}

// Unmix removes from the active site what writers of other kinds have left, XA transactions that nobody has finished first.
func (g *Group) Unmix(ctx context.Context, active string) error {
	out, err := g.RootSQL(ctx, active, "XA RECOVER")
	if err != nil {
		return fmt.Errorf("list prepared transactions: %w", err)
	}
	var statements []string
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) == 4 {
			statements = append(statements, "XA ROLLBACK '"+fields[3]+"'")
		}
	}
	statements = append(statements, "DROP EVENT IF EXISTS "+tickEvent,
		"DROP TABLE IF EXISTS "+strings.Join([]string{lateTable, xaTable, alteredTable, tickTable}, ", "))
	if _, err := g.RootSQL(ctx, active, strings.Join(statements, "; ")); err != nil {
		return fmt.Errorf("remove what other writers left: %w", err)
	}
	return nil
}
