// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
)

// line is a server that answers by hand: with what answers gives for its n-th connection and the request on it, until that is empty.
func line(t *testing.T, answers func(conn, request int) string) (addr string, conns *atomic.Int32) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	conns = &atomic.Int32{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go speak(conn, int(conns.Add(1)), answers)
		}
	}()
	return listener.Addr().String(), conns
}

func speak(conn net.Conn, n int, answers func(conn, request int) string) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for request := 1; ; request++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		text := answers(n, request)
		if _, err = io.WriteString(conn, text); err != nil || text == "" {
			return
		}
	}
}

func report(site string) string { return answered("", `{"site":"`+site+`"}`) }

func answered(header, body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", header, len(body), body)
}

// TestAFrugalConnection covers what http.Transport does for others.
func TestAFrugalConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		answers func(conn, request int) string
		// good says which of three pushes succeed.
		good  [3]bool
		conns int32
	}{
		"is used again":                         {func(int, int) string { return report("a") }, [3]bool{true, true, true}, 1},
		"that was closed is made anew":          {func(_, request int) string { return []string{report("a"), ""}[request-1] }, [3]bool{true, true, true}, 3},
		"that is new is not tried again":        {func(int, int) string { return "" }, [3]bool{}, 3},
		"is closed when the server says so":     {func(int, int) string { return answered("Connection: close\r\n", `{}`) }, [3]bool{true, true, true}, 3},
		"is closed when more came than asked":   {func(int, int) string { return report("a") + "x" }, [3]bool{true, true, true}, 3},
		"is closed after half an answer":        {func(int, int) string { return "HTTP/1.1 200 OK\r\nContent-Len" + strings.Repeat("x", 1<<20) }, [3]bool{}, 3},
		"is closed after what nobody asked for": {func(int, int) string { return "HTTP/1.1 103 Early Hints\r\n\r\n" }, [3]bool{}, 3},
		"takes no endless head":                 {func(int, int) string { return answered("X: "+strings.Repeat("x", 32<<10)+"\r\n", `{}`) }, [3]bool{}, 3},
		"is closed when an answer is too large": {func(int, int) string {
			return answered("", strings.Repeat(" ", 2*wire.MaxReportBytes))
		}, [3]bool{}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			addr, conns := line(t, tc.answers)
			c := client.NewFrugal(nil)
			defer c.Close()
			for i, want := range tc.good {
				if _, err := c.PushActiveSite(t.Context(), addr, wire.ActiveSite{Statement: "s"}); (err == nil) != want {
					t.Errorf("push %d: %v", i, err)
				}
			}
			if got := conns.Load(); got != tc.conns {
				t.Errorf("%d connections, want %d", got, tc.conns)
			}
		})
	}
}

// TestNoAnswerComesLate: the answer to a push that was given up must not be taken for that to the next one.
func TestNoAnswerComesLate(t *testing.T) {
	slow, given := make(chan struct{}), make(chan struct{})
	addr, conns := line(t, func(conn, request int) string {
		if conn == 1 && request == 2 {
			close(given)
			<-slow
			return report("late")
		}
		return report("on time")
	})
	c := client.NewFrugal(nil)
	defer c.Close()
	push := func(ctx context.Context) (string, error) {
		r, err := c.PushActiveSite(ctx, addr, wire.ActiveSite{Statement: "s"})
		return r.Site, err
	}
	if site, err := push(t.Context()); site != "on time" {
		t.Fatalf("%q, %v", site, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-given; cancel() }()
	if _, err := push(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(slow)
	if site, err := push(t.Context()); site != "on time" || conns.Load() != 2 {
		t.Errorf("%q, %v over %d connections", site, err, conns.Load())
	}
}

// TestARequestThatWasGivenUpIsNotSent: a kept connection needs no dialing, which would find that out. A deadline of one request is
// none of the next one's.
func TestARequestThatWasGivenUpIsNotSent(t *testing.T) {
	var asked atomic.Int32
	addr, conns := line(t, func(int, int) string {
		asked.Add(1)
		return report("a")
	})
	c := client.NewFrugal(nil)
	defer c.Close()
	soon, cancel := context.WithTimeout(t.Context(), 2*time.Second) // far more than one push takes
	defer cancel()
	if _, err := c.PushActiveSite(soon, addr, wire.ActiveSite{Statement: "s"}); err != nil {
		t.Fatal(err)
	}
	<-soon.Done()
	if _, err := c.PushActiveSite(t.Context(), addr, wire.ActiveSite{Statement: "s"}); err != nil || conns.Load() != 1 {
		t.Errorf("%v over %d connections", err, conns.Load())
	}
	if _, err := c.PushActiveSite(soon, addr, wire.ActiveSite{Statement: "s"}); !errors.Is(err, context.DeadlineExceeded) || asked.Load() != 2 {
		t.Errorf("%v, the server was asked %d times", err, asked.Load())
	}
}

// TestPushesAtOnce: more than are kept of one address, each with its own answer.
func TestPushesAtOnce(t *testing.T) {
	var all sync.WaitGroup
	arrived := make(chan struct{}, 10)
	goOn := make(chan struct{})
	addr, conns := line(t, func(conn, request int) string {
		if request == 1 {
			arrived <- struct{}{}
			<-goOn
		}
		return report(fmt.Sprint(conn))
	})
	c := client.NewFrugal(nil)
	defer c.Close()
	var seen sync.Map
	for range 10 {
		all.Go(func() {
			r, err := c.PushActiveSite(t.Context(), addr, wire.ActiveSite{Statement: "s"})
			if _, twice := seen.LoadOrStore(r.Site, true); err != nil || twice {
				t.Errorf("%q, %v", r.Site, err)
			}
		})
	}
	for range 10 {
		<-arrived
	}
	close(goOn)
	all.Wait()
	for range 4 {
		if _, err := c.PushActiveSite(t.Context(), addr, wire.ActiveSite{Statement: "s"}); err != nil {
			t.Error(err)
		}
	}
	if n := conns.Load(); n != 10 {
		t.Errorf("%d connections", n)
	}
}

// pipes dials one server in the same process, whose connections can be counted.
func pipes(open *atomic.Int32) client.DialFunc {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		open.Add(1)
		go func() {
			speak(theirs, 0, func(int, int) string { return report("a") })
			open.Add(-1)
		}()
		return ours, nil
	}
}

// TestConnectionsOfSitesThatAreGoneAreClosed: pods come and go, and each has an address of its own.
func TestConnectionsOfSitesThatAreGoneAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		c := client.NewFrugal(pipes(&open))
		push := func(addr string) {
			if _, err := c.PushActiveSite(t.Context(), addr, wire.ActiveSite{Statement: "s"}); err != nil {
				t.Error(err)
			}
		}
		for i := range 10 {
			push(fmt.Sprintf("gone-%d:8080", i))
		}
		for range 35 {
			time.Sleep(2 * time.Second)
			push("here:8080")
		}
		synctest.Wait()
		if n := open.Load(); n != 1 {
			t.Errorf("%d connections are open, want that which is in use", n)
		}
		c.Close()
		synctest.Wait()
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections are open after Close", n)
		}
	})
}
