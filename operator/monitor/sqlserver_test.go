// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// sqlServer answers on a socket, in MySQL's own protocol, what the operator asks of a mysqld, and keeps what it is told. It knows as
// much of MySQL as these tests need.
type sqlServer struct {
	addr string

	mu sync.Mutex
	// told are the statements that change something, or wait.
	told          []string
	superReadOnly bool
	// source is the host that the default channel names; empty without a channel.
	source             string
	receiver, applier  string
	executed, received string
	// delay is the seconds by which the applier waits on purpose, filtered that it skips transactions.
	delay    string
	filtered bool
	// clock is what its clock shows, in seconds. A replica applies what was committed at 1699999998.
	clock string
	// refuse is the begin of statements that fail.
	refuse string
	// held is the begin of statements that wait, each, until goOn is written to, and say so on reached; empty for none.
	held          string
	reached, goOn chan struct{}
}

func startSQLServer(t *testing.T) *sqlServer {
	t.Helper()
	s := &sqlServer{addr: filepath.Join(t.TempDir(), "sock"), superReadOnly: true, receiver: "ON", applier: "ON", clock: "1700000000"}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *sqlServer) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// heard returns what it was told since it was asked last.
func (s *sqlServer) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = nil
	return told
}

func (s *sqlServer) hold(query string) {
	s.mu.Lock()
	held, reached, goOn := s.held, s.reached, s.goOn
	s.mu.Unlock()
	if held != "" && strings.HasPrefix(query, held) {
		reached <- struct{}{}
		<-goOn
	}
}

func (s *sqlServer) was(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := s.heard(); !slices.Equal(got, want) {
		t.Errorf("%s: it was told %q, want %q", when, got, want)
	}
}

// The protocol: a packet has three bytes of length and a number.

func (s *sqlServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	const capabilities = 1 | 0x200 | 0x2000 | 0x8000 | 0x80000
	hello := append([]byte("\x0a9.7.0\x00"), 1, 0, 0, 0)
	hello = append(hello, "saltsalt\x00"...)
	hello = binary.LittleEndian.AppendUint16(hello, capabilities&0xffff)
	hello = append(hello, 45, 2, 0)
	hello = binary.LittleEndian.AppendUint16(hello, capabilities>>16)
	hello = append(hello, 21)
	hello = append(append(hello, make([]byte, 10)...), "saltsaltsalt\x00caching_sha2_password\x00"...)
	ok := []byte{0, 0, 0, 2, 0, 0, 0}
	if send(conn, 0, hello) != nil {
		return
	}
	if _, err := receive(conn); err != nil || send(conn, 2, ok) != nil {
		return
	}
	for {
		packet, err := receive(conn)
		if err != nil || len(packet) == 0 || packet[0] == 1 {
			return
		}
		var rows [][]string
		fails := false
		if packet[0] == 3 {
			s.hold(string(packet[1:]))
			rows, fails = s.answer(string(packet[1:]))
		}
		switch {
		case fails:
			err = send(conn, 1, append([]byte{0xff}, "\x60\x09#HY000refused"...))
		case rows == nil:
			err = send(conn, 1, ok)
		default:
			err = sendRows(conn, rows)
		}
		if err != nil {
			return
		}
	}
}

func receive(conn net.Conn) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err := io.ReadFull(conn, body)
	return body, err
}

func send(conn net.Conn, number byte, body []byte) error {
	n := len(body)
	_, err := conn.Write(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), number}, body...))
	return err
}

// null is a value that is NULL; a first row tells how many columns there are.
const null = "\x00null"

func sendRows(conn net.Conn, rows [][]string) error {
	var number byte = 1
	put := func(body []byte) error { number++; return send(conn, number-1, body) }
	text := func(s string) []byte {
		return append(append([]byte{0xfc}, byte(len(s)), byte(len(s)>>8)), s...)
	}
	end := []byte{0xfe, 0, 0, 2, 0}
	err := put([]byte{byte(len(rows[0]))})
	for range rows[0] {
		column := slices.Concat(text("def"), text(""), text(""), text(""), text("c"), text(""), []byte{0x0c, 45, 0, 0, 1, 0, 0, 0xfd, 0, 0, 0, 0, 0})
		if err == nil {
			err = put(column)
		}
	}
	if err == nil {
		err = put(end)
	}
	for _, row := range rows[1:] {
		var body []byte
		for _, value := range row {
			if value == null {
				body = append(body, 0xfb)
				continue
			}
			body = append(body, text(value)...)
		}
		if err == nil {
			err = put(body)
		}
	}
	if err == nil {
		err = put(end)
	}
	return err
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

const serverUUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// answer returns the rows after one that is as wide, or nil for a statement without rows.
func (s *sqlServer) answer(query string) (rows [][]string, fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := func(values ...string) [][]string { return [][]string{values, values} }
	is := func(begin string) bool { return strings.HasPrefix(query, begin) }
	if s.refuse != "" && is(s.refuse) {
		return nil, true
	}
	variables := []string{serverUUID, "9.7.0", flag(s.superReadOnly), flag(s.superReadOnly), "0", s.executed, ""}
	switch {
	case is("SELECT @@GLOBAL.server_uuid") && strings.Contains(query, " AS ch"):
		return row(append(variables, s.status()...)...), false
	case is("SELECT @@GLOBAL.server_uuid"):
		return row(variables...), false
	case is("SELECT @@GLOBAL.super_read_only"):
		return row(flag(s.superReadOnly)), false
	case is("SELECT COUNT(*) FROM performance_schema.replication_connection_configuration"):
		return row(flag(s.source != "")), false
	case is("SELECT PROCESSLIST_ID"):
		return row("7"), false
	case is("SELECT c.HOST"):
		if s.source == "" {
			return [][]string{make([]string, 19)}, false
		}
		return row(s.source, "3306", "mfg_replication", "1", "1", "", "0", "1", "0", "1", "1", "1", "1", "0", s.receiver, s.applier, "0", "0", ""), false
	case is("SET max_execution_time"), is("SET sql_big_selects"):
		return nil, false // of every connection
	case is("XA RECOVER"):
		return [][]string{make([]string, 4)}, false
	case is("SELECT WAIT_FOR_EXECUTED_GTID_SET"):
		s.told = append(s.told, "wait")
		return row("0"), false
	}
	switch query {
	case "SET GLOBAL super_read_only = ON":
		s.superReadOnly = true
	case "STOP REPLICA IO_THREAD":
		s.receiver = "OFF"
	case "START REPLICA IO_THREAD":
		s.receiver = "ON"
	case "RESET REPLICA ALL":
		s.source = ""
	}
	s.told = append(s.told, strings.Join(strings.Fields(query), " "))
	return nil, false
}

// status are the columns of a status after the variables.
func (s *sqlServer) status() []string {
	row := append([]string{flag(s.source != ""), "0", "0", "1", flag(s.filtered), s.clock}, slices.Repeat([]string{null}, 20)...)
	if s.source != "" {
		copy(row[6:], []string{s.source, "3306", "1", "aaaaaaaa-71ca-11e1-9e33-c80aa9429562", s.receiver, s.received, "2003", "cannot connect",
			"0", "0", "0", "0", s.applier, cmp.Or(s.delay, "0"), "1062", "a duplicate", "1699999998"})
	}
	return row
}

// sqlAccess is the way to the servers of sites. Who asks for one first has its hook called.
type sqlAccess struct {
	servers map[string]*sqlServer
	source  mysql.Source
	err     error
	hook    func()
}

func (a *sqlAccess) Site(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, site, _ string) (mysql.Target, error) {
	if a.hook != nil {
		a.hook()
	}
	server := a.servers[site]
	if server == nil {
		return mysql.Target{}, fmt.Errorf("no way to %s", site)
	}
	return mysql.Target{Addr: server.addr, User: "mfg_operator"}, a.err
}

func (a *sqlAccess) Replication(context.Context, *v1alpha1.MysqlFailoverGroup, string) (mysql.Source, error) {
	return a.source, a.err
}

func (a *sqlAccess) ReportKey(context.Context, *v1alpha1.MysqlFailoverGroup, string) ([]byte, error) {
	return nil, fmt.Errorf("no key")
}
