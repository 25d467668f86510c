// SPDX-License-Identifier: Apache-2.0

package binlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"

	"github.com/go-mysql-org/go-mysql/client"
	protocol "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/bounded"
)

// dumpNonBlock makes the server end the stream where its log ends.
const dumpNonBlock = 1

// numberSourceFatal is the server's error when it refuses to send a log, such as a purged one.
const numberSourceFatal = 1236

// stream is a connection over which the server sends its binary log, or is about to.
type stream struct {
	conn *client.Conn
	stop func() bool
	// answers bounds what the server says before it sends the log.
	answers *bounded.Conn
}

// connect logs in. Everything on the connection ends with ctx.
func connect(ctx context.Context, target mysql.Target) (*stream, error) {
	stop := func() bool { return true }
	var answers *bounded.Conn
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := (&net.Dialer{Timeout: target.DialTimeout}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		stop = context.AfterFunc(ctx, func() { _ = raw.Close() })
		answers = new(bounded.Answers).Conn(raw)
		return answers, nil
	}
	conn, err := client.ConnectWithDialer(ctx, "tcp", target.Addr, target.User, target.Password, "", dial, func(c *client.Conn) error {
		if target.TLS != nil {
			c.SetTLSConfig(target.TLS.Clone())
		}
		return nil
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("connect: %w", cause(ctx, err))
	}
	return &stream{conn: conn, stop: stop, answers: answers}, nil
}

func (s *stream) close() {
	s.stop()
	// An error of Close would say nothing that the work has not said.
	_ = s.conn.Close()
}

// cause returns the context's error, if it has ended, rather than that of the connection that this broke.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// exclude is the set that the server must not send: all that it has, except what is wanted.
func (s *stream) exclude(want gtid.Set) (gtid.Set, error) {
	result, err := s.conn.Execute("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
	if err != nil {
		return gtid.Set{}, fmt.Errorf("read sets: %w", err)
	}
	var sets [2]gtid.Set
	for i := range sets {
		text, err := result.GetString(0, i)
		if err != nil {
			return gtid.Set{}, fmt.Errorf("read sets: %w", err)
		}
		if sets[i], err = gtid.Parse(text); err != nil {
			return gtid.Set{}, fmt.Errorf("parse sets: %w", err)
		}
	}
	executed, purged := sets[0], sets[1]
	if lacks := want.Subtract(executed); !lacks.IsEmpty() {
		return gtid.Set{}, fmt.Errorf("%w: %d", ErrUnknown, lacks.Count())
	}
	if gone := want.Intersect(purged); !gone.IsEmpty() {
		return gtid.Set{}, fmt.Errorf("%w: %d", ErrPurged, gone.Count())
	}
	return executed.Subtract(want), nil
}

// dump asks for the log. The server ends another stream with the same replica UUID, so the UUID is random; the checksum has
// to be announced, or the server strips it and says otherwise.
func (s *stream) dump(exclude gtid.Set) error {
	for _, statement := range []string{
		"SET @source_binlog_checksum = @@GLOBAL.binlog_checksum",
		"SET @replica_uuid = UUID()",
	} {
		if _, err := s.conn.Execute(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	set, err := protocol.ParseMysqlGTIDSet(exclude.String())
	if err != nil {
		return fmt.Errorf("encode sets: %w", err)
	}
	encoded := set.Encode()
	s.conn.ResetSequence()
	// Four bytes for the packet's header, which WritePacket fills in.
	request := make([]byte, 4, 4+23+len(encoded))
	request = append(request, protocol.COM_BINLOG_DUMP_GTID)
	request = binary.LittleEndian.AppendUint16(request, dumpNonBlock)
	request = binary.LittleEndian.AppendUint32(request, anyServerID())
	request = binary.LittleEndian.AppendUint32(request, 0) // no file: the sets say where to begin
	request = binary.LittleEndian.AppendUint64(request, 4)
	request = binary.LittleEndian.AppendUint32(request, uint32(len(encoded)))
	if err := s.conn.WritePacket(append(request, encoded...)); err != nil {
		return fmt.Errorf("ask for the binary log: %w", err)
	}
	return nil
}

// anyServerID is an id that no site has: theirs are made from their names, and the upper half is left to us.
func anyServerID() uint32 { return rand.Uint32() | 1<<31 } //nolint:gosec // it needs to differ, not to be a secret

// each hands every event to take until the log ends.
func (s *stream) each(limits Limits, take func(event []byte) error) error {
	s.answers.Lift() // the log has limits of its own
	var total int64
	for {
		packet := &limited{left: limits.EventBytes}
		err := s.conn.ReadPacketTo(packet)
		if packet.left < 0 {
			return fmt.Errorf("%w: an event has more than %d bytes", ErrTooLarge, limits.EventBytes)
		}
		if err != nil {
			return fmt.Errorf("read the binary log: %w", err)
		}
		data := packet.Bytes()
		if total += int64(len(data)); total > limits.Bytes {
			return fmt.Errorf("%w: more than %d bytes of binary log", ErrTooLarge, limits.Bytes)
		}
		switch {
		case len(data) == 0:
			return fmt.Errorf("%w: it is empty", ErrUnreadable)
		case data[0] == protocol.ERR_HEADER:
			return refusal(s.conn.HandleErrorPacket(data))
		case data[0] == protocol.EOF_HEADER && len(data) < 9:
			return nil
		}
		if err := take(data[1:]); err != nil {
			return err
		}
	}
}

// refusal distinguishes a log that is gone for good from other errors.
func refusal(err error) error {
	if my, ok := errors.AsType[*protocol.MyError](err); ok && my.Code == numberSourceFatal {
		return fmt.Errorf("%w: %s", ErrPurged, my.Message)
	}
	return fmt.Errorf("the server does not send its binary log: %w", err)
}

// limited is a buffer that refuses more bytes than its limit.
type limited struct {
	bytes.Buffer
	left int64
}

func (b *limited) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, io.ErrShortBuffer
	}
	return b.Buffer.Write(p)
}
