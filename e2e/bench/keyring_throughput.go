// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// The load of the comparison: so many connections, each of which sends its next row as soon as the last one is
// acknowledged, straight to the active site. Nothing else limits it.
const (
	loadConnections = 16
	loadRowBytes    = 1024
	loadWarmUp      = 3 * time.Second
	loadRun         = 20 * time.Second
	loadTable       = "app.throughput"
	// loadDrain is how long the replicas may take to catch up before the next run.
	loadDrain = 5 * time.Minute
)

// throughput loads both groups in turn. Both exist all the time, so that each has the same neighbour.
func (k *keyringBench) throughput(ctx context.Context) error {
	groups, err := k.both(ctx)
	if err != nil {
		return err
	}
	f := &throughputFigures{Connections: loadConnections, RowBytes: loadRowBytes, RunSeconds: loadRun.Seconds()}
	runs := k.runsOf(partThroughput)
	for n := range runs {
		order := slices.Clone(arms)
		if n%2 == 1 {
			slices.Reverse(order)
		}
		for _, a := range order {
			s, proof, err := loadOnce(ctx, groups[a.name], a)
			if err != nil {
				return fmt.Errorf("load the group %s: %w", a.name, err)
			}
			f.proven(a.name, proof)
			s.Group = a.name
			f.Samples = append(f.Samples, s)
			k.stage.Say("load, run %d of %d, %s: %.0f rows a second", n+1, runs, a.name, s.RowsPerSecond)
		}
		f.sum()
		f.origin = k.origin()
		k.figures.Throughput = f
		if err := k.write(); err != nil {
			return err
		}
	}
	return nil
}

// proven notes what was under load.
func (f *throughputFigures) proven(armName string, proof tableProof) {
	if armName == armEncrypted {
		f.EncryptedTable = proof
		return
	}
	f.PlainTable = proof
}

// loadOnce loads a group whose replicas have caught up, over an empty table that is encrypted as that of its arm must be.
func loadOnce(ctx context.Context, g *stage.Group, a arm) (throughputSample, tableProof, error) {
	var none throughputSample
	active, err := emptyTable(ctx, g)
	if err != nil {
		return none, tableProof{}, err
	}
	proof, err := a.prove(ctx, g, loadTable)
	if err != nil {
		return none, proof, err
	}
	if err := g.AwaitCaughtUp(ctx, active, loadDrain); err != nil {
		return none, proof, err
	}
	db, err := g.Dial(ctx, active)
	if err != nil {
		return none, proof, err
	}
	defer func() { _ = db.Close() }()
	s, err := closedLoop(ctx, db)
	if err != nil {
		return s, proof, err
	}
	after, err := g.Get(ctx)
	if err == nil && (after.Status.ActiveSite != active || proof.Site != active) {
		err = fmt.Errorf("the role moved from %s to %s under load: nothing was measured", active, after.Status.ActiveSite)
	}
	return s, proof, err
}

// emptyTable makes the table of the load on the active site, and names that.
func emptyTable(ctx context.Context, g *stage.Group) (string, error) {
	now, err := g.AwaitReady(ctx, bringUp)
	if err != nil {
		return "", err
	}
	if err := g.EnsureApp(ctx); err != nil {
		return "", err
	}
	statements := strings.Join([]string{
		"CREATE TABLE IF NOT EXISTS " + loadTable + " (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, payload VARBINARY(1024) NOT NULL)",
		"TRUNCATE TABLE " + loadTable,
	}, "; ")
	if _, err := g.RootSQL(ctx, now.Status.ActiveSite, statements); err != nil {
		return "", fmt.Errorf("make the table: %w", err)
	}
	return now.Status.ActiveSite, nil
}

// loader is one connection.
type loader struct {
	rows int
	took []float64
	err  error
}

// closedLoop has every connection send rows until the time is over. What is sent in the warm-up does not count.
func closedLoop(ctx context.Context, db *sql.DB) (throughputSample, error) {
	start, err := readProcessors()
	if err != nil {
		return throughputSample{}, err
	}
	from := time.Now().Add(loadWarmUp)
	until := from.Add(loadRun)
	loaders := make([]loader, loadConnections)
	var all sync.WaitGroup
	for i := range loaders {
		all.Go(func() { loaders[i].err = loaders[i].run(ctx, db, from, until) })
	}
	all.Wait()
	now, err := readProcessors()
	if err != nil {
		return throughputSample{}, err
	}
	s, err := sumLoad(loaders, loadRun)
	s.StolenPercent = start.stolenUntil(now)
	return s, err
}

func (l *loader) run(ctx context.Context, db *sql.DB, from, until time.Time) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }()
	insert, err := conn.PrepareContext(ctx, "INSERT INTO "+loadTable+" (payload) VALUES (?)")
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	defer func() { _ = insert.Close() }()
	payload := []byte(strings.Repeat("0123456789abcdef", loadRowBytes/16))
	for {
		sent := time.Now()
		if !sent.Before(until) {
			return ctx.Err()
		}
		if _, err := insert.ExecContext(ctx, payload); err != nil {
			return fmt.Errorf("insert: %w", err)
		}
		if acked := time.Now(); !sent.Before(from) && acked.Before(until) {
			l.rows++
			l.took = append(l.took, acked.Sub(sent).Seconds())
		}
	}
}

// sumLoad adds the connections up. With one that failed the load was another one.
func sumLoad(loaders []loader, took time.Duration) (throughputSample, error) {
	rows, slow := 0, []float64(nil)
	for _, l := range loaders {
		if l.err != nil {
			return throughputSample{}, l.err
		}
		rows, slow = rows+l.rows, append(slow, l.took...)
	}
	return throughputSample{RowsPerSecond: round(float64(rows) / took.Seconds()), P99CommitSeconds: round(percentile(slow, 99))}, nil
}
