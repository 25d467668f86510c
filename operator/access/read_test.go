// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/operator/access"
)

// slow is an API server that takes its time, and counts how many reads are under way.
type slow struct {
	client.Reader
	takes     time.Duration
	now, most atomic.Int32
	reads     atomic.Int32
}

func (s *slow) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	s.reads.Add(1)
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	select {
	case <-time.After(s.takes):
		return s.Reader.Get(ctx, key, obj, opts...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// An API server that hangs takes little of the time in which a server has to answer, or a failover has to make its step, and no look has to
// wait for it twice. One that is only slow is read all the same, in the background.
func TestAHangingAPIServerTakesNobodysTime(t *testing.T) {
	for name, takes := range map[string]time.Duration{"hangs": time.Hour, "is slow": 2 * time.Second} {
		secrets := &slow{Reader: reader(accounts(), newAuthority(t).secret(t))}
		a := access.New(secrets, secrets)
		synctest.Test(t, func(t *testing.T) {
			ask := func() time.Duration {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
				defer cancel()
				if _, err := a.Site(ctx, group(true), "paris", "10.1.2.3"); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if ctx.Err() != nil {
					t.Errorf("%s: the time of the look is over", name)
				}
				return time.Since(began)
			}
			ask()
			time.Sleep(time.Minute)
			secrets.takes, secrets.reads = takes, atomic.Int32{}
			if took := ask(); took == 0 || took > 650*time.Millisecond { // two Secrets
				t.Errorf("%s: the first look took %s", name, took)
			}
			if took := ask(); took != 0 {
				t.Errorf("%s: the next look took %s", name, took)
			}
			time.Sleep(3 * time.Second)
			before := secrets.reads.Load()
			took := ask()
			if again := secrets.reads.Load() != before; again != (name == "hangs") || !again && took != 0 {
				t.Errorf("%s: three seconds later the Secrets are read again: %t, in %s", name, again, took)
			}
			time.Sleep(time.Minute)
			if secrets.most.Load() > 2 {
				t.Errorf("%s: %d reads at the same time", name, secrets.most.Load())
			}
		})
	}
}

// Nothing is known of the Secret: its reader waits as long as it has time, and no longer.
func TestTheFirstReadOfASecretEnds(t *testing.T) {
	secrets := &slow{Reader: reader(accounts(), newAuthority(t).secret(t)), takes: time.Hour}
	a := access.New(secrets, secrets)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := a.Site(ctx, group(true), "paris", "10.1.2.3"); err == nil || time.Since(began) != 700*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		time.Sleep(time.Minute)
		began = time.Now()
		if _, err := a.Site(t.Context(), group(true), "paris", "10.1.2.3"); err == nil || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		time.Sleep(time.Minute)
		secrets.takes = 2 * time.Second
		if _, err := a.Site(t.Context(), group(true), "paris", "10.1.2.3"); err != nil {
			t.Errorf("a read that takes two seconds: %v", err)
		}
	})
}
