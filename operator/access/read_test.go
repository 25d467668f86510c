// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"strings"
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

// remembering is an API server whose memory answers what may come from it, and whose etcd answers the rest.
type remembering struct {
	client.Reader // etcd
	memory        client.Reader
	asked         []string
}

func (r *remembering) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	var o client.GetOptions
	if o.ApplyOptions(opts); o.Raw != nil && o.Raw.ResourceVersion == "0" {
		r.asked = append(r.asked, "memory")
		return r.memory.Get(ctx, key, obj)
	}
	r.asked = append(r.asked, "etcd")
	return r.Reader.Get(ctx, key, obj)
}

// The API server's memory saves a read of etcd while nothing changed. It is behind, at times: what it says is never taken for a Secret's content.
func TestTheServersMemoryOnlySaysThatNothingChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, other := reader(accounts()), reader(accounts())
		r := &remembering{Reader: first, memory: first}
		a := access.New(r, r)
		for i, c := range []struct {
			why          string
			etcd, memory client.Reader
			want         string
			password     string
		}{
			{"nothing is known", first, first, "etcd", "po"},
			{"nothing changed", first, first, "memory", "po"},
			{"the memory has another version, which is older", changed(t, other, "new"), first, "memory", "po"},
			{"the memory has it too", other, other, "memory etcd", "new"},
			{"the memory is that of another server, and behind", other, first, "memory etcd", "new"},
			{"nothing changed again", other, other, "memory", "new"},
			{"the memory has no such Secret", other, reader(), "memory etcd", "new"},
			{"it is gone", reader(), reader(), "memory etcd", "new"},
			{"it is gone, and the memory does not know that yet", reader(), other, "etcd", "new"},
			{"it is back", first, other, "etcd", "po"},
		} {
			if i > 0 {
				time.Sleep(access.SecretAge + time.Second)
			}
			r.Reader, r.memory, r.asked = c.etcd, c.memory, nil
			target, err := a.Site(t.Context(), group(false), "paris", "10.1.2.3")
			if err != nil || target.Password != c.password || strings.Join(r.asked, " ") != c.want {
				t.Errorf("%s: asked %v, password %q, %v; want %s, %q", c.why, r.asked, target.Password, err, c.want, c.password)
			}
		}
	})
}

// changed stores another password of the operator, in both of its places.
func changed(t *testing.T, c client.Client, password string) client.Client {
	t.Helper()
	secret := accounts()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	for key, value := range secret.Data {
		if string(value) == "po" {
			secret.Data[key] = []byte(password)
		}
	}
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return c
}
