// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// story runs a test in a world whose time passes at once.
func story(t *testing.T, tell func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		tell(t, w)
		w.end()
	})
}

// I3: the startup fence comes before any question, and then only the operator's answer opens.
func TestItFencesBeforeItAsksI3(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.superReadOnly, w.readOnly = false, false
		w.operator = told(5, "a")
		w.boot()
		w.after(time.Second)
		w.mustBe("writable")
		want := []string{"fenced", "operator asked", "kept epoch 5", "marked 100/1", "opened"}
		if got := w.happenings(); !slices.Equal(got[:len(want)], want) {
			t.Errorf("got %q", got)
		}
		if last := w.agent.now().Last(); last != (fence.LastFence{Cause: wire.FenceStartup, Stage: wire.FenceReadOnly}) {
			t.Errorf("got %+v", last)
		}
	})
}

// The log says what is seen and what the sidecar does about it: once for each target, and once for each state of MySQL.
func TestTheLogSaysWhatTheSidecarDoes(t *testing.T) {
	var said bytes.Buffer
	story(t, func(t *testing.T, w *world) {
		w.said = &said
		w.boot()
		w.after(10 * time.Second)
	})
	for _, want := range []string{`msg="no usable answer, asking again" target=operator result=`, `msg="MySQL is in another state, checking its fence" mysql=read-only`} {
		if n := strings.Count(said.String(), want); n != 1 {
			t.Errorf("%q is said %d times in:\n%s", want, n, said.String())
		}
	}
}

func TestItStaysClosedWithoutTheOperatorI3(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		// Peers relay, and somebody pushes: neither opens.
		w.peers["b:8090"] = sign(t, authority, told(5, "a"))
		w.boot()
		w.after(time.Second)
		r := w.push(told(5, "a"))
		if r.Writable || r.Message == "" || r.Epoch != 5 {
			t.Errorf("got %+v", r)
		}
		w.after(time.Minute)
		w.mustBe("read-only")
		w.do(func() { w.operator, w.oldNonce = told(5, "a"), true })
		w.after(time.Minute)
		w.mustBe("read-only")
		w.do(func() { w.oldNonce = false })
		w.after(3 * time.Second)
		w.mustBe("writable")
	})
}

func TestAMysqldThatComesBackIsOpenedWithinASecond(t *testing.T) {
	story(t, func(_ *testing.T, w *world) {
		w.bootOpen()
		w.do(func() { w.pid = 0 })
		w.after(3 * time.Second)
		w.do(func() { w.startMysqld(101) })
		w.after(time.Second)
		w.mustBe("writable")
	})
}

// I1, I2, I5: the push fences, the epoch is durable, and the answer tells both.
func TestAPushFencesAtOnceI1I2I5(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		began := time.Now()
		r := w.push(told(6, "b"))
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if w.kept.Statement.Epoch != 6 || !r.FencedUnder(6) || r.FenceStage != wire.FenceReadOnly || r.FenceCause != wire.FenceMismatch {
			t.Errorf("kept %d, report %+v", w.kept.Statement.Epoch, r)
		}
		if r.GTIDExecuted == "" || r.ServerUUID == "" || r.Site != "a" || r.BootID != "boot-1" || r.PodUID != "pod-1" || r.VolumeID != "volume-1" || r.ObservedAt.IsZero() {
			t.Errorf("report %+v", r)
		}
		// The operator still answers with the old epoch, as a former leader might: nothing opens.
		w.after(10 * time.Second)
		w.mustBe("read-only")
	})
}

func TestAPushThatNamesThisSiteOpensOnAFreshAnswer(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.boot()
		w.after(time.Second)
		w.do(func() { w.operator = told(6, "a") })
		if r := w.push(told(6, "a")); !r.Writable || r.Epoch != 6 || r.Message != "" {
			t.Errorf("got %+v", r)
		}
		w.mustBe("writable")
	})
}

func TestHoldOpensNothingAndClosesNothing(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(6, "a")
		w.operator.Hold = true
		w.boot()
		held := told(6, "a")
		held.Hold = true
		if r := w.push(held); r.Writable || r.Message != "" {
			t.Errorf("got %+v", r)
		}
		w.after(time.Minute)
		w.mustBe("read-only")
		w.do(func() { w.operator.Hold = false })
		w.after(3 * time.Second)
		w.mustBe("writable")
		w.do(func() { w.operator.Hold = true })
		w.after(time.Minute)
		w.mustBe("writable")
	})
}

// I4: the fence comes leaseTimeout after the last good question was sent, not at the next tick.
func TestIsolationFencesAtTheEndOfTheLeaseI4(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		// A lease that ends between two looks at MySQL: nothing but the timer is exact enough.
		w.do(func() { w.operator.LeaseTimeoutMillis = 19_700 })
		w.after(5100 * time.Millisecond) // asked last at 6 s, now it is 6.1 s
		w.do(func() { w.operator = wire.Statement{} })
		w.after(19_550 * time.Millisecond)
		w.mustBe("writable")
		w.after(100 * time.Millisecond)
		w.mustBe("read-only")
		if last := w.agent.now().Last(); last.Cause != wire.FenceIsolation {
			t.Errorf("got %+v", last)
		}
		// A peer that is back gives a lease, but no right to open (I3).
		w.do(func() { w.peers["b:8090"] = sign(t, authority, told(5, "a")) })
		w.after(time.Minute)
		w.mustBe("read-only")
		w.do(func() { w.operator = told(5, "a") })
		w.after(3 * time.Second)
		w.mustBe("writable")
	})
}

// I4: one reachable peer is enough, but not one that knows only older epochs, and not by pushes.
func TestAPeerKeepsTheSiteOpenI4(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.do(func() {
			w.operator = wire.Statement{}
			w.peers["c:8090"] = sign(t, authority, told(5, "a"))
		})
		w.after(5 * time.Minute)
		w.mustBe("writable")
		w.do(func() {
			w.peers["b:8090"] = sign(t, authority, told(4, "a"))
			w.peers["c:8090"] = sign(t, stranger, told(5, "a"))
		})
		w.after(10 * time.Second)
		w.push(told(5, "a"))
		w.after(10100 * time.Millisecond)
		w.mustBe("read-only")
	})
}

// I2: the peer that acknowledged the newer epoch fences this site.
func TestAPeersNewerStatementFencesI2(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.do(func() {
			w.operator = wire.Statement{}
			w.peers["c:8090"] = sign(t, authority, told(6, "b"))
		})
		w.after(2100 * time.Millisecond)
		w.mustBe("read-only")
	})
}

func TestAWindowIsLeftAloneAndEnds(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.operator.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: time.Now().Add(time.Minute)}}
		w.boot()
		w.after(time.Second)
		w.do(func() { w.superReadOnly, w.offline = false, true })
		w.do(func() { w.operator.ActiveSite = "" }) // and the operator is away
		w.after(58 * time.Second)
		w.mustBe("in a window")
		w.after(1100 * time.Millisecond)
		w.mustBe("read-only")
		if last := w.agent.now().Last(); last.Cause != wire.FenceWindowEnd {
			t.Errorf("got %+v", last)
		}
	})
}

// I3: somebody sets offline_mode on the open active site. It is opened again, on the operator's fresh answer alone.
func TestClientsAreLetInAgainI3(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.do(func() { w.offline, w.events = true, nil })
		w.after(1100 * time.Millisecond)
		w.mustBe("writable")
		if got := w.happenings(); !slices.Contains(got, "operator asked") || !slices.Contains(got, "opened") || slices.Contains(got, "fenced") {
			t.Errorf("events: %q", got)
		}
		// Under a hold nobody is let in, and nobody is asked about it all the time.
		w.do(func() { w.operator.Hold = true })
		w.after(3 * time.Second)
		w.do(func() { w.offline, w.events = true, nil })
		w.after(10 * time.Second)
		w.mustBe("in a window")
		if asked := len(w.happenings()); asked > 6 {
			t.Errorf("%d events within 10 s: %q", asked, w.happenings())
		}
	})
}

// I4: a sidecar that ends leaves no open MySQL behind.
func TestItFencesWhenItIsToldToEndI4(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.end()
		w.mustBe("read-only")
		if last := w.agent.now().Last(); last.Cause != wire.FenceShutdown {
			t.Errorf("got %+v", last)
		}
	})
}

func TestAnOldPodsMysqldOnTheVolumeIsNotTakenForNone(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.do(func() { w.pid, w.lockedByOther = 0, true })
		w.operator = told(5, "b")
		w.boot()
		if r := w.push(told(6, "b")); !r.MysqldRunning || r.FencedUnder(6) || !w.agent.now().Exposed() {
			t.Errorf("somebody holds the datadir: %+v", r)
		}
		w.do(func() { w.lockedByOther = false })
		w.after(time.Second)
		// A site that lost its volume is told by the name of the new one, whether or not MySQL runs on it.
		if r := w.push(told(6, "b")); r.MysqldRunning || !r.FencedUnder(6) || r.VolumeID != "volume-1" {
			t.Errorf("nobody does any more: %+v", r)
		}
	})
}

// I2: MySQL cannot start again. Whenever the operator asks, the report is proof, and says since when there is trouble.
func TestACrashLoopIsReportedI2(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.do(func() { w.pid = 0 })
		w.after(time.Second)
		for try := range 3 {
			w.do(func() { w.startMysqld(101 + try); w.silent = true })
			w.after(1200 * time.Millisecond)
			r := w.push(told(6, "b"))
			if low, high := int64(2000+2000*try), int64(5000+3000*try); !r.MysqldRunning || !r.FencedUnder(6) || r.SilentMillis < low || r.SilentMillis > high {
				t.Errorf("try %d: %+v", try, r)
			}
			w.do(func() { w.pid = 0 })
			w.after(time.Second)
		}
		w.do(func() { w.startMysqld(110) })
		w.after(time.Second)
		if r := w.push(told(6, "b")); !r.Answered || r.SilentMillis != 0 || r.Fenced {
			t.Errorf("it is back: %+v", r)
		}
	})
}

func TestHealthAndReadiness(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		check := func(target string, want int) {
			t.Helper()
			if code, _ := w.request("GET", target, nil); code != want {
				t.Errorf("%s: %d, want %d", target, code, want)
			}
		}
		check(wire.PathHealthz, 200)
		check(wire.PathReadyz, 200)
		w.do(func() { w.pid = 0 })
		w.after(time.Second)
		check(wire.PathHealthz, 200)
		check(wire.PathReadyz, 503)
		w.do(func() { w.startMysqld(101) })
		w.after(time.Second)
		check(wire.PathReadyz, 200)
		// What was seen long ago says nothing of now: the loop that looks at MySQL hangs.
		w.agent.mu.Lock()
		w.agent.looked -= time.Minute
		w.agent.mu.Unlock()
		check(wire.PathReadyz, 503)
		// The loops stop: so does the heartbeat.
		w.end()
		w.after(11 * time.Second)
		check(wire.PathHealthz, 503)
	})
}

func TestMetricsAreWellFormedAndTrue(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.push(told(6, "b"))
		problems, err := testutil.GatherAndLint(w.agent.metrics.registry)
		if err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
		m := w.agent.metrics
		if got := testutil.ToFloat64(m.fences.WithLabelValues("Mismatch", "ReadOnly")); got != 1 {
			t.Errorf("fences: %v", got)
		}
		if got := testutil.ToFloat64(m.openings.WithLabelValues(string(fence.Done))); got != 1 {
			t.Errorf("openings: %v", got)
		}
		if got := testutil.ToFloat64(m.exchanges.WithLabelValues("operator", resultOK)); got < 1 {
			t.Errorf("exchanges: %v", got)
		}
		if code, body := w.request("GET", wire.PathMetrics, nil); code != 200 || !containsLine(body, "sidecar_epoch 6") {
			t.Errorf("%d %s", code, body)
		}
	})
}

func containsLine(body []byte, want string) bool {
	return slices.Contains(splitLines(string(body)), want)
}

func TestOutcomesOfOpenWritesI1(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want fence.Outcome
	}{
		"nothing":     {nil, fence.Done},
		"the server":  {&mysqldriver.MySQLError{Number: 1290}, fence.Failed},
		"read back":   {errors.New("read back: read_only is true"), fence.Failed},
		"replicates":  {fmt.Errorf("open writes: %w", mysql.ErrReplicaConfigured), fence.Refused},
		"deadline":    {fmt.Errorf("open writes: %w", context.DeadlineExceeded), fence.Unsure},
		"given up":    {context.Canceled, fence.Unsure},
		"bad":         {driver.ErrBadConn, fence.Unsure},
		"ended":       {io.EOF, fence.Unsure},
		"ended early": {io.ErrUnexpectedEOF, fence.Unsure},
		"connection":  {mysqldriver.ErrInvalidConn, fence.Unsure},
		"dial failed": {dialError(t), fence.Refused},
		// The statement was sent: it may still be under way inside mysqld.
		"reset while reading": {&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, fence.Unsure},
		"reset while writing": {fmt.Errorf("open writes: %w", &net.OpError{Op: "write", Net: "unix", Err: syscall.EPIPE}), fence.Unsure},
	} {
		if got := outcomeOf(tc.err); got != tc.want {
			t.Errorf("I1: %s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Site: fence.Site{Namespace: "n", Group: "g", Name: "a"}, Lease: 20 * time.Second,
		PeerCheck: 2 * time.Second, FenceTimeout: 2 * time.Second, Watchdog: &dog{}}
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no site":                 func(c *Config) { c.Site.Name = "" },
		"no watchdog":             func(c *Config) { c.Watchdog = nil },
		"no interval":             func(c *Config) { c.PeerCheck = 0 },
		"lease within two checks": func(c *Config) { c.Lease = 4 * time.Second },
		"lease within an opening": func(c *Config) { c.PeerCheck, c.Lease = time.Millisecond, 3500*time.Millisecond },
	} {
		c := good
		change(&c)
		if c.validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAVolumeOfAnotherGroupIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group, namespace := told(9, "a"), told(9, "a")
		group.Group, namespace.Namespace = "bills", "lab"
		for name, s := range map[string]wire.Statement{"group": group, "namespace": namespace} {
			w := newWorld(t)
			w.kept = fence.Kept{Statement: s}
			_, err := New(Config{
				Site: fence.Site{Namespace: "shop", Group: "orders", Name: "a"}, Volume: w, Verify: verify, Watchdog: &w.dog,
				Lease: 20 * time.Second, PeerCheck: time.Second, FenceTimeout: time.Second,
				Clock: func() fence.Instant { return fence.Instant{} }, Log: slog.New(slog.DiscardHandler),
			})
			if err == nil {
				t.Errorf("another %s: its epochs mean nothing here", name)
			}
		}
	})
}
