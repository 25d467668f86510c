// SPDX-License-Identifier: Apache-2.0

// Command demo shows the main job on a real cluster on this machine: a three-site group comes up, loses its active
// site's node under load, and goes on, with every acknowledged row accounted for and never two writers. It prints the
// closing line only if all of it is proven, and fails otherwise. The cluster stays up.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	namespace = "shop"
	name      = "orders"

	// bringUp bounds how long three sites may take to be made, cloned and attached.
	bringUp = 6 * time.Minute
	// writeBefore is how long rows are written before the fault, and writeAfter how long once another site took over.
	writeBefore, writeAfter = 10 * time.Second, 5 * time.Second
	// failover bounds how long the role may take to move.
	failover = 2 * time.Minute
	// comeBack bounds how long the old active site may take to be seen again.
	comeBack = 4 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	s, err := stage.Open(ctx, out)
	if err != nil {
		return err
	}
	if err := s.InstallOperator(ctx); err != nil {
		return err
	}
	s.Say("creating group %s in namespace %s (chart charts/mysql-failover-group)", name, namespace)
	id, err := identity(ctx, s)
	if err != nil {
		return err
	}
	g, err := s.EnsureGroup(ctx, namespace, name, specification(id))
	if err != nil {
		return err
	}
	// Now, because its image can be compiled while the sites come up.
	if err := startStorage(ctx, s, id); err != nil {
		return err
	}
	if err := show(ctx, g, out); err != nil {
		g.Diagnose(ctx, "demo")
		return err
	}
	return nil
}

// show runs the story on a group and prints its end.
func show(ctx context.Context, g *stage.Group, out io.Writer) error {
	group, err := g.AwaitReady(ctx, bringUp)
	if err != nil {
		return err
	}
	if _, err := g.ReadMadeAuthorities(ctx); err != nil {
		return err
	}
	from := group.Status.ActiveSite
	g.Say("ready: %s is active; starting one writer through the Service and one directly at every site", from)
	w, err := g.StartWitnesses(ctx, "demo")
	if err != nil {
		return err
	}
	defer func() { _ = w.Abandon(context.WithoutCancel(ctx)) }()
	if err := wait(ctx, writeBefore); err != nil {
		return err
	}
	fault, err := stage.FaultNamed("node-kill")
	if err != nil {
		return err
	}
	g.Say("killing node %s, which runs the active site (bin/lab node kill %s)", from, from)
	quiet := g.Narrate(ctx)
	defer quiet()
	at, err := g.Break(ctx, fault, from)
	if err != nil {
		return err
	}
	if err := w.AwaitRecovery(ctx, fault, failover); err != nil {
		return err
	}
	if err := errors.Join(wait(ctx, writeAfter), w.StopService(ctx)); err != nil {
		return err
	}
	g.Say("bringing node %s back, to learn what it had that nobody else has", from)
	if err := g.Undo(ctx, fault, from); err != nil {
		return err
	}
	record, err := g.AwaitExactLoss(ctx, comeBack)
	if err != nil {
		return err
	}
	quiet()
	testimony, err := w.Stop(ctx)
	if err != nil {
		return err
	}
	v, err := w.Judge(ctx, testimony, at)
	if err != nil {
		return err
	}
	if err := prove(ctx, g, v); err != nil {
		return err
	}
	printTimeline(out, timeline(v, testimony, at))
	explainLoss(out, v, record.LostTransactions)
	printNext(out, g, v.To, v.From, record.LostTransactions)
	fmt.Fprintln(out, summary(v, record.LostTransactions))
	return nil
}

// prove checks everything that the closing line says.
func prove(ctx context.Context, g *stage.Group, v stage.Verdict) error {
	if len(v.Records) != 1 || v.From == v.To {
		return fmt.Errorf("one failover was to be seen, status.failovers has %d since the start (%s -> %s)", len(v.Records), v.From, v.To)
	}
	if err := v.CheckWriters(); err != nil {
		return err
	}
	if v.Pause.From != v.From || v.Pause.To != v.To {
		return fmt.Errorf("the longest pause of the clients was from %s to %s, not from %s to %s",
			v.Pause.From, v.Pause.To, v.From, v.To)
	}
	return g.CheckLoss(ctx, v.Records[0], v.Missing)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
