// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	protocol "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/mysql-mfg/mfg/internal/archive"
)

// magicBytes is where the events of a log begin.
const magicBytes = int64(len(archive.Magic))

// reading is what is read of a log: from a position, or from its beginning, to where it ends now.
type reading struct {
	log     string
	from    int64
	out     io.Writer
	counter *archive.Counter
	// head stops the reading as soon as it is known what was executed before the log.
	head bool
}

// read is what came of it.
type read struct {
	// to is the position behind the last byte.
	to int64
	// ended is true if the server went on to its next log: there will be no more of this one.
	ended bool
	// at is the latest time of its events, in seconds, as the sessions had it that wrote them; zero without any.
	at time.Time
}

var (
	errBroken = errors.New("it holds an event that does not fit where it lies")
	errHead   = errors.New("the head is read")
)

// read streams a log from the server. Memory is that of the packets that are on their way, however large an event is.
func (s server) read(ctx context.Context, r reading) (read, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return read{}, err
	}
	defer conn.close()
	if err := conn.ask(r.log, max(r.from, magicBytes)); err != nil {
		return read{}, cause(ctx, err)
	}
	e := &events{reading: r, next: r.from}
	err = e.all(conn)
	if errors.Is(err, errHead) {
		err = nil
	}
	return read{to: e.next, ended: e.ended, at: e.last}, cause(ctx, err)
}

// events cuts the stream into events.
type events struct {
	reading
	next  int64 // the position of the next event
	ended bool
	last  time.Time
	// begun is true once the server named the log.
	begun bool

	// Of the packet that is being read.
	marked bool
	answer bytes.Buffer // if it is no event
	kind   byte
	event  bytes.Buffer // header, and the rest of a telling one
	header archive.Header
	left   int64 // of an event that is passed on
	pass   bool
}

// answerMax bounds what is no event, and eventMax what is held of one.
const (
	answerMax = 4 << 10
	eventMax  = 16 << 20
)

func (e *events) all(conn *session) error {
	for {
		e.reset()
		if err := conn.conn.ReadPacketTo(e); err != nil {
			if _, ours := errors.AsType[*failure](err); ours {
				return err
			}
			return refused(e.log, err)
		}
		if e.marked && e.kind == protocol.ERR_HEADER {
			return refused(e.log, conn.conn.HandleErrorPacket(e.answer.Bytes()))
		}
		if done, err := e.packet(); done || err != nil {
			return err
		}
	}
}

// reset is before each packet.
func (e *events) reset() {
	e.marked, e.pass, e.left, e.header = false, false, 0, archive.Header{}
	e.answer.Reset()
	e.event.Reset()
}

// packet takes a packet that is there whole. done is true at the end of the log.
func (e *events) packet() (done bool, err error) {
	switch {
	case !e.marked:
		return false, failf(LogUnreadable, "binary log %s: the server sends an empty packet", e.log)
	case e.kind == protocol.EOF_HEADER:
		return true, e.whole()
	}
	if err := e.take(); err != nil {
		return false, err
	}
	if e.ended {
		return true, e.whole()
	}
	return false, nil
}

// whole refuses a stream that breaks off in a transaction: a server that ends our session says so as it says the end of its log.
func (e *events) whole() error {
	if open := e.counter.Open(); !e.begun || e.next < open {
		return failf(LogUnreadable, "the server breaks off binary log %s at %d, in a transaction that ends at %d", e.log, e.next, open)
	}
	return nil
}

// Write takes a piece of a packet.
func (e *events) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > 0 && !e.marked {
		e.marked, e.kind = true, p[0]
		if e.kind != protocol.OK_HEADER {
			e.answer.WriteByte(p[0])
		}
		p = p[1:]
	}
	if e.kind != protocol.OK_HEADER {
		if e.answer.Len()+len(p) > answerMax {
			return 0, failf(LogUnreadable, "binary log %s: the server sends something else", e.log)
		}
		e.answer.Write(p)
		return n, nil
	}
	return n, e.piece(p)
}

// piece takes a piece of an event: the header first, then what is held, or passed on.
func (e *events) piece(p []byte) error {
	if missing := archive.HeaderBytes - e.event.Len(); !e.pass && missing > 0 {
		take := min(missing, len(p))
		e.event.Write(p[:take])
		p = p[take:]
		if e.event.Len() < archive.HeaderBytes {
			return nil
		}
		h, err := archive.ParseHeader(e.event.Bytes())
		if err != nil {
			return fail(LogUnreadable, err)
		}
		e.header, e.left = h, h.Bytes-archive.HeaderBytes
		if !h.Telling() && !e.artificial() {
			if err := e.fits(); err != nil {
				return err
			}
			e.pass = true
			if err := e.put(e.event.Bytes()); err != nil {
				return err
			}
		}
	}
	if len(p) == 0 {
		return nil
	}
	if e.left -= int64(len(p)); e.left < 0 {
		return e.broken()
	}
	if e.pass {
		return e.put(p)
	}
	if e.event.Len()+len(p) > eventMax {
		return e.broken()
	}
	e.event.Write(p)
	return nil
}

// artificial is true for what the server makes up on the way, and is not in the log: its position says nothing.
func (e *events) artificial() bool {
	again := e.header.Type == replication.FORMAT_DESCRIPTION_EVENT && e.next > magicBytes // sent once more in the middle of a log
	return e.header.End == 0 || again || e.header.Type == replication.HEARTBEAT_EVENT || e.header.Type == heartbeatV2
}

// heartbeatV2 is the heartbeat of servers since 8.0.26.
const heartbeatV2 replication.EventType = 41

// fits is an error unless the event says itself that it lies where we are. Positions in events have 32 bits.
func (e *events) fits() error {
	if !e.begun || uint32(e.next+e.header.Bytes) != e.header.End {
		return e.broken()
	}
	return nil
}

func (e *events) broken() error {
	return failf(LogUnreadable, "binary log %s at %d: %w (type %d, %d bytes, end %d)", e.log, e.next, errBroken, e.header.Type, e.header.Bytes, e.header.End)
}

func (e *events) put(p []byte) error {
	if e.out == nil {
		return nil
	}
	_, err := e.out.Write(p)
	return err
}

// take takes an event whose packet has come to its end.
func (e *events) take() error {
	if e.event.Len() < archive.HeaderBytes || e.left != 0 {
		return e.broken()
	}
	switch {
	case e.artificial():
		return e.madeUp()
	case e.pass:
		e.passed()
		return nil
	case e.header.Type == replication.FORMAT_DESCRIPTION_EVENT && e.next == 0:
		// The first event: the magic is before it.
		if err := e.put([]byte(archive.Magic)); err != nil {
			return err
		}
		e.next = magicBytes
	}
	if err := e.fits(); err != nil {
		return err
	}
	raw := e.event.Bytes()
	if err := e.counter.Add(raw, e.next); err != nil {
		return fail(LogUnreadable, err)
	}
	if err := e.put(raw); err != nil {
		return err
	}
	previous := e.header.Type == replication.PREVIOUS_GTIDS_EVENT
	e.passed()
	if e.head && previous {
		return errHead
	}
	return nil
}

func (e *events) passed() {
	e.next += e.header.Bytes
	if e.header.Time.After(e.last) {
		e.last = e.header.Time
	}
}

// madeUp takes what is not in the log: which log comes, and, in the middle of one, how its events are written.
func (e *events) madeUp() error {
	switch e.header.Type { //nolint:exhaustive // heartbeats say nothing
	case replication.ROTATE_EVENT:
		raw := e.event.Bytes()[archive.HeaderBytes:]
		if len(raw) < 8 {
			return e.broken()
		}
		name := raw[8:]
		switch at := int64(binary.LittleEndian.Uint64(raw)); {
		case !e.begun && named(name, e.log) && at == max(e.next, magicBytes):
			e.begun = true
		case e.begun && !named(name, e.log):
			e.ended = true
		default:
			return e.broken()
		}
	case replication.FORMAT_DESCRIPTION_EVENT:
		if e.next == 0 {
			return e.broken() // the log's own has a position
		}
		return e.counter.Add(e.event.Bytes(), e.next)
	}
	return nil
}

// named is true if an event names a log. It may or may not have a checksum behind the name: that is told only later.
func named(raw []byte, log string) bool {
	return string(raw) == log || len(raw) == len(log)+4 && string(raw[:len(log)]) == log
}
