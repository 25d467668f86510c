// SPDX-License-Identifier: Apache-2.0

package binlog

import (
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// parser reads events. It holds the tables of the statement that it is reading.
type parser struct{ *replication.BinlogParser }

// parse reads one event. The library's errors about an event that it cannot read quote rows, and a malformed event makes it
// panic: neither may get out.
func (p parser) parse(raw []byte) (event *replication.BinlogEvent, err error) {
	kind := replication.UNKNOWN_EVENT
	if len(raw) >= replication.EventHeaderSize {
		kind = replication.EventType(raw[4])
	}
	defer func() {
		if recover() != nil {
			event, err = nil, fmt.Errorf("%w: %s", ErrUnreadable, kind)
		}
	}()
	event, err = p.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrUnreadable, kind)
	}
	return event, nil
}

func newParser() parser { return parser{replication.NewBinlogParser()} }

// take adds one event, as it came over the wire.
func (t *tally) take(raw []byte) error {
	if t.reader.BinlogParser == nil {
		t.reader = newParser()
	}
	if len(raw) < replication.EventHeaderSize {
		return fmt.Errorf("%w: it is cut off", ErrUnreadable)
	}
	if replication.EventType(raw[4]) == replication.TRANSACTION_PAYLOAD_EVENT {
		return t.unpack(raw)
	}
	event, err := t.reader.parse(raw)
	if err != nil {
		return err
	}
	if event.Header.EventType == replication.FORMAT_DESCRIPTION_EVENT {
		t.format = formatOf(raw)
	}
	return t.add(event.Event)
}

func (t *tally) add(event replication.Event) error {
	switch e := event.(type) {
	case *replication.GTIDEvent:
		return t.begin(e)
	case *replication.GtidTaggedLogEvent:
		return t.begin(&e.GTIDEvent)
	case *replication.QueryEvent:
		if t.wanted && !framesTransaction(string(e.Query)) {
			t.statements++
		}
	case *replication.BeginLoadQueryEvent, *replication.ExecuteLoadQueryEvent:
		if t.wanted {
			t.statements++
		}
	case *replication.RowsEvent:
		if t.wanted {
			t.rows(e)
		}
	}
	return nil
}

// begin notes whether the transaction that begins is wanted: the server may have got others since the request.
func (t *tally) begin(e *replication.GTIDEvent) error {
	next, err := e.GTIDNext()
	if err != nil {
		return fmt.Errorf("%w: GTIDEvent", ErrUnreadable)
	}
	id, err := gtid.Parse(next.String())
	if err != nil {
		return fmt.Errorf("%w: GTIDEvent", ErrUnreadable)
	}
	if t.wanted = t.want.Contains(id); t.wanted {
		t.found++
	}
	return nil
}

func (t *tally) rows(e *replication.RowsEvent) {
	table := t.table(string(e.Table.Schema), string(e.Table.Table))
	n := int64(len(e.Rows))
	switch e.Type() {
	case replication.EnumRowsEventTypeInsert:
		table.Inserted += n
	case replication.EnumRowsEventTypeDelete:
		table.Deleted += n
	default:
		table.Updated += n / 2 // each row comes twice: before and after the update
	}
}

// framesTransaction is true for statements that only begin or end a transaction, or a part of one.
func framesTransaction(query string) bool {
	word := strings.ToUpper(query)
	for _, frame := range []string{"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "XA "} {
		if strings.HasPrefix(word, frame) {
			return true
		}
	}
	return false
}
