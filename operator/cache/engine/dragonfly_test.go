// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
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
}

// Dragonfly cuts clients by their numbers only: this client and replicas stay. With more clients than a list may hold it is told to cut all
// that came by its address.
func TestHowDragonflyCutsClients(t *testing.T) {
	list := "id=3 addr=10.1.0.1:99 laddr=10.0.0.1:6379 fd=9 name= age=3 idle=1 phase=readsock\r\n" +
		"id=7 addr=10.1.0.2:98 laddr=10.0.0.1:6379 name= phase=process\nid=8 addr=10.1.0.3:97 name=repl_ctrl_1\nid=9 addr=10.1.0.4:96 name=shop\n\nid=x\n"
	for name, tc := range map[string]struct {
		kill, list string
		kills      []string
		fails      bool
	}{
		"some":               {kill: ":1\r\n", list: bulk(list), kills: []string{"ID 3", "ID 9"}},
		"nobody":             {kill: ":1\r\n", list: bulk("id=7 addr=10.1.0.2:98 name="), kills: nil},
		"more than a list":   {kill: ":1\r\n", list: "$2097152\r\n", kills: []string{"LADDR "}},
		"an old one":         {kill: "-ERR syntax error\r\n", list: bulk(list), kills: []string{"ID 3", "ID 9"}},
		"a list that breaks": {kill: ":1\r\n", list: "$100\r\nabc", kills: nil, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := speak(t, func(command string) string {
				switch {
				case command == "CLIENT ID":
					return ":7\r\n"
				case command == "CLIENT LIST":
					return tc.list
				case strings.HasPrefix(command, "CLIENT KILL"):
					return tc.kill
				}
				return "+PONG\r\n"
			})
			err := s.client(t, v1alpha1.CacheDragonfly).CutClients(timeout(t, time.Second))
			if (err != nil) != tc.fails {
				t.Errorf("%v", err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			var kills []string
			for _, command := range s.said {
				if kill, is := strings.CutPrefix(command, "CLIENT KILL "); is {
					kills = append(kills, strings.TrimSuffix(kill, s.addr))
				}
			}
			if !slices.Equal(kills, tc.kills) {
				t.Errorf("it was told to cut %q, want %q", kills, tc.kills)
			}
		})
	}
	takes := speak(t, func(string) string { return ":1\r\n" })
	if err := takes.client(t, v1alpha1.CacheValkey).CutClients(timeout(t, time.Second)); err != nil || takes.heard("CLIENT KILL TYPE NORMAL") != 1 || takes.heard("CLIENT KILL TYPE PUBSUB") != 1 {
		t.Errorf("Valkey's subscribers are not cut: %v", err)
	}
	refuses := speak(t, func(string) string { return "-ERR syntax error\r\n" })
	if err := refuses.client(t, v1alpha1.CacheValkey).CutClients(timeout(t, time.Second)); err == nil {
		t.Error("Valkey can cut clients by their type, and was believed not to")
	}
}

// A replica of Dragonfly whose link is up has the first copy once it names its offset; its master says how many changes it lacks. Valkey's
// lag is in seconds and says nothing of that.
func TestHowFarAReplicaOfDragonflyIs(t *testing.T) {
	replica := "role:replica\nmaster_host:10.0.0.1\nmaster_link_status:up\nmaster_sync_in_progress:0\n"
	for name, tc := range map[string]struct {
		info    string
		syncing bool
	}{
		"before its first copy":        {"dragonfly_version:df-v1.34.1\n" + replica, true},
		"after it":                     {"dragonfly_version:df-v1.34.1\n" + replica + "slave_repl_offset:0\n", false},
		"one that never says":          {"dragonfly_version:df-v1.21.4\n" + replica, false},
		"the first one that says":      {"dragonfly_version:df-v1.22.0\n" + replica, true},
		"a build without a number":     {"dragonfly_version:df-HEAD-abc\n" + replica, true},
		"the next major":               {"dragonfly_version:df-v2.0.0\n" + replica, true},
		"Valkey":                       {"valkey_version:9.1.2\n" + replica, false},
		"without a link it is nothing": {"dragonfly_version:df-v1.34.1\n" + strings.Replace(replica, ":up", ":down", 1), false},
	} {
		if got := parse(tc.info); got.Syncing != tc.syncing {
			t.Errorf("%s: %+v", name, got)
		}
	}
	line := "role:master\nslave0:ip=10.0.0.2,port=6379,state=online,lag=17\nslave1:ip=10.0.0.3,port=6379,state=full_sync,lag=-1\n"
	master := parse("dragonfly_version:df-v1.34.1\n" + line)
	if got := master.LagOf([]string{"orders-cache-west", "10.0.0.2"}); got != 17 {
		t.Errorf("the replica lacks %d changes", got)
	}
	if got := master.LagOf([]string{"10.0.0.3"}) + master.LagOf([]string{"10.0.0.4"}); got != 0 {
		t.Errorf("where nothing is said, it lacks %d", got)
	}
	if got := parse("valkey_version:9.1.2\n" + line).LagOf([]string{"10.0.0.2"}); got != 0 {
		t.Errorf("seconds are taken for changes: %d", got)
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
	if r, known := master.ReplicaOf([]string{"nobody", "10.0.0.2"}); !known || !r.Online || r.Port != 6379 || r.Offset != 40 {
		t.Errorf("%+v %t", r, known)
	}
	if r, known := master.ReplicaOf([]string{"10.0.0.3"}); !known || r.Online {
		t.Errorf("%+v %t", r, known)
	}
	if _, known := master.ReplicaOf([]string{"10.0.0.9", ""}); known {
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

// After a failure a connection is made again, also to one that was away.
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
