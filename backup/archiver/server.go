// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	protocol "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Bounds of what is asked of the server.
const (
	dialTimeout = 5 * time.Second
	// silenceMax is how long the server may say nothing while it is asked or sends a log.
	silenceMax = 30 * time.Second
	// logsMax is how many binary logs are looked at.
	logsMax = 100000
	// encryptionHeader is by how much an encrypted log is longer on the disk.
	encryptionHeader = 512
)

// server is the mysqld of this pod.
type server struct{ c Config }

// session is one connection. Whatever happens on it ends with its context.
type session struct {
	conn *client.Conn
	stop func() bool
}

// connect logs in through the socket. The account may require TLS even there; who is at the other end the socket's directory says.
func (s server) connect(ctx context.Context) (*session, error) {
	password, err := s.c.password()
	if err != nil {
		return nil, fail(ServerRefuses, err)
	}
	var refused error
	for _, encrypted := range []bool{true, false} {
		var got *session
		got, refused = s.dial(ctx, password, encrypted)
		if refused == nil {
			return got, nil
		}
		if !strings.Contains(refused.Error(), "server does not support TLS") {
			break
		}
	}
	refused = cause(ctx, refused)
	if my, ok := errors.AsType[*protocol.MyError](refused); ok {
		return nil, failf(ServerRefuses, "log in as %s: %w", s.c.Server.User, my)
	}
	return nil, failf(ServerUnreachable, "reach mysqld at %s: %w", s.c.Server.Socket, refused)
}

func (s server) dial(ctx context.Context, password string, encrypted bool) (*session, error) {
	stop := func() bool { return true }
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
		raw, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", addr)
		if err != nil {
			return nil, err
		}
		stop = context.AfterFunc(ctx, func() { _ = raw.Close() })
		return patient{raw}, nil
	}
	conn, err := client.ConnectWithDialer(ctx, "unix", s.c.Server.Socket, s.c.Server.User, password, "", dial, func(c *client.Conn) error {
		c.SetAttributes(map[string]string{"program_name": "mfg archiver"})
		if encrypted {
			c.SetTLSConfig(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) //nolint:gosec // a socket: its directory is the proof
		}
		return nil
	})
	if err != nil {
		stop()
		return nil, err
	}
	return &session{conn: conn, stop: stop}, nil
}

// patient ends a connection to a server that is silent. The library can do so too, but sets two deadlines for every event.
type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(silenceMax)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(silenceMax)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

func (s *session) close() {
	s.stop()
	// The error of closing says nothing that the work has not said.
	_ = s.conn.Close()
}

// serverState is how the server is at one moment.
type serverState struct {
	UUID     string
	ReadOnly bool
	// Log and Position are where it writes, Executed what it had executed then.
	Log      string
	Position int64
	Executed gtid.Set
	// Logs are the names of all of its logs in order, Bytes their sizes in the clear.
	Logs  []string
	Bytes []int64
}

// state asks for all at once. None of the statements holds a lock longer than it takes to copy a name.
func (s *session) state() (serverState, error) {
	var st serverState
	r, err := s.query("SELECT @@GLOBAL.server_uuid, @@GLOBAL.read_only")
	if err != nil {
		return st, err
	}
	uuid, err := r.GetString(0, 0)
	if err != nil {
		return st, fail(ServerUnreachable, err)
	}
	readOnly, err := r.GetInt(0, 1)
	if err != nil {
		return st, fail(ServerUnreachable, err)
	}
	st.UUID, st.ReadOnly = strings.ToLower(uuid), readOnly != 0
	for range statusLooks {
		if err := s.position(&st); err != nil {
			return st, err
		}
		if err := s.logs(&st); err != nil {
			return st, err
		}
		if n := len(st.Logs); n > 0 && st.Logs[n-1] == st.Log {
			return st, nil
		}
	}
	return st, failf(ServerUnreachable, "the server changed its binary log whenever it was asked")
}

// statusLooks is how often the server is asked again because it went on to another log between two questions.
const statusLooks = 5

func (s *session) position(st *serverState) error {
	r, err := s.query("SHOW BINARY LOG STATUS")
	if err != nil {
		return err
	}
	if r.RowNumber() != 1 {
		return failf(ServerRefuses, "the server writes no binary log")
	}
	if st.Log, err = r.GetString(0, 0); err == nil {
		st.Position, err = r.GetInt(0, 1)
	}
	text := ""
	if err == nil {
		text, err = r.GetStringByName(0, "Executed_Gtid_Set")
	}
	if err == nil {
		st.Executed, err = gtid.Parse(text)
	}
	return fail(ServerUnreachable, err)
}

func (s *session) logs(st *serverState) error {
	r, err := s.query("SHOW BINARY LOGS")
	if err != nil {
		return err
	}
	st.Logs, st.Bytes = nil, nil
	if r.RowNumber() > logsMax {
		return failf(ServerRefuses, "the server has more than %d binary logs", logsMax)
	}
	for i := range r.RowNumber() {
		name, err := r.GetString(i, 0)
		if err != nil {
			return fail(ServerUnreachable, err)
		}
		size, err := r.GetInt(i, 1)
		if err != nil {
			return fail(ServerUnreachable, err)
		}
		if encrypted, err := r.GetString(i, 2); err == nil && encrypted == "Yes" {
			size -= encryptionHeader
		}
		st.Logs, st.Bytes = append(st.Logs, name), append(st.Bytes, size)
	}
	return nil
}

func (s *session) query(statement string) (*protocol.Result, error) {
	r, err := s.conn.Execute(statement)
	if my, ok := errors.AsType[*protocol.MyError](err); ok {
		return nil, failf(ServerRefuses, "%s: %w", statement, my)
	}
	if err != nil {
		return nil, failf(ServerUnreachable, "%s: %w", statement, err)
	}
	return r, nil
}

// Numbers of the server's answers to a request for a log.
const numberSourceFatal = 1236

// dumpNonBlock makes the server end the stream where its log ends.
const dumpNonBlock = 1

// ask begins the stream of a log from a position. Checksums have to be announced, or the server takes them away; a replica's UUID makes it end
// another stream of the same replica, so it is random. No set is excluded: this form of the request is taken for its position of 64 bits.
func (s *session) ask(log string, from int64) error {
	for _, statement := range []string{"SET @source_binlog_checksum = 'CRC32'", "SET @replica_uuid = UUID()"} {
		if _, err := s.query(statement); err != nil {
			return err
		}
	}
	set, err := protocol.ParseMysqlGTIDSet("")
	if err != nil {
		return err
	}
	none := set.Encode()
	s.conn.ResetSequence()
	request := make([]byte, 4, 64+len(log)+len(none))
	request = append(request, protocol.COM_BINLOG_DUMP_GTID)
	request = binary.LittleEndian.AppendUint16(request, dumpNonBlock)
	request = binary.LittleEndian.AppendUint32(request, rand.Uint32()|1<<31) //nolint:gosec // it needs to differ from those of sites, not to be a secret
	request = binary.LittleEndian.AppendUint32(request, uint32(len(log)))
	request = append(request, log...)
	request = binary.LittleEndian.AppendUint64(request, uint64(from))
	request = binary.LittleEndian.AppendUint32(request, uint32(len(none)))
	if err := s.conn.WritePacket(append(request, none...)); err != nil {
		return failf(ServerUnreachable, "ask for binary log %s: %w", log, err)
	}
	return nil
}

// refused is the server's answer instead of a log.
func refused(log string, err error) error {
	if my, ok := errors.AsType[*protocol.MyError](err); ok {
		if my.Code == numberSourceFatal {
			return fail(LogUnreadable, fmt.Errorf("the server does not send binary log %s: %s: %w", log, my.Message, errGone))
		}
		return failf(ServerRefuses, "the server does not send binary log %s: %w", log, my)
	}
	return failf(LogUnreadable, "the server breaks off binary log %s: %w", log, err)
}

// errGone says that the server may not have the log any more.
var errGone = errors.New("it may have been purged")
