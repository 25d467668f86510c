// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// speaker is a server that answers commands as it is told, in the protocol of the engines.
type speaker struct {
	addr string
	mu   sync.Mutex
	said []string
	// answer is what a command is answered, as it goes over the wire.
	answer func(command string) string
}

func speak(t *testing.T, answer func(command string) string) *speaker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &speaker{addr: l.Addr().String(), answer: answer}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *speaker) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for {
		command, err := read(r)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.said = append(s.said, command)
		s.mu.Unlock()
		if strings.HasPrefix(strings.ToUpper(command), "HELLO") {
			_, _ = io.WriteString(conn, "-ERR unknown command 'HELLO', with args beginning with: '2' 'AUTH' 'default' 'correct-horse'\r\n")
			continue
		}
		if strings.HasPrefix(strings.ToUpper(command), "AUTH") {
			_, _ = io.WriteString(conn, "+OK\r\n")
			continue
		}
		_, _ = io.WriteString(conn, s.answer(command))
	}
}

// read reads one command.
func read(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "*")))
	var words []string
	for range n {
		if _, err := r.ReadString('\n'); err != nil {
			return "", err
		}
		word, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		words = append(words, strings.TrimSpace(word))
	}
	return strings.Join(words, " "), nil
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func (s *speaker) client(t *testing.T, kind v1alpha1.CacheEngine) *Client {
	t.Helper()
	c := New(Target{Engine: kind, Addr: s.addr, Passwords: []string{"correct-horse"}})
	t.Cleanup(c.Close)
	return c
}

func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Dragonfly hands over by a command to the target, as its documentation says; it was not to be had here.
func TestDragonflyTakesOver(t *testing.T) {
	role := "replica"
	target := speak(t, func(command string) string {
		switch {
		case strings.HasPrefix(command, "REPLTAKEOVER"):
			role = "master"
			return "+OK\r\n"
		case command == "INFO":
			return bulk("# Server\r\ndragonfly_version:df-v1.30.0\r\n# Replication\r\nrole:" + role + "\r\n")
		}
		return "-ERR unknown command\r\n"
	})
	old := speak(t, func(string) string { return "-ERR the old one is not asked\r\n" })
	if err := TakeOver(timeout(t, 2*time.Second), old.client(t, v1alpha1.CacheDragonfly), target.client(t, v1alpha1.CacheDragonfly)); err != nil {
		t.Fatal(err)
	}
	if len(old.said) != 0 || !strings.Contains(strings.Join(target.said, "|"), "REPLTAKEOVER 1") {
		t.Errorf("the old one was told %v, the target %v", old.said, target.said)
	}
}

func TestDragonflyRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		want   error
	}{
		"it has no such command": {answer: "-ERR unknown command `REPLTAKEOVER`\r\n", want: ErrUnsupported},
		"it says yes and is not": {answer: "+OK\r\n", want: ErrNotTaken},
	} {
		target := speak(t, func(command string) string {
			if command == "INFO" {
				return bulk("role:replica\r\n")
			}
			return tc.answer
		})
		c := target.client(t, v1alpha1.CacheDragonfly)
		if err := TakeOver(timeout(t, 2*time.Second), c, c); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	if err := TakeOver(t.Context(), New(Target{}), New(Target{})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a deadline: %v", err)
	}
	cut := speak(t, func(string) string { return "-ERR syntax error\r\n" })
	if err := cut.client(t, v1alpha1.CacheDragonfly).CutClients(timeout(t, time.Second)); err != nil {
		t.Errorf("Dragonfly cannot cut clients by their type: %v", err)
	}
	if err := cut.client(t, v1alpha1.CacheValkey).CutClients(timeout(t, time.Second)); err == nil {
		t.Error("Valkey can, and was believed not to")
	}
}

// Whoever answers may be anybody: what is announced is not reserved, and no password and no page of text gets into an error.
func TestAnswersAreBounded(t *testing.T) {
	for name, answer := range map[string]string{
		"a text of a terabyte":       "$1099511627776\r\n",
		"a text just too long":       "$1048577\r\n",
		"a text of no length":        "$x\r\n",
		"a line without an end":      "+" + strings.Repeat("x", 64<<10),
		"very many elements":         "*2000000000\r\n",
		"a map of very many":         "%2000000000\r\n",
		"an empty line":              "\r\n",
		"a text that does not come":  "$100\r\nabc",
		"the password, and a letter": "-ERR you said correct-horse and " + strings.Repeat("y", 4000) + "\r\n",
		"no engine":                  bulk("hello: world"),
	} {
		t.Run(name, func(t *testing.T) {
			s := speak(t, func(string) string { return answer })
			_, err := s.client(t, v1alpha1.CacheValkey).Info(timeout(t, 500*time.Millisecond))
			if err == nil || strings.Contains(err.Error(), "correct-horse") || len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%v", err)
			}
		})
	}
	whole := speak(t, func(string) string { return bulk("role:master\r\nfill:" + strings.Repeat("x", 900<<10)) })
	c := whole.client(t, v1alpha1.CacheValkey)
	for range 3 { // the bound is for one answer, not for all of a connection
		if _, err := c.Info(timeout(t, 5*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTargetsShowNoPassword(t *testing.T) {
	target := Target{Engine: v1alpha1.CacheValkey, Addr: "10.0.0.1:6379", Passwords: []string{"correct-horse"}}
	if text := fmt.Sprintf("%v %+v %#v %s", target, target, target, target); strings.Contains(text, "horse") {
		t.Error(text)
	}
}

func TestWhatINFOSays(t *testing.T) {
	master := parse("# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.2\r\nrun_id:abc\r\n# Memory\r\nused_memory:1048576\r\n# Persistence\r\nloading:0\r\n# Replication\r\n" +
		"role:master\r\nconnected_slaves:2\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=40,lag=0,type=replica\r\nslave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\r\n" +
		"master_failover_state:no-failover\r\nmaster_repl_offset:42\r\n# Keyspace\r\ndb0:keys=5,expires=0,avg_ttl=0\r\ndb3:keys=2,expires=0\r\n")
	if master.Role != v1alpha1.CacheMaster || master.Run != "abc" || master.Version != "9.1.2" || master.Keys != 7 || master.Offset != 42 || master.UsedMemory != 1<<20 || master.FailingOver || master.Loading {
		t.Errorf("%+v", master)
	}
	if r, known := master.replicaOf([]string{"nobody", "10.0.0.2"}); !known || !r.Online || r.Port != 6379 || r.Offset != 40 {
		t.Errorf("%+v %t", r, known)
	}
	if r, known := master.replicaOf([]string{"10.0.0.3"}); !known || r.Online {
		t.Errorf("%+v %t", r, known)
	}
	if _, known := master.replicaOf([]string{"10.0.0.9", ""}); known {
		t.Error("a stranger is known")
	}
	replica := parse("role:slave\nmaster_host:orders-cache-east.shop.svc\nmaster_link_status:up\nmaster_sync_in_progress:1\nslave_repl_offset:40\nmaster_failover_state:failover-in-progress\nloading:1\n")
	if replica.Role != v1alpha1.CacheReplica || !replica.LinkUp || !replica.Syncing || !replica.FailingOver || !replica.Demoted || !replica.Loading || replica.Offset != 40 {
		t.Errorf("%+v", replica)
	}
	if waits := parse("role:master\nmaster_failover_state:waiting-for-sync\n"); !waits.FailingOver || waits.Demoted {
		t.Errorf("%+v", waits)
	}
	dragonfly := parse("dragonfly_version:df-v1.30.0\nrole:replica\nmaster_host:10.0.0.1\nmaster_link_status:down\n")
	if dragonfly.Role != v1alpha1.CacheReplica || dragonfly.LinkUp || dragonfly.Run != "" || dragonfly.Version != "df-v1.30.0" {
		t.Errorf("%+v", dragonfly)
	}
	if r := replicaText("ip=10.0.0.2,port=6379,state=stable_sync,lag=0"); !r.Online {
		t.Error("Dragonfly's word for online is not known")
	}
	if !SameHost("::ffff:10.0.0.1", "10.0.0.1") || !SameHost("A.svc.", "a.svc") || SameHost("", "") || SameHost("10.0.0.1", "10.0.0.2") {
		t.Error("hosts are compared wrongly")
	}
}

func replicaText(value string) Replica { return replica(value) }

// After a failure a connection is made anew, also to one that was away.
func TestAConnectionThatFailedIsNotUsedAgain(t *testing.T) {
	n := 0
	s := speak(t, func(string) string {
		if n++; n == 1 {
			return "$100\r\nhalf of it"
		}
		return bulk("role:master\r\n")
	})
	c := s.client(t, v1alpha1.CacheValkey)
	if _, err := c.Info(timeout(t, 200*time.Millisecond)); err == nil {
		t.Fatal("half an answer was believed")
	}
	if got, err := c.Info(timeout(t, time.Second)); err != nil || got.Role != v1alpha1.CacheMaster {
		t.Errorf("%+v %v", got, err)
	}
}
