// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/mysql-mfg/mfg/internal/archive"
)

// ErrDamaged says that an archived log is not what a server wrote.
var ErrDamaged = errors.New("the archived binary log cannot be read")

const (
	headerSize   = replication.EventHeaderSize
	checksumSize = 4
	// eventMax is the size of the largest event that a server takes: its largest packet.
	eventMax = 1 << 30
	// headMax is far above the size of the events that are read here and not only passed on.
	headMax = 1 << 20
	// flagInUse is set in the first event of a log that is still written, and is no part of its checksum; flagArtificial in events that no
	// log holds.
	flagInUse      = 0x1
	flagArtificial = 0x20
)

var magic = []byte{0xfe, 'b', 'i', 'n'}

// header is the beginning of an event.
type header struct {
	raw  [headerSize]byte
	kind replication.EventType
	// size is that of the event with its header and checksum, in bytes.
	size uint32
}

// reader reads the events of one log, or of a part of one, without more than one piece of it in memory.
type reader struct {
	in *bufio.Reader
	// begins is true if this is the beginning of a log, which has a magic.
	begins bool
	// checksummed is true if events end with a checksum; a format description says so.
	checksummed bool
	// left is how much of the current event has not been read.
	left int64
	// read counts bytes.
	read int64
}

// newReader reads a binary log from its beginning, or from within it: there it has no magic, and the time of an event may look like one.
func newReader(in io.Reader, begins, checksummed bool) *reader {
	return &reader{in: bufio.NewReaderSize(in, 256<<10), begins: begins, checksummed: checksummed}
}

// next reads the header of the next event, past what is left of the one before. io.EOF is the end, between two events.
func (r *reader) next() (header, error) {
	if err := r.skip(); err != nil {
		return header{}, err
	}
	if start, err := r.in.Peek(len(magic)); r.begins && r.read == 0 && err == nil && string(start) == string(magic) {
		r.read += int64(len(magic))
		if _, err := r.in.Discard(len(magic)); err != nil {
			return header{}, err
		}
	}
	var h header
	n, err := io.ReadFull(r.in, h.raw[:])
	switch {
	case err == io.EOF:
		return h, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return h, fmt.Errorf("%w: it ends within an event", ErrDamaged)
	case err != nil:
		return h, err
	}
	r.read += int64(n)
	h.kind, h.size = replication.EventType(h.raw[4]), binary.LittleEndian.Uint32(h.raw[9:])
	least := uint32(headerSize)
	if r.checksummed {
		least += checksumSize
	}
	if h.size < least || h.size > eventMax+headMax {
		return h, fmt.Errorf("%w: it holds an event of %d bytes", ErrDamaged, h.size)
	}
	r.left = int64(h.size) - headerSize
	return h, nil
}

// skip passes what is left of the event.
func (r *reader) skip() error {
	for r.left > 0 {
		n, err := r.in.Discard(int(min(r.left, 1<<20)))
		r.left, r.read = r.left-int64(n), r.read+int64(n)
		if err != nil {
			return cutOff(err)
		}
	}
	return nil
}

// Read reads of the event after its header.
func (r *reader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.in.Read(p[:min(int64(len(p)), r.left)])
	r.left, r.read = r.left-int64(n), r.read+int64(n)
	if err != nil && r.left > 0 {
		return n, cutOff(err)
	}
	return n, nil
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ends within an event", ErrDamaged)
	}
	return err
}

// whole is all of a small event.
func (r *reader) whole(h header) ([]byte, error) {
	if h.size > headMax {
		return nil, fmt.Errorf("%w: an event of kind %s has %d bytes", ErrDamaged, h.kind, h.size)
	}
	raw := make([]byte, h.size)
	copy(raw, h.raw[:])
	_, err := io.ReadFull(r, raw[headerSize:])
	return raw, err
}

// describe takes a format description: whether the events that follow have checksums.
func (r *reader) describe(raw []byte) error {
	if len(raw) < headerSize+checksumSize+1 {
		return fmt.Errorf("%w: its format description is cut off", ErrDamaged)
	}
	switch alg := replication.BinlogChecksum(raw[len(raw)-checksumSize-1]); alg {
	case replication.BINLOG_CHECKSUM_ALG_CRC32:
		r.checksummed = true
	case replication.BINLOG_CHECKSUM_ALG_OFF:
		r.checksummed = false
	default:
		return fmt.Errorf("%w: its events have checksums of the unknown kind %d", ErrDamaged, alg)
	}
	return nil
}

// begins is true for the events that a transaction with a GTID begins with.
func begins(kind replication.EventType) bool {
	return kind == replication.GTID_EVENT || kind == replication.GTID_TAGGED_LOG_EVENT
}

// belongs is true for events that are a part of a transaction, other than its first.
func belongs(kind replication.EventType) bool {
	switch kind {
	case replication.FORMAT_DESCRIPTION_EVENT, replication.PREVIOUS_GTIDS_EVENT, replication.ROTATE_EVENT, replication.STOP_EVENT,
		replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2:
		return false
	default:
		return !begins(kind)
	}
}

// head reads the first event of a transaction.
func (r *reader) head(raw []byte) (archive.Transaction, error) {
	if r.checksummed {
		at := len(raw) - checksumSize
		if crc32.ChecksumIEEE(raw[:at]) != binary.LittleEndian.Uint32(raw[at:]) {
			return archive.Transaction{}, fmt.Errorf("%w: an event has the wrong checksum", ErrDamaged)
		}
	}
	t, err := archive.ParseTransaction(raw, 0, r.checksummed)
	if err != nil || t.GTID == "" {
		return archive.Transaction{}, fmt.Errorf("%w: a transaction has no readable GTID", ErrDamaged)
	}
	return t, nil
}

// formatFor is a format description as a source sends it: not in use, of no server's start, and saying that events have checksums.
func formatFor(raw []byte) []byte {
	out := append([]byte(nil), raw...)
	binary.LittleEndian.PutUint16(out[17:], binary.LittleEndian.Uint16(out[17:])&^flagInUse)
	const created = headerSize + 2 + 50 // after the version of the format and that of the server
	if len(out) >= created+4 {
		binary.LittleEndian.PutUint32(out[created:], 0)
	}
	out[len(out)-checksumSize-1] = byte(replication.BINLOG_CHECKSUM_ALG_CRC32)
	return sealed(out)
}

// sealed sets the checksum of an event, which is its last four bytes.
func sealed(event []byte) []byte {
	at := len(event) - checksumSize
	binary.LittleEndian.PutUint32(event[at:], crc32.ChecksumIEEE(event[:at]))
	return event
}

// rotation tells a receiver the name of the log that follows.
func rotation(name string) []byte {
	const positionSize = 8
	event := make([]byte, headerSize+positionSize+len(name)+checksumSize)
	event[4] = byte(replication.ROTATE_EVENT)
	binary.LittleEndian.PutUint32(event[5:], sourceServerID)
	binary.LittleEndian.PutUint32(event[9:], uint32(len(event)))
	binary.LittleEndian.PutUint16(event[17:], flagArtificial)
	binary.LittleEndian.PutUint64(event[headerSize:], uint64(len(magic)))
	copy(event[headerSize+positionSize:], name)
	return sealed(event)
}
