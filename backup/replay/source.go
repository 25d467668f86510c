// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Identity of the source. No server of a group has these numbers: the operator's are hashes below, and servers ignore what has their own.
const (
	sourceServerID = 4294967290
	// ReplicaServerID is what the mysqld that applies must have: an event with its own number would be skipped without a word.
	ReplicaServerID = 4294967289
	sourceUser      = "mfg_archive"
	// greetTimeout bounds what a receiver does before the logs are sent.
	greetTimeout = 30 * time.Second
)

// source is what the receiver of the server here replicates from. It listens on the loopback interface, to one who knows a password that
// is of this run, and sends once.
type source struct {
	listener net.Listener
	// version is that of the server here, which refuses a later one.
	version  string
	uuid     string
	password string
	// send sends all; it is called once.
	send func(*conn) error

	mu   sync.Mutex
	sent bool
	err  error
}

func listen(ctx context.Context, version string, send func(*conn) error) (*source, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the receiver: %w", err)
	}
	var u [16]byte
	_, _ = rand.Read(u[:])
	uuid := fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	return &source{listener: l, version: version, uuid: uuid, password: rand.Text(), send: send}, nil
}

func (s *source) port() int {
	if a, ok := s.listener.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// serve answers until ctx ends. It returns once nothing of it runs any more.
func (s *source) serve(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	stop := context.AfterFunc(ctx, func() { _ = s.listener.Close() })
	defer stop()
	slots := make(chan struct{}, 4) // one receives; others have no password
	for {
		raw, err := s.listener.Accept()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = raw.Close()
			continue
		}
		all.Go(func() {
			defer func() { <-slots }()
			end := context.AfterFunc(ctx, func() { _ = raw.Close() })
			defer end()
			defer func() { _ = raw.Close() }()
			s.answer(ctx, newConn(raw))
		})
	}
}

// Commands of the protocol.
const (
	commandQuit     = 0x01
	commandQuery    = 0x03
	commandPing     = 0x0e
	commandRegister = 0x15
	commandDumpGTID = 0x1e
)

// answer speaks with one who connects.
func (s *source) answer(ctx context.Context, c *conn) {
	_ = c.raw.SetDeadline(time.Now().Add(greetTimeout))
	if c.login(s.version, sourceUser, s.password) != nil {
		return
	}
	for {
		packet, err := c.take()
		if err != nil || len(packet) == 0 || packet[0] == commandQuit {
			return
		}
		switch packet[0] {
		case commandPing, commandRegister:
			err = c.ok()
		case commandQuery:
			err = s.query(c, string(packet[1:]))
		case commandDumpGTID:
			_ = c.raw.SetDeadline(time.Time{})
			s.dump(ctx, c)
			return
		default:
			err = c.fail("the archive knows no such command")
		}
		if err != nil {
			return
		}
	}
}

// query answers what receivers ask before they receive.
func (s *source) query(c *conn, text string) error {
	upper := strings.ToUpper(text)
	if strings.HasPrefix(upper, "SET ") {
		return c.ok()
	}
	for part, value := range map[string]string{
		"UNIX_TIMESTAMP": fmt.Sprint(time.Now().Unix()), "SERVER_ID": fmt.Sprint(sourceServerID), "SERVER_UUID": s.uuid, "GTID_MODE": "ON",
		"BINLOG_CHECKSUM": "CRC32",
	} {
		if strings.Contains(upper, part) {
			return c.row(value)
		}
	}
	return c.fail("the archive knows no such question")
}

// errTwice says that the receiver came back: what it has got is not known here.
var errTwice = errors.New("the receiver of the server here lost its connection and began again")

// dump sends all, and then stays silent, as a source does that nobody writes to.
func (s *source) dump(ctx context.Context, c *conn) {
	s.mu.Lock()
	again := s.sent
	s.sent = true
	s.mu.Unlock()
	if again {
		s.end(errTwice)
		_ = c.fail("the archive is sent once")
		return
	}
	err := s.send(c)
	if err == nil {
		err = c.out.Flush()
	}
	s.end(err)
	if err != nil {
		return // perhaps within an event: there is nothing more to say on this connection
	}
	<-ctx.Done()
}

// end keeps why it ended, the first time that it did not end well.
func (s *source) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// failed is why the archive was not sent; nil while it is, and once all of it was.
func (s *source) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return fmt.Errorf("read the archive: %w", s.err)
}
