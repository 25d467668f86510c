// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// newcomers are clients that open a new connection to each site every second, with the authorities that were in ca.crt when they began. The writers keep
// their connections, and resume their sessions where they lose one: what a site shows to somebody new they do not see.
type newcomers struct {
	stop func()
	done sync.WaitGroup

	mu     sync.Mutex
	met    int
	failed []string
}

func watchNewcomers(t *testing.T, g *stage.Group) *newcomers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n, as := &newcomers{}, *g // the test reads other authorities later
	n.stop = sync.OnceFunc(func() { cancel(); n.done.Wait() })
	t.Cleanup(n.stop)
	n.done.Go(func() {
		for ctx.Err() == nil {
			for _, site := range stage.Sites {
				n.note(ctx, site, connect(ctx, &as, site))
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
	return n
}

func connect(ctx context.Context, g *stage.Group, site string) error {
	db, err := g.Dial(ctx, site)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return db.PingContext(ctx)
}

func (n *newcomers) note(ctx context.Context, site string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case ctx.Err() != nil: // the test ends, and the attempt with it
	case err != nil:
		n.failed = append(n.failed, fmt.Sprintf("%s %s: %v", time.Now().Format(time.TimeOnly), site, err))
	default:
		n.met++
	}
}

// end fails the test if a site did not let one of them in.
func (n *newcomers) end(t *testing.T) {
	t.Helper()
	n.stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.failed) > 0 || n.met == 0 {
		t.Errorf("%d clients were let in and %d not: %q", n.met, len(n.failed), n.failed[:min(len(n.failed), 10)])
	}
	t.Logf("%d new clients were let in", n.met)
}
