// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"errors"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

const (
	// askTimeout bounds a question to the sidecar or the operator.
	askTimeout = 3 * time.Second
	// turnEvery is how often it is asked whose turn it is while something is under way.
	turnEvery = time.Second
	// turnMisses is how many answers in a row may fail to come until what is under way is given up.
	turnMisses = 10
)

// neighbours are whom the archiver asks: the sidecar of its pod, and the operator.
type neighbours interface {
	ArchiverTurn(ctx context.Context, baseURL string) (wire.ArchiverTurn, error)
}

// turn asks the sidecar whose turn it is.
func (p *Program) turn(ctx context.Context) (wire.ArchiverTurn, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	t, err := p.ask.ArchiverTurn(ctx, p.config.SidecarURL)
	if err != nil {
		return t, failf(SidecarUnreachable, "ask the sidecar whose turn it is: %w", err)
	}
	return t, nil
}

// stillMine is asked after a file was read and before it counts. I26: what was read is this site's history only if nobody else was opened
// meanwhile, and a site that is fenced does not say so of itself.
func (p *Program) stillMine(ctx context.Context, epoch int64) error {
	t, err := p.turn(ctx)
	if err != nil {
		return err
	}
	if !t.Active || t.Epoch != epoch {
		return errTurnOver
	}
	return nil
}

// whileMine is a context that ends as soon as it is this site's turn no more, so that nothing goes on for an hour that would not count.
func (p *Program) whileMine(ctx context.Context, epoch int64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(turnEvery)
		defer tick.Stop()
		for misses := 0; misses < turnMisses; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			switch err := p.stillMine(ctx, epoch); {
			case err == nil:
				misses = 0
			case errors.Is(err, errTurnOver):
				cancel(errTurnOver)
				return
			default:
				misses++
			}
		}
		cancel(failf(SidecarUnreachable, "the sidecar does not say whose turn it is"))
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-ended
	}
}

// cutoff asks the operator what may go, and what each epoch began with.
func (p *Program) cutoff(ctx context.Context) (wire.Cutoff, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return p.operator(ctx)
}

// cutoffOf is what the archive understands; the zero value prunes nothing.
func cutoffOf(c wire.Cutoff) archive.Cutoff {
	if c.Cutoff == nil {
		return archive.Cutoff{}
	}
	set, err := gtid.Parse(c.GTIDExecuted)
	if err != nil {
		return archive.Cutoff{} // the safe answer: nothing is pruned on a set that cannot be read
	}
	return archive.Cutoff{Backup: c.Backup, At: *c.Cutoff, Set: set}
}

// epochOf is one as the archive writes it.
func epochOf(e wire.CutoffEpoch) archive.Epoch {
	return archive.Epoch{Epoch: e.Epoch, Site: e.Site, ServerUUID: e.ServerUUID, PromotedAt: e.PromotedAt, Kind: e.Kind, GTIDExecuted: e.GTIDExecuted}
}
