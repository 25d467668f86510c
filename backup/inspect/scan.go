// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/mysql/binlog"
)

// Bounds of what is held in memory of a binary log.
const (
	// eventMax is the largest event of rows that is looked into, packed or not. Of larger ones it is said that they were not.
	eventMax = 24 << 20
	// tableMax is above any event of a table's map, queryMax is how much of a statement is read, and mapsMax how many tables one statement
	// may change.
	tableMax = 1 << 20
	queryMax = 256 << 10
	mapsMax  = 4096
)

// looker is told of transactions. What it gets of a row is its own until it returns.
type looker interface {
	// begin says whether a transaction is to be looked into.
	begin(t archive.Transaction) (bool, error)
	statement(s statement, query string) error
	row(t *table, ch change) error
	// large is an event of rows that is too large to be looked into; nil if it is a compressed transaction, whose tables are not known.
	large(t *table) error
	// end ends a transaction that was looked into.
	end(t *wire.ArchivedTransaction) error
}

// errDone ends a scan without an error.
var errDone = archive.ErrDone

var errLog = errors.New("the archive holds a binary log that cannot be read")

// scan reads files of the archive.
type scan struct {
	look looker
	log  archive.Log
	in   *bufio.Reader
	buf  []byte

	at        int64
	checksums bool
	tables    map[uint64]*table
	now       *transaction // nil while nothing is looked into

	bytes        int64
	transactions int64
}

// file reads one file.
func (s *scan) file(log archive.Log, r io.Reader) error {
	s.log, s.at, s.checksums, s.now, s.tables = log, log.From, log.Checksums, nil, map[uint64]*table{}
	if s.in == nil {
		s.in = bufio.NewReaderSize(r, 256<<10)
	} else {
		s.in.Reset(r)
	}
	err := s.events()
	if err == nil {
		err = s.end()
	}
	if err == nil || errors.Is(err, errDone) || errors.Is(err, errOwn) {
		return err
	}
	return fmt.Errorf("read %s: %w", log.Name(), err)
}

func (s *scan) events() error {
	if s.log.From == 0 {
		magic := make([]byte, len(archive.Magic))
		if _, err := io.ReadFull(s.in, magic); err != nil {
			return notEOF(err)
		}
		if string(magic) != archive.Magic {
			return fmt.Errorf("%w: it does not begin as one", errLog)
		}
		s.at += int64(len(magic))
	}
	head := make([]byte, archive.HeaderBytes)
	for {
		if _, err := io.ReadFull(s.in, head); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return notEOF(err)
		}
		h, err := archive.ParseHeader(head)
		if err != nil {
			return err
		}
		if err := s.event(h, head); err != nil {
			return err
		}
		s.at += h.Bytes
		s.bytes += h.Bytes
	}
}

// notEOF is an end where none may be.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut off", errLog)
	}
	return err
}

// event takes one event whose header was read; the rest is read or dropped.
func (s *scan) event(h archive.Header, head []byte) error {
	switch h.Type { //nolint:exhaustive // the others hold nothing that is asked for
	case replication.FORMAT_DESCRIPTION_EVENT:
		raw, err := s.whole(h, head, tableMax)
		if err == nil {
			s.checksums = archive.Checksummed(raw)
		}
		return err
	case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT:
		return s.begin(h, head)
	}
	most := limitOf(h.Type)
	if s.now == nil || most == 0 {
		return s.drop(h.Bytes - archive.HeaderBytes)
	}
	switch {
	case h.Type == replication.QUERY_EVENT:
		return s.query(h, head)
	case h.Bytes > most && h.Type == replication.TRANSACTION_PAYLOAD_EVENT:
		if err := s.look.large(nil); err != nil {
			return err
		}
		return s.drop(h.Bytes - archive.HeaderBytes)
	case h.Bytes > most:
		return s.largeRows(h)
	}
	raw, err := s.whole(h, head, most)
	if err != nil {
		return err
	}
	if h.Type == replication.TRANSACTION_PAYLOAD_EVENT {
		return s.unpack(raw)
	}
	return s.part(h.Type, s.body(raw))
}

// limitOf is how large an event may be to be looked into; 0 if its kind never is.
func limitOf(kind replication.EventType) int64 {
	switch kind { //nolint:exhaustive // the others are not looked into
	case replication.QUERY_EVENT, replication.BEGIN_LOAD_QUERY_EVENT, replication.EXECUTE_LOAD_QUERY_EVENT:
		return queryMax
	case replication.TABLE_MAP_EVENT:
		return tableMax
	case replication.WRITE_ROWS_EVENTv2, replication.UPDATE_ROWS_EVENTv2, replication.DELETE_ROWS_EVENTv2, replication.PARTIAL_UPDATE_ROWS_EVENT,
		replication.TRANSACTION_PAYLOAD_EVENT:
		return eventMax
	}
	return 0
}

// whole is an event with its header. It is good until the next one is read.
func (s *scan) whole(h archive.Header, head []byte, most int64) ([]byte, error) {
	if h.Bytes > most {
		return nil, fmt.Errorf("%w: an event of %d bytes is larger than any of its kind", errLog, h.Bytes)
	}
	if int64(cap(s.buf)) < h.Bytes {
		s.buf = make([]byte, h.Bytes)
	}
	raw := s.buf[:h.Bytes]
	copy(raw, head)
	_, err := io.ReadFull(s.in, raw[archive.HeaderBytes:])
	if err != nil {
		return nil, notEOF(err)
	}
	return raw, nil
}

func (s *scan) drop(n int64) error {
	for n > 0 {
		some, err := s.in.Discard(int(min(n, 1<<30)))
		if err != nil {
			return notEOF(err)
		}
		n -= int64(some)
	}
	return nil
}

// body is an event without header and checksum.
func (s *scan) body(raw []byte) []byte {
	end := len(raw)
	if s.checksums {
		end -= checksumBytes
	}
	return raw[archive.HeaderBytes:max(archive.HeaderBytes, end)]
}

const checksumBytes = 4

func (s *scan) begin(h archive.Header, head []byte) error {
	if err := s.end(); err != nil {
		return err
	}
	raw, err := s.whole(h, head, tableMax)
	if err != nil {
		return err
	}
	t, err := archive.ParseTransaction(raw, s.at, s.checksums)
	if err != nil {
		return err
	}
	s.transactions++
	clear(s.tables)
	is, err := s.look.begin(t)
	if err != nil || !is {
		return err
	}
	s.now = &transaction{to: t.To, ArchivedTransaction: wire.ArchivedTransaction{
		GTID: t.GTID, Time: t.Committed, Epoch: s.log.Epoch, Site: s.log.Site, Log: s.log.Log, Position: t.From}}
	return nil
}

func (s *scan) end() error {
	if s.now == nil {
		return nil
	}
	t := s.now
	s.now = nil
	if t.to == 0 {
		t.to = s.at
	}
	t.Bytes = t.to - t.Position
	return s.look.end(&t.ArchivedTransaction)
}

// query reads the beginning of a statement, however long that is.
func (s *scan) query(h archive.Header, head []byte) error {
	most := min(h.Bytes, queryMax)
	cut := h
	cut.Bytes = most
	raw, err := s.whole(cut, head, queryMax)
	if err != nil {
		return err
	}
	body := raw[archive.HeaderBytes:]
	if most == h.Bytes {
		body = s.body(raw)
	}
	if err := s.statement(body); err != nil {
		return err
	}
	return s.drop(h.Bytes - most)
}

// statement takes the body of an event with a statement.
func (s *scan) statement(body []byte) error {
	c := &cursor{b: body}
	c.take(8)
	schema := int(c.little(1))
	c.take(2)
	c.take(int(c.little(2)))
	name := string(c.take(schema))
	c.take(1)
	if c.bad {
		return fmt.Errorf("%w: a statement in it is malformed", errLog)
	}
	query := string(c.b)
	st := parseStatement(query, name)
	if st.verb == "" {
		return nil
	}
	s.now.note(st.words())
	return s.look.statement(st, query)
}

// part takes the body of an event within a transaction.
func (s *scan) part(kind replication.EventType, body []byte) error {
	switch kind { //nolint:exhaustive // the others are none of ours
	case replication.TABLE_MAP_EVENT:
		id, t, ok := parseTable(body)
		if !ok || len(s.tables) >= mapsMax {
			return fmt.Errorf("%w: a table in it is malformed", errLog)
		}
		s.tables[id] = t
		return nil
	case replication.BEGIN_LOAD_QUERY_EVENT, replication.EXECUTE_LOAD_QUERY_EVENT:
		s.now.note("LOAD DATA")
		return nil
	case replication.QUERY_EVENT:
		return s.statement(body)
	}
	return s.rows(kind, body)
}

func (s *scan) rows(kind replication.EventType, body []byte) error {
	c := &cursor{b: body}
	h, ok := parseRowsHead(kind, c, s.tables)
	for ok && len(c.b) > 0 {
		var ch change
		left := len(c.b)
		if ch, ok = h.next(c); !ok || len(c.b) == left { // a row of nothing would never end
			ok = false
			break
		}
		s.now.count(h.table, ch.op)
		if err := s.look.row(h.table, ch); err != nil {
			return err
		}
	}
	if !ok {
		return fmt.Errorf("%w: rows in it are malformed, or of a table that it does not tell", errLog)
	}
	if h.last {
		clear(s.tables)
	}
	return nil
}

// largeRows passes over rows, all but the table that they are of.
func (s *scan) largeRows(h archive.Header) error {
	head, err := s.in.Peek(8)
	if err != nil {
		return notEOF(err)
	}
	t := s.tables[little(head[:6])]
	if t == nil {
		return fmt.Errorf("%w: rows in it are of a table that it does not tell", errLog)
	}
	if little(head[6:8])&stmtEnd != 0 {
		clear(s.tables)
	}
	s.now.note("rows of " + t.schema + "." + t.name + " that are too large to be looked into")
	if err := s.look.large(t); err != nil {
		return err
	}
	return s.drop(h.Bytes - archive.HeaderBytes)
}

// unpack takes a compressed transaction. Of an event in it that is too large, all of the rest is passed over.
func (s *scan) unpack(raw []byte) error {
	room := func(size int64) error {
		if size > eventMax {
			return errPacked
		}
		return nil
	}
	err := binlog.Unpack(raw, s.checksums, room, func(event []byte) error {
		h, err := archive.ParseHeader(event)
		if err != nil {
			return err
		}
		if limitOf(h.Type) == 0 || h.Type == replication.TRANSACTION_PAYLOAD_EVENT {
			return nil
		}
		return s.part(h.Type, event[archive.HeaderBytes:])
	})
	if errors.Is(err, errPacked) {
		s.now.note("rows in a compressed transaction that are too large to be looked into")
		return s.look.large(nil)
	}
	return err
}

var errPacked = errors.New("an event in a compressed transaction is too large")
