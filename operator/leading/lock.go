// SPDX-License-Identifier: Apache-2.0

package leading

import (
	"context"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Lock is the lock of the election that tells a Term what it sees and does. The election calls it from one goroutine.
type Lock struct {
	resourcelock.Interface
	Term *Term
	// last is what Get returned last, or what this process wrote since.
	last Record
}

// Get reads the Lease.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.last = recordOf(r)
		l.Term.Look(l.last, time.Now())
	}
	return r, raw, err
}

// Create makes the Lease. Who led by one that was deleted is not known.
func (l *Lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	asked := time.Now()
	err := l.Interface.Create(ctx, r)
	if err == nil {
		l.wrote(Record{}, r, asked)
	}
	return err
}

// Update renews the Lease, takes it over, or gives it back. The API server refuses it if the Lease is not what was read before.
func (l *Lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	from, asked := l.last, time.Now()
	err := l.Interface.Update(ctx, r)
	if err == nil {
		l.wrote(from, r, asked)
	}
	return err
}

func (l *Lock) wrote(from Record, r resourcelock.LeaderElectionRecord, asked time.Time) {
	l.last = recordOf(&r)
	if r.HolderIdentity != l.Identity() {
		return // it was given back
	}
	if from.Holder != r.HolderIdentity {
		l.Term.Took(from)
	}
	l.Term.Renewed(asked)
}

func recordOf(r *resourcelock.LeaderElectionRecord) Record {
	return Record{Holder: r.HolderIdentity, Renewed: r.RenewTime.UnixMicro()}
}

// LookEvery is how often a standby looks at the Lease, beside the election, which looks every one to two seconds: what it sees sooner it
// need not wait for.
const LookEvery = 500 * time.Millisecond

// Watch looks at the Lease until this process leads.
type Watch struct {
	Term   *Term
	Reader client.Reader
	Lease  client.ObjectKey
	// Elected is closed once this process leads.
	Elected <-chan struct{}
	Log     *slog.Logger
}

// NeedLeaderElection is false: it is for who does not lead yet.
func (w Watch) NeedLeaderElection() bool { return false }

// Start looks until ctx ends or this process leads.
func (w Watch) Start(ctx context.Context) error {
	ticker := time.NewTicker(LookEvery)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-w.Elected:
			return nil
		case <-ticker.C:
		}
	}
}

func (w Watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var lease coordinationv1.Lease
	if err := w.Reader.Get(ctx, w.Lease, &lease); err != nil {
		w.Log.Debug("look at the Lease", "error", err) // the election says so too, and what is not seen is waited for
		return
	}
	w.Term.Look(recordOf(resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)), time.Now())
}

// Answers is who answers sidecars.
type Answers interface {
	Answer(ask wire.Ask) (wire.Signed, error)
}

// Door lets nobody in while the Lease was not renewed lately (I4): the next leader counts from then on.
type Door struct {
	Answers
	Term *Term
}

// Answer answers while this process may speak. The lease of a site counts from when it asked, so an answer that leaves late, as of a process
// that stood still in between, gives no more than one that leaves now.
func (d Door) Answer(q wire.Ask) (wire.Signed, error) {
	if !d.Term.MaySpeak(time.Now()) {
		return "", wire.ErrNotLeading
	}
	return d.Answers.Answer(q)
}
