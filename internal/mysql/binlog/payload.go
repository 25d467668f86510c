// SPDX-License-Identifier: Apache-2.0

package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is how much of a compressed transaction stays in memory to unpack the rest, in bytes. MySQL needs more only at
// levels of compression above 20; its default, 3, needs 2 MiB.
const maxWindow = 32 << 20

// Fields of a compressed transaction before its data. Each is a kind, a length and a number.
const (
	payloadEnd  = 0
	payloadType = 2
	payloadZstd = 0
)

// checksumSize is the size of the checksum that ends an event, and of the whole tail of a format description.
const (
	checksumSize   = 4
	checksumTail   = checksumSize + 1
	checksumOff    = 0
	eventSizeField = 9
)

// format is the description that events are read with.
type format struct {
	// plain is its event, changed to say that events have no checksum: those inside a compressed transaction have none.
	plain []byte
	// checksummed is true if the other events have one.
	checksummed bool
}

// formatOf takes a format description that the parser has accepted, so that it has its tail.
func formatOf(raw []byte) format {
	plain := bytes.Clone(raw)
	at := len(plain) - checksumTail
	checksummed := replication.BinlogChecksum(plain[at]) == replication.BINLOG_CHECKSUM_ALG_CRC32
	plain[at] = checksumOff
	return format{plain: plain, checksummed: checksummed}
}

// unpack adds the events of a compressed transaction one by one. The library would unpack and parse all of them first: that
// takes more than a gigabyte for a transaction of 64 MiB of small rows.
func (t *tally) unpack(raw []byte) error {
	if !t.wanted {
		return nil
	}
	kind := replication.TRANSACTION_PAYLOAD_EVENT
	if t.format.plain == nil {
		return fmt.Errorf("%w: %s", ErrUnreadable, kind)
	}
	inner := newParser()
	if _, err := inner.parse(t.format.plain); err != nil {
		return err
	}
	return Unpack(raw, t.format.checksummed, t.room, func(event []byte) error {
		parsed, err := inner.parse(event)
		if err != nil {
			return err
		}
		return t.add(parsed.Event)
	})
}

// room refuses an event inside a compressed transaction that exceeds the limits.
func (t *tally) room(size int64) error {
	if t.unpacked += size; size > t.limits.EventBytes || t.unpacked > t.limits.Bytes {
		return fmt.Errorf("%w: a compressed transaction", ErrTooLarge)
	}
	return nil
}

// Unpack passes the events of a compressed transaction, a whole TRANSACTION_PAYLOAD_EVENT, to take one by one; they have no checksum. It
// calls room before it allocates that many bytes for one.
func Unpack(raw []byte, checksummed bool, room func(size int64) error, take func(event []byte) error) error {
	kind := replication.TRANSACTION_PAYLOAD_EVENT
	payload, known := payloadOf(raw, checksummed)
	if !known {
		return fmt.Errorf("%w: %s", ErrUnreadable, kind)
	}
	// It uses one processor at most; the others are for the loops.
	data, err := zstd.NewReader(bytes.NewReader(payload), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return fmt.Errorf("%w: %s", ErrUnreadable, kind)
	}
	defer data.Close()
	for {
		event, err := next(data, room)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := take(event); err != nil {
			return err
		}
	}
}

// next reads one event of a compressed transaction, and returns io.EOF after the last.
func next(data io.Reader, room func(int64) error) ([]byte, error) {
	head := make([]byte, replication.EventHeaderSize)
	if _, err := io.ReadFull(data, head); errors.Is(err, io.EOF) {
		return nil, io.EOF
	} else if err != nil {
		return nil, unpackError(err)
	}
	size := int64(binary.LittleEndian.Uint32(head[eventSizeField:]))
	if size < replication.EventHeaderSize {
		return nil, fmt.Errorf("%w: an event inside a compressed transaction", ErrUnreadable)
	}
	if err := room(size); err != nil {
		return nil, err
	}
	event := make([]byte, size)
	copy(event, head)
	if _, err := io.ReadFull(data, event[len(head):]); err != nil {
		return nil, unpackError(err)
	}
	return event, nil
}

// unpackError says what went wrong, but nothing of the content.
func unpackError(err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return fmt.Errorf("%w: a compressed transaction", ErrTooLarge)
	}
	return fmt.Errorf("%w: a compressed transaction", ErrUnreadable)
}

// payloadOf is the compressed data of a transaction's event.
func payloadOf(raw []byte, checksummed bool) ([]byte, bool) {
	rest := raw[min(replication.EventHeaderSize, len(raw)):]
	if checksummed {
		rest = rest[:max(0, len(rest)-checksumSize)]
	}
	for len(rest) > 0 && rest[0] != payloadEnd {
		if len(rest) < 2 || len(rest) < 2+int(rest[1]) {
			return nil, false
		}
		field := rest[2 : 2+int(rest[1])]
		if rest[0] == payloadType && number(field) != payloadZstd {
			return nil, false
		}
		rest = rest[2+len(field):]
	}
	if len(rest) == 0 {
		return nil, false
	}
	return rest[1:], true
}

// number reads a number as MySQL packs it: one byte if it is below 251, else a marker and two, three or eight bytes.
func number(b []byte) uint64 {
	if len(b) > 1 {
		b = b[1:]
	}
	var n uint64
	for i, v := range b {
		n |= uint64(v) << (8 * i)
	}
	return n
}
