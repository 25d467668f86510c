// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// What is announced is refused at once, wherever the network cuts what it carries: after a whole text, after none, and among elements.
func TestAnnouncementsAreRead(t *testing.T) {
	const refused = "$2000000\r\n"
	long := strings.Repeat("x", longestLine)
	for _, kind := range "$=!;*%~>|" {
		if err := (&bounded{}).scan([]byte(string(kind) + "2000000\r\n")); err == nil {
			t.Errorf("%c announces what it likes", kind)
		}
	}
	for name, tc := range map[string]struct {
		parts   []string
		refused bool
	}{
		"an announcement in two parts":        {[]string{"$20000", "00\r\n"}, true},
		"a word in two parts":                 {[]string{"+O", "K\r\n"}, false},
		"after a text in parts":               {[]string{"$10\r\n", "01234", "56789\r\n", refused}, true},
		"inside of a text it is data":         {[]string{"$12\r\n" + refused + "\n\r\n+OK\r\n"}, false},
		"after a text of no length":           {[]string{"$0\r\n\r\n" + refused}, true},
		"after no text":                       {[]string{"$-1\r\n" + refused}, true},
		"after the number of elements":        {[]string{"*1\r\n" + refused}, true},
		"as many elements as there may be":    {[]string{"*1024\r\n"}, false},
		"as many in lists of lists":           {[]string{"*1023\r\n", "*1\r\n"}, false},
		"a list of long lists":                {[]string{"*1024\r\n*1024\r\n"}, true},
		"a list of long tables":               {[]string{"*2\r\n%1023\r\n"}, true},
		"one more":                            {[]string{"*1025\r\n"}, true},
		"no number":                           {[]string{"$x\r\n"}, true},
		"an empty line":                       {[]string{"\r\n"}, true},
		"a line as long as it may be":         {[]string{"+" + long[1:] + "\n"}, false},
		"a longer one":                        {[]string{"+" + long + "\n"}, true},
		"a longer one that has no end":        {[]string{"+" + long[1:], "x"}, true},
		"text as long as it may be":           {[]string{"$1048576\r\n"}, false},
		"more than was announced, in all":     {[]string{strings.Repeat("+OK\r\n", longestAnswer/5+1)}, true},
		"a number, an error and a plain word": {[]string{":99999999\r\n-ERR 99999999\r\n+OK\r\n"}, false},
	} {
		b := &bounded{}
		var err error
		for _, part := range tc.parts {
			if err = b.scan([]byte(part)); err != nil {
				break
			}
		}
		if (err != nil) != tc.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What INFO says without saying it: lines that only look like a replica or a database, numbers that are none, and too many of everything.
func TestWhatINFODoesNotSay(t *testing.T) {
	odd := parse("slave3\ndb1\n7:ip=10.0.0.2,port=6379\n8:keys=3\nslave_repl_offset:40\ndbsize:keys=5\nused_memory:99999999999999999999\nrole:slave\nmaster_host:10.0.0.1\n")
	if len(odd.Replicas) != 0 || odd.Keys != 0 || odd.UsedMemory != 0 || odd.MasterHost != "10.0.0.1" || odd.Offset != 40 || odd.FailingOver || odd.Demoted {
		t.Errorf("%+v", odd)
	}
	if got := parse("redis_version:7.2.4\n").Version; got != "7.2.4" {
		t.Errorf("version %q", got)
	}
	var many strings.Builder
	for i := range 70 {
		fmt.Fprintf(&many, "slave%d:ip=10.0.0.%d,port=6379,state=online\n", i, i)
	}
	if got := parse(many.String()); len(got.Replicas) != 64 {
		t.Errorf("%d replicas", len(got.Replicas))
	}
	for i := range 2000 {
		fmt.Fprintf(&many, "word%d:1\n", i)
	}
	if got := parse(many.String() + "role:master\n"); got.Role != "" {
		t.Errorf("of an answer without an end all is kept: %s", got.Role)
	}
	if !saysOffsets("df-vHEAD.5") || !saysOffsets("df-v1.x") || saysOffsets("df-v1.21.4") {
		t.Error("versions are read wrongly")
	}
	if syncs := parse("dragonfly_version:df-v1.34.1\nrole:replica\nmaster_link_status:down\nmaster_sync_in_progress:1\n"); !syncs.Syncing {
		t.Errorf("%+v", syncs)
	}
	if r := replica("ip=10.0.0.2,ip,port=6379"); r.Host != "10.0.0.2" {
		t.Errorf("%+v", r)
	}
	if !SameHost("10.0.0.1.", "10.0.0.1") || !SameHost("10.0.0.1", "10.0.0.1.") || SameHost("a.svc", "b.svc") || SameHost("a.svc", "10.0.0.1") {
		t.Error("hosts are compared wrongly")
	}
}

// An engine may call its process what it likes. What the operator writes into status stays short and visible.
func TestTheNameOfAProcessIsBounded(t *testing.T) {
	for name, tc := range map[string]struct{ says, want string }{
		"as the engines do": {strings.Repeat("0f", 20), strings.Repeat("0f", 20)},
		"as long as it may": {strings.Repeat("x", longestRun), strings.Repeat("x", longestRun)},
		"700 kB":            {strings.Repeat("x", 700_000), strings.Repeat("x", longestRun)},
		"nothing visible":   {"\x00\x1b\x7f \xff", ""},
		"half of it":        {"a\x00b c\u00e9d\t!", "abcd!"},
	} {
		if got := parse("role:master\nrun_id:" + tc.says + "\n"); got.Run != tc.want || got.Role != v1alpha1.CacheMaster {
			t.Errorf("%s: %.100q, want %.100q", name, got.Run, tc.want)
		}
	}
}

// Two connections that fail in the same way have the same text: no local port, on which the status would change with every look.
func TestErrorsOfConnectionsNameNoLocalPort(t *testing.T) {
	for _, resets := range []string{"HELLO", "INFO"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				r := bufio.NewReader(conn)
				for command, err := read(r); err == nil && !strings.HasPrefix(strings.ToUpper(command), resets); command, err = read(r) {
					_, _ = io.WriteString(conn, "-ERR unknown command\r\n")
				}
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
			}
		}()
		c := New(Target{Addr: l.Addr().String()})
		t.Cleanup(c.Close)
		for range 2 {
			_, err := c.Info(timeout(t, time.Second))
			if err == nil || err.Error() != l.Addr().String()+": read: connection reset by peer" || !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: %v", resets, err)
			}
		}
	}
}

type refusal struct{ error }

func (refusal) RedisError() {}

// What the engine answered leaves the connection as it is; after anything else it is not used again.
func TestWhatCountsAsAnAnswer(t *testing.T) {
	if answered(io.EOF) || answered(redis.Nil) || !answered(refusal{errors.New("ERR no")}) {
		t.Error("an answer is taken for none, or the other way round")
	}
	c := New(Target{Addr: "127.0.0.1:1"})
	t.Cleanup(c.Close)
	rdb, _ := c.conn()
	if c.forget(redis.NewClient(&redis.Options{})); c.rdb != rdb {
		t.Error("a connection that is newer than the one that failed was dropped")
	}
	if c.forget(rdb); c.rdb != nil {
		t.Error("a connection that failed is kept")
	}
}

// killer is a Dragonfly with so many clients, which answers each KILL so.
func killer(t *testing.T, clients int, kill string) *speaker {
	t.Helper()
	var list strings.Builder
	for i := range clients {
		fmt.Fprintf(&list, "id=%d addr=10.1.0.1:%d name=shop\n", i+100, i)
	}
	answer := bulk(list.String())
	if clients == 0 {
		answer = "$2097152\r\n" // more than a list may hold
	}
	return speak(t, func(command string) string {
		switch {
		case command == "CLIENT ID":
			return ":7\r\n"
		case command == "CLIENT LIST":
			return answer
		case strings.HasPrefix(command, "CLIENT KILL"):
			return kill
		case command == "INFO":
			return bulk("role:replica\r\n")
		}
		return "+PONG\r\n"
	})
}

func (s *speaker) heard(word string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, command := range s.said {
		if strings.HasPrefix(strings.ToUpper(command), word) {
			n++
		}
	}
	return n
}

// A client that has gone meanwhile keeps no other from being cut; a Dragonfly that cannot cut by number is not asked again and again.
func TestManyClientsOfDragonflyAreCut(t *testing.T) {
	for name, tc := range map[string]struct {
		clients int
		kill    string
		// All kills are sent at once. The client goes after an answer that is none, and how many of the others are heard by then is open.
		least, most int
		fails       bool
	}{
		"all":                             {300, ":1\r\n", 300, 300, false},
		"they have gone":                  {300, "-ERR No such client ID\r\n", 300, 300, false},
		"it cannot":                       {300, "-ERR syntax error\r\n", killsAtOnce, killsAtOnce, false},
		"more than a list, and it cannot": {0, "-ERR syntax error\r\n", 1, 1, true},
		"more than a list, and it hangs":  {0, "", 1, 1, true},
		"more than a list":                {0, ":9\r\n", 1, 1, false},
		"more than a list, and no answer": {0, "$x\r\n", 1, 1, false},
		"something else than an answer":   {3, "$x\r\n", 1, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := killer(t, tc.clients, tc.kill)
			c := s.client(t, v1alpha1.CacheDragonfly)
			if err := c.CutClients(timeout(t, time.Second)); (err != nil) != tc.fails {
				t.Errorf("%v", err)
			}
			if got := s.heard("CLIENT KILL"); got < tc.least || got > tc.most {
				t.Errorf("%d were cut, want %d to %d", got, tc.least, tc.most)
			}
			before := s.heard("HELLO")
			if _, err := c.Info(timeout(t, time.Second)); err != nil || s.heard("HELLO") == before {
				t.Errorf("a connection is used again that may have been cut: %v", err)
			}
		})
	}
}

// What cannot be asked first cuts nobody.
func TestDragonflyThatCannotBeAsked(t *testing.T) {
	for _, refuses := range []string{"PING", "CLIENT ID", "CLIENT LIST"} {
		s := speak(t, func(command string) string {
			switch command {
			case refuses:
				return "-ERR not now\r\n"
			case "CLIENT ID":
				return ":7\r\n"
			case "CLIENT LIST":
				return bulk("id=9 addr=10.1.0.1:1 name=shop\n")
			}
			return "+PONG\r\n"
		})
		err := s.client(t, v1alpha1.CacheDragonfly).CutClients(timeout(t, time.Second))
		if err == nil || !strings.Contains(err.Error(), "not now") || s.heard("CLIENT KILL") != 0 {
			t.Errorf("%s: %v, and %d were cut", refuses, err, s.heard("CLIENT KILL"))
		}
	}
	ctx, gone := context.WithCancel(t.Context())
	gone()
	if err := killer(t, 0, ":1\r\n").client(t, v1alpha1.CacheDragonfly).cutByAddress(ctx); err == nil {
		t.Error("nobody had time to ask, and clients count as cut")
	}
	if got := applications("id=9 id name=shop\n", 7); len(got) != 1 {
		t.Errorf("a word without a value is read as one: %v", got)
	}
}

// An engine that shows the certificate that it should is told nothing, and what one answers that does not renew is passed on.
func TestWhenAnEngineIsToldOfACertificate(t *testing.T) {
	s := speak(t, func(string) string { return "-ERR it may not be asked\r\n" })
	c := s.client(t, v1alpha1.CacheValkey)
	c.target.Certificate, c.shown = []byte("x"), []byte("x")
	if err := c.Renew(timeout(t, time.Second)); err != nil || len(s.said) != 0 {
		t.Errorf("%v, it was told %q", err, s.said)
	}
	c.shown = []byte("y")
	if err := c.Renew(timeout(t, time.Second)); err == nil || !strings.Contains(err.Error(), "it may not be asked") {
		t.Errorf("%v", err)
	}
	if c.show(nil); len(c.shown) == 0 {
		t.Error("a connection without a certificate is taken for one with")
	}
	files := speak(t, func(command string) string {
		if strings.HasPrefix(command, "CONFIG GET") {
			return "*8\r\n" + strings.Repeat(bulk("name")+bulk("/file"), 4)
		}
		return "+OK\r\n"
	})
	if err := files.client(t, v1alpha1.CacheValkey).touchFiles(timeout(t, time.Second)); err != nil || files.heard("CONFIG SET NAME /FILE NAME /FILE NAME /FILE NAME") != 0 || files.heard("CONFIG SET NAME /FILE NAME /FILE NAME /FILE") != 1 {
		t.Errorf("%v, it was told %q", err, files.said)
	}
}
