// SPDX-License-Identifier: Apache-2.0

package leading

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/mysql-mfg/mfg/api/wire"
)

// lease is the Lease as the API server keeps it.
type lease struct {
	mu      sync.Mutex
	version int
	record  resourcelock.LeaderElectionRecord
}

// path is the way of one process to the Lease: what it read last, and how the network treats it.
type path struct {
	*lease
	id      string
	read    int
	cut     atomic.Bool
	latency time.Duration
}

var errCut = errors.New("the API server cannot be reached")

// there is the way to the API server, back the way from it: what was written may never be known to who wrote it.
func (p *path) there(ctx context.Context) error {
	if p.cut.Load() {
		<-ctx.Done()
		return errCut
	}
	time.Sleep(p.latency)
	return nil
}

func (p *path) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := p.there(ctx); err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.version == 0 {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "mfg-operator")
	}
	p.read = p.version
	r := p.record
	raw, err := json.Marshal(r)
	return &r, raw, err
}

func (p *path) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return p.write(ctx, r, 0)
}

func (p *path) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return p.write(ctx, r, p.read)
}

func (p *path) write(ctx context.Context, r resourcelock.LeaderElectionRecord, on int) error {
	if err := p.there(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	if p.version != on {
		p.mu.Unlock()
		return errors.New("conflict")
	}
	p.version++
	p.record, p.read = r, p.version
	p.mu.Unlock()
	return p.there(ctx)
}

func (*path) RecordEvent(string) {}
func (p *path) Identity() string { return p.id }
func (p *path) Describe() string { return p.id }
func (p *path) patience() (c context.Context, end context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Second)
}

// replica is one process with the election of client-go, as the manager runs it.
type replica struct {
	*path
	term Term
	led  chan time.Time
}

func newReplica(ctx context.Context, t *testing.T, l *lease, id string, latency time.Duration) *replica {
	t.Helper()
	r := &replica{path: &path{lease: l, id: Promise(id), latency: latency}, term: Term{Lease: own, Own: Promise(id)}, led: make(chan time.Time, 1)}
	r.term.Claimed(group(own, start), time.Now())
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &Lock{Interface: r.path, Term: &r.term}, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { r.led <- time.Now() }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go elector.Run(ctx)
	go func() { // what Watch does
		look := &path{lease: l, id: r.id, latency: latency}
		for ctx.Err() == nil {
			limited, end := look.patience()
			if got, _, err := look.Get(limited); err == nil {
				r.term.Look(recordOf(got), time.Now())
			}
			end()
			time.Sleep(LookEvery)
		}
	}()
	return r
}

// ask asks a replica every 50 ms, and says when the last question was asked that got an answer.
func (r *replica) ask(ctx context.Context) *atomic.Pointer[time.Time] {
	var last atomic.Pointer[time.Time]
	door := Door{answers{}, &r.term}
	go func() {
		for ctx.Err() == nil {
			asked := time.Now()
			if _, err := door.Answer(wire.Ask{}); err == nil {
				last.Store(&asked)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return &last
}

// TestNobodyIsAnsweredAfterTheNextLeaderCounts covers I4 with the real election: wherever in its rhythm the leader is cut off from the API
// server, however slow the way there is, and although it goes on being asked, it answers no question that was asked later than the next
// leader assumes; and that one leads, and assumes it, early enough for the aim.
func TestNobodyIsAnsweredAfterTheNextLeaderCounts(t *testing.T) {
	for _, latency := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond} {
		for cutAt := 20 * time.Second; cutAt < 22*time.Second; cutAt += 130 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				l := &lease{}
				a := newReplica(ctx, t, l, "a", latency)
				<-a.led
				b := newReplica(ctx, t, l, "b", latency)
				last := a.ask(ctx)
				time.Sleep(cutAt)
				a.cut.Store(true)
				cut := time.Now()
				led := <-b.led
				former := b.term.Former(group(own, start), led)
				if former.IsZero() || last.Load().After(former) {
					t.Errorf("I4: latency %s, cut at %s: answered until %s, the next leader assumes %s", latency, cutAt, last.Load(), former)
				}
				// client-go draws each pause between two looks from 1 to 2.2 s. The last renewal is seen a pause and a look late, counts for
				// 15 s, and is followed by a pause, a look and the update that takes the Lease: each takes the way there and back.
				if took := led.Sub(cut); took > 19400*time.Millisecond+6*latency {
					t.Errorf("latency %s, cut at %s: the standby leads after %s", latency, cutAt, took)
				}
				if after := former.Sub(cut); latency < 200*time.Millisecond && after > 4*time.Second {
					t.Errorf("latency %s, cut at %s: it counts from %s after the cut", latency, cutAt, after)
				}
				a.cut.Store(false) // it thaws, so to say: it must still answer nobody
				time.Sleep(30 * time.Second)
				if last.Load().After(former) {
					t.Errorf("I4: latency %s, cut at %s: a deposed leader answers at %s", latency, cutAt, last.Load())
				}
				end()
				time.Sleep(time.Minute)
			})
		}
	}
}
