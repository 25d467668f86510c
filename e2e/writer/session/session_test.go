// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"bytes"
	"context"
	"maps"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/e2e/resp"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// cache is a server with keys, which can forget and refuse.
type cache struct {
	mu       sync.Mutex
	keys     map[string]string
	conns    map[net.Conn]bool
	readOnly bool
}

func (c *cache) role() string {
	if c.readOnly {
		return "slave"
	}
	return "master"
}

func serve(t *testing.T) (*cache, string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cache{keys: map[string]string{}, conns: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.mu.Lock()
			c.conns[conn] = true
			c.mu.Unlock()
			wg.Go(func() { c.talk(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.cut()
		wg.Wait()
	})
	return c, l.Addr().String()
}

func (c *cache) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.Close()
	}
}

func (c *cache) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for {
		args, err := resp.ReadCommand(r)
		if err != nil {
			return
		}
		if _, err := conn.Write(c.answer(args)); err != nil {
			return
		}
	}
}

func (c *cache) answer(args []string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch args[0] {
	case "INFO":
		return resp.AppendBulk(nil, "# Server\r\nrun_id:0123456789abcdef\r\nrole:"+c.role()+"\r\n")
	case "MGET":
		out := []byte("*" + strconv.Itoa(len(args)-1) + "\r\n")
		for _, key := range args[1:] {
			if v, ok := c.keys[key]; ok {
				out = resp.AppendBulk(out, v)
			} else {
				out = append(out, "$-1\r\n"...)
			}
		}
		return out
	case "SET":
		if c.readOnly {
			return []byte("-READONLY You can't write against a read only replica.\r\n")
		}
		c.keys[args[1]] = args[2]
	}
	return []byte("+OK\r\n")
}

// write runs sessions until done returns, and tells what their journal says.
func write(t *testing.T, address string, during func()) journal.Journal {
	t.Helper()
	var out bytes.Buffer
	j := journal.NewWriter(&out, "w", load.Now(), time.Now())
	store := &Store{
		Writer: "w", Dialer: resp.Dialer{DialTimeout: time.Second, Timeout: time.Second},
		Lost: func(worker int, seq int64, found string) { j.Lost(worker, seq, load.Now(), found) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- load.Run(ctx, load.Config{
			Address: func() (string, error) { return address, nil }, Connect: store.Connect, Concurrency: 2, Rate: 1000, RefusedRate: 100,
		}, j)
	}()
	during()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got, err := journal.Read(&out)
	if err != nil || !got.Complete {
		t.Fatalf("journal: %v, whole %t", err, got.Complete)
	}
	return got
}

func TestSessionsThatAreKeptAreNotLost(t *testing.T) {
	c, address := serve(t)
	j := write(t, address, func() {
		for range 5 {
			time.Sleep(50 * time.Millisecond)
			c.cut() // clients must connect again, and find everything
		}
		time.Sleep(50 * time.Millisecond)
	})
	if len(j.Lost) != 0 || len(j.Commits) < 20 {
		t.Errorf("lost %+v of %d", j.Lost, len(j.Commits))
	}
}

func TestAKeyThatIsGoneOrOlderIsLostOnce(t *testing.T) {
	for name, spoil := range map[string]func(c *cache){
		"gone":  func(c *cache) { clear(c.keys) },
		"older": func(c *cache) { c.keys["session:w:0:1"] = "0" },
	} {
		t.Run(name, func(t *testing.T) {
			c, address := serve(t)
			j := write(t, address, func() {
				time.Sleep(100 * time.Millisecond)
				c.mu.Lock()
				spoil(c)
				c.mu.Unlock()
				c.cut()
				time.Sleep(100 * time.Millisecond)
				c.cut()
				time.Sleep(100 * time.Millisecond)
			})
			if len(j.Lost) == 0 {
				t.Fatal("nobody noticed")
			}
			seen := map[journal.Key]bool{}
			for _, l := range j.Lost {
				if seen[l.Key] {
					t.Errorf("%+v was told twice", l.Key)
				}
				seen[l.Key] = true
			}
		})
	}
}

func TestARefusedWriteIsNoneOfUnknownOutcome(t *testing.T) {
	c, address := serve(t)
	j := write(t, address, func() {
		time.Sleep(50 * time.Millisecond)
		c.mu.Lock()
		c.readOnly = true
		c.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
	})
	if len(j.Unknown) != 0 || j.Refused["READONLY"] == 0 {
		t.Errorf("unknown %d, refused %v", len(j.Unknown), j.Refused)
	}
}

func TestAReplicaThatIsBehindHasLostNothing(t *testing.T) {
	c, address := serve(t)
	kept := map[string]string{}
	j := write(t, address, func() {
		time.Sleep(50 * time.Millisecond)
		c.mu.Lock()
		maps.Copy(kept, c.keys)
		c.readOnly = true
		clear(c.keys)
		c.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
		c.mu.Lock()
		c.readOnly, c.keys = false, kept
		c.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
	})
	if len(j.Lost) != 0 {
		t.Errorf("lost %+v", j.Lost)
	}
}

func TestTheVerdictTellsSessionsFromKeysAndSeesTwoMasters(t *testing.T) {
	ack := func(site string, worker int, start, at time.Duration) journal.Commit {
		return journal.Commit{Key: journal.Key{Writer: "w", Worker: worker}, Server: journal.Server{Site: site}, Start: start, Ack: at}
	}
	j := journal.Journal{
		Writer:  "w",
		Commits: []journal.Commit{ack("a", 0, 1, 2), ack("a", 1, 5, 6), ack("b", 0, 7, 8), ack("a", 1, 9, 10)},
		Lost: []journal.Loss{
			{Key: journal.Key{Writer: "w", Worker: 1, Seq: 1}, At: 8}, {Key: journal.Key{Writer: "w", Worker: 1, Seq: 2}, At: 20},
		},
	}
	v := Judge(j)
	if v.Acked != 4 || v.Sessions != 2 || len(v.Lost) != 2 || v.LostSessions != 1 || len(v.Overlaps) != 0 {
		t.Errorf("verdict = %+v", v)
	}
	if n := LostBetween(j.Lost, 0, 10); n != 1 {
		t.Errorf("%d sessions lost in time", n)
	}
	j.Commits[2].Start = 5
	if v := Judge(j); len(v.Overlaps) == 0 {
		t.Error("two masters at the same time were not seen")
	}
}
