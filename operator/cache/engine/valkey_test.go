// SPDX-License-Identifier: Apache-2.0

//go:build valkey

package engine

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func TestTakeOver(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run("tls="+strconv.FormatBool(secure), func(t *testing.T) {
			master, replica := pair(t, secure)
			from, to := master.client(t), replica.client(t)
			began := time.Now()
			check(t, TakeOver(within(t, 2*time.Second), from, to))
			t.Logf("took over within %s", time.Since(began))
			if now := role(t, replica, v1alpha1.CacheMaster); now.Keys != 500 {
				t.Errorf("%d of 500 keys are there", now.Keys)
			}
			eventually(t, "the old master follows", func() bool {
				old, err := from.Info(short(t))
				return err == nil && old.Role == v1alpha1.CacheReplica && old.LinkUp && old.MasterHost == "127.0.0.1"
			})
			check(t, TakeOver(within(t, 2*time.Second), to, from)) // and back
			role(t, master, v1alpha1.CacheMaster)
		})
	}
}

// A replica confirms what it has received once a second, and a take-over waits for that with all writes held back: it is asked to at once.
// Of eight that waited, none would come to its end in less than half a second.
func TestTakeOverWaitsForNoSecond(t *testing.T) {
	master, replica := pair(t, true)
	from, to := master.client(t), replica.client(t)
	for i := range 8 {
		write(t, []*server{master, replica}[i%2], 1)
		if err := TakeOver(within(t, 650*time.Millisecond), from, to); err != nil {
			t.Errorf("take-over %d: %v", i, err)
			return
		}
		eventually(t, "the old master follows", func() bool {
			old, err := from.Info(short(t))
			return err == nil && old.Role == v1alpha1.CacheReplica && old.LinkUp
		})
		from, to = to, from
	}
}

// A target that hangs after the old master has let go: nobody takes writes until one is promoted by force.
func TestTakeOverOfAHungTarget(t *testing.T) {
	master, replica := pair(t, false, "--repl-ping-replica-period", "600")
	from, to := master.client(t), replica.client(t)
	eventually(t, "the replica has acknowledged everything", func() bool {
		now, err := from.Info(short(t))
		return err == nil && len(now.Replicas) == 1 && now.Replicas[0].Offset == now.Offset
	})
	replica.signal(t, syscall.SIGSTOP)
	if err := TakeOver(within(t, 2*time.Second), from, to); err == nil || errors.Is(err, ErrHung) {
		t.Errorf("a target that hangs already: %v: the old master must not let go", err)
	}
	role(t, master, v1alpha1.CacheMaster)
	began := time.Now()
	_, err := from.do(within(t, 2*time.Second), "FAILOVER", "TO", "127.0.0.1", strconv.Itoa(replica.port), "TIMEOUT", "1700")
	check(t, err)
	err = await(within(t, 2*time.Second), from, to, began.Add(1700*time.Millisecond))
	if took := time.Since(began); took > 2500*time.Millisecond {
		t.Errorf("it took %s, longer than its budget", took)
	}
	old, infoErr := from.Info(short(t))
	check(t, infoErr)
	t.Logf("%v after %s: the old master is a %s, failing over %t", err, time.Since(began), old.Role, old.FailingOver)
	if !errors.Is(err, ErrHung) || !old.Demoted || old.Role != v1alpha1.CacheReplica {
		t.Fatalf("a target that hangs: %v, and the old master is %+v", err, old)
	}
	check(t, from.Promote(short(t)))
	if now := role(t, master, v1alpha1.CacheMaster); now.Keys != 500 || now.FailingOver {
		t.Errorf("the old master was called back and is %+v", now)
	}
	write(t, master, 1)
	replica.signal(t, syscall.SIGCONT)
	check(t, to.Follow(within(t, 3*time.Second), "127.0.0.1", master.port))
	caughtUp(t, master, replica)
	role(t, master, v1alpha1.CacheMaster)
}

// Whoever asked has gone, and the server goes on without: what comes of it shows in the next look.
func TestTakeOverWhoseClientGaveUp(t *testing.T) {
	master, replica := pair(t, false)
	from, to := master.client(t), replica.client(t)
	err := TakeOver(within(t, 5*time.Millisecond), from, to)
	t.Logf("after 5 ms: %v", err)
	eventually(t, "one of them is the master and hands nothing over", func() bool {
		a, err := from.Info(short(t))
		b, err2 := to.Info(short(t))
		return err == nil && err2 == nil && !a.FailingOver && !b.FailingOver && (a.Role == v1alpha1.CacheMaster) != (b.Role == v1alpha1.CacheMaster)
	})
	a, err := from.Info(short(t))
	check(t, err)
	if a.Role == v1alpha1.CacheMaster {
		eventually(t, "it can be asked again", func() bool { return TakeOver(within(t, 2*time.Second), from, to) == nil })
	}
	if now := role(t, replica, v1alpha1.CacheMaster); now.Keys != 500 {
		t.Errorf("%d of 500 keys are there", now.Keys)
	}
}

// A hand-over that somebody began and that waits for a replica which lags is given up, not joined.
func TestTakeOverAfterOneThatWaits(t *testing.T) {
	master, replica := pair(t, false)
	from, to := master.client(t), replica.client(t)
	replica.signal(t, syscall.SIGSTOP)
	write(t, master, 3)
	_, err := from.do(short(t), "FAILOVER", "TO", "127.0.0.1", strconv.Itoa(replica.port), "TIMEOUT", "60000")
	check(t, err)
	if now := role(t, master, v1alpha1.CacheMaster); !now.FailingOver {
		t.Fatal("no hand-over waits")
	}
	replica.signal(t, syscall.SIGCONT)
	eventually(t, "the target takes over", func() bool {
		err := TakeOver(within(t, 2*time.Second), from, to)
		now, infoErr := to.Info(short(t))
		return (err == nil || infoErr == nil && now.Role == v1alpha1.CacheMaster)
	})
	role(t, replica, v1alpha1.CacheMaster)
}

// A target that lags does not take over within the budget: the old master goes on as if nothing had been.
func TestTakeOverThatIsTooSlow(t *testing.T) {
	master, replica := pair(t, false)
	from, to := master.client(t), replica.client(t)
	replica.signal(t, syscall.SIGSTOP)
	write(t, master, 3) // now the replica lags
	if err := TakeOver(within(t, time.Second), from, to); !errors.Is(err, ErrNotTaken) {
		t.Errorf("a target that does not answer: %v, want %v", err, ErrNotTaken)
	}
	began := time.Now()
	_, err := from.do(within(t, time.Second), "FAILOVER", "TO", "127.0.0.1", strconv.Itoa(replica.port), "TIMEOUT", "5000")
	check(t, err)
	err = await(within(t, time.Second), from, to, began.Add(700*time.Millisecond))
	if !errors.Is(err, ErrNotTaken) || time.Since(began) > 1100*time.Millisecond {
		t.Errorf("a target that lags: %v after %s, want %v", err, time.Since(began), ErrNotTaken)
	}
	if now := role(t, master, v1alpha1.CacheMaster); now.FailingOver {
		t.Error("the old master still hands over")
	}
	write(t, master, 1)
	replica.signal(t, syscall.SIGCONT)
}

func TestTakeOverRefusals(t *testing.T) {
	master, replica := pair(t, false)
	stranger := start(t, false)
	unknown := stranger.client(t)
	unknown.target.Hosts = []string{"192.0.2.1"}
	if err := TakeOver(within(t, time.Second), master.client(t), unknown); !errors.Is(err, ErrNotOnline) {
		t.Errorf("to one that does not follow: %v, want %v", err, ErrNotOnline)
	}
	from, to := master.client(t), replica.client(t)
	master.kill()
	if err := TakeOver(within(t, time.Second), from, to); err == nil {
		t.Error("a dead master handed over")
	}
	check(t, to.Promote(short(t)))
	if now := role(t, replica, v1alpha1.CacheMaster); now.Keys != 500 {
		t.Errorf("%d of 500 keys are there", now.Keys)
	}
}

// A full cache hands over, too.
func TestTakeOverOfAFullCache(t *testing.T) {
	master, replica := pair(t, false, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
	from, to := master.client(t), replica.client(t)
	// What the link takes for itself counts too, and is given back: it is full once a small write is refused as well.
	full := false
	for i := 0; i < 20000 && !full; i++ {
		if _, err := from.do(short(t), "SET", "big-"+strconv.Itoa(i), strings.Repeat("x", 1000)); err != nil {
			_, err = from.do(short(t), "SET", "one", "more")
			full = says(err, "oom")
		}
	}
	if !full {
		t.Fatal("the cache is not full")
	}
	caughtUp(t, master, replica)
	before := role(t, master, v1alpha1.CacheMaster)
	check(t, TakeOver(within(t, 2*time.Second), from, to))
	if now := role(t, replica, v1alpha1.CacheMaster); now.Keys != before.Keys {
		t.Errorf("%d of %d keys are there", now.Keys, before.Keys)
	}
}

func TestPasswords(t *testing.T) {
	s := start(t, false)
	wrong := s.client(t, "a-secret-that-is-wrong")
	_, err := wrong.Info(short(t))
	if !errors.Is(err, ErrPassword) || strings.Contains(err.Error(), "a-secret") {
		t.Errorf("with a wrong password: %v", err)
	}
	rotated := s.client(t, "the-new-password", password)
	_, err = rotated.Info(short(t))
	check(t, err)
	if rotated.Outdated() {
		t.Error("the engine was not given the new password")
	}
	_, err = s.client(t, "the-new-password").Info(short(t))
	check(t, err)
	if _, err := s.client(t).Info(short(t)); !errors.Is(err, ErrPassword) {
		t.Errorf("the old password is still taken: %v", err)
	}
}

func TestWithoutTrust(t *testing.T) {
	s := start(t, true)
	own := s.tls
	s.tls = own.Clone()
	s.tls.ServerName = "other.test"
	c := New(Target{Engine: v1alpha1.CacheValkey, Addr: s.addr(), Passwords: []string{password}, TLS: s.tls})
	defer c.Close()
	if _, err := c.Info(short(t)); err == nil {
		t.Error("a server with another name was believed")
	}
	plain := New(Target{Engine: v1alpha1.CacheValkey, Addr: s.addr(), Passwords: []string{password}})
	defer plain.Close()
	if _, err := plain.Info(short(t)); err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("without TLS: %v", err)
	}
	s.tls = own
}

// Applications that are connected to an old master are cut, those too that have subscribed and only listen, and this client goes on.
func TestCutClients(t *testing.T) {
	s := start(t, false)
	var apps []net.Conn
	buf := make([]byte, 256)
	for _, does := range []string{"PING", "SUBSCRIBE news", "PSUBSCRIBE n*"} {
		app, err := net.Dial("tcp", s.addr())
		check(t, err)
		defer func() { _ = app.Close() }()
		_, err = app.Write([]byte("AUTH " + password + "\r\n" + does + "\r\n"))
		check(t, err)
		_, err = app.Read(buf)
		check(t, err)
		apps = append(apps, app)
	}
	c := s.client(t)
	_, err := c.Info(short(t))
	check(t, err)
	check(t, c.CutClients(short(t)))
	for i, app := range apps {
		check(t, app.SetReadDeadline(time.Now().Add(2*time.Second)))
		var err error
		for err == nil {
			_, err = app.Read(buf)
		}
		if late, is := errors.AsType[net.Error](err); is && late.Timeout() {
			t.Errorf("application %d is still connected", i)
		}
	}
	_, err = c.Info(short(t))
	check(t, err)
}

// One that begins as a replica of nobody lets nobody copy its emptiness: replicas of it keep what they have.
func TestAMasterThatBeganAgain(t *testing.T) {
	master, replica := pair(t, false)
	master.kill()
	master.args = append(master.args, "--replicaof", "127.0.0.1 1")
	master.run(t)
	time.Sleep(2 * time.Second) // the replica asks once a second
	if now := role(t, replica, v1alpha1.CacheReplica); now.Keys != 500 || now.LinkUp {
		t.Errorf("the replica has %d keys, link up %t", now.Keys, now.LinkUp)
	}
	check(t, replica.client(t).Promote(short(t)))
	check(t, master.client(t).Follow(within(t, 3*time.Second), "127.0.0.1", replica.port))
	caughtUp(t, replica, master)
}

func TestAHungServer(t *testing.T) {
	s := start(t, false)
	c := s.client(t)
	s.signal(t, syscall.SIGSTOP)
	defer s.signal(t, syscall.SIGCONT)
	began := time.Now()
	if _, err := c.Info(within(t, 300*time.Millisecond)); err == nil || time.Since(began) > 400*time.Millisecond {
		t.Errorf("it answered %v after %s", err, time.Since(began))
	}
	if _, err := c.Info(within(t, 300*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("that it does not answer in time cannot be told from other errors: %v", err)
	}
	if !c.Listens(short(t)) {
		t.Error("its port counts as closed: a server that stands still is told from one that cannot be reached by that")
	}
	gone := New(Target{Engine: v1alpha1.CacheValkey, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))})
	if gone.Listens(short(t)) {
		t.Error("a closed port counts as open")
	}
}
