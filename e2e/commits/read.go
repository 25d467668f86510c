// SPDX-License-Identifier: Apache-2.0

package commits

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
)

// Errors of Read.
var (
	// ErrEncrypted says that the log can only be read through its server.
	ErrEncrypted = errors.New("the binary log is encrypted")
	ErrNoLog     = errors.New("this is no binary log")
)

const (
	magic          = "\xfebin"
	encryptedMagic = "\xfdbin"
	checksum       = 4
	// maxEvent bounds the events that are decoded: their size is known and small.
	maxEvent = 1 << 20
)

// ReadFile reads the transactions of one binary log of a site.
func ReadFile(path, site string) ([]Transaction, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open binary log: %w", err)
	}
	defer func() { _ = f.Close() }()
	all, err := Read(f, site)
	if err != nil {
		return all, fmt.Errorf("read binary log %s of %s: %w", path, site, err)
	}
	return all, nil
}

// binlog is a binary log that is being read.
type binlog struct {
	in     *bufio.Reader
	site   string
	writer uint32
	trail  int // bytes of checksum behind every event
	all    []Transaction
}

// Read reads a binary log. It may end in the middle of an event, as one does that is being written, or was when its server died.
func Read(in io.Reader, site string) ([]Transaction, error) {
	l := &binlog{in: bufio.NewReaderSize(in, 1<<16), site: site}
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(l.in, head); err != nil {
		return nil, nil //nolint:nilerr // made a moment ago: there is nothing in it
	}
	switch string(head) {
	case encryptedMagic:
		return nil, ErrEncrypted
	case magic:
	default:
		return nil, ErrNoLog
	}
	for {
		err := l.event()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return l.all, nil
		}
		if err != nil {
			return l.all, err
		}
	}
}

// event reads one event, and decodes those that tell of transactions.
func (l *binlog) event() error {
	head := make([]byte, replication.EventHeaderSize)
	if _, err := io.ReadFull(l.in, head); err != nil {
		return err // the end of the log, which Read knows
	}
	kind, server := replication.EventType(head[4]), binary.LittleEndian.Uint32(head[5:])
	rest := int(binary.LittleEndian.Uint32(head[9:])) - len(head)
	if rest < 0 {
		return fmt.Errorf("%w: an event of %d bytes", ErrNoLog, rest+len(head))
	}
	switch kind {
	case replication.FORMAT_DESCRIPTION_EVENT, replication.GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT, replication.ANONYMOUS_GTID_EVENT:
	default:
		_, err := l.in.Discard(rest)
		return err // the end of the log, which Read knows
	}
	if rest > maxEvent || rest < l.trail {
		return fmt.Errorf("%w: an event %s of %d bytes", ErrNoLog, kind, rest)
	}
	body := make([]byte, rest)
	if _, err := io.ReadFull(l.in, body); err != nil {
		return err // the end of the log, which Read knows
	}
	if kind == replication.FORMAT_DESCRIPTION_EVENT {
		return l.format(server, body)
	}
	return l.transaction(kind, server, body[:rest-l.trail])
}

// format takes the first event: the server's number, and whether checksums follow. The last five bytes are the algorithm and
// this event's own checksum.
func (l *binlog) format(server uint32, body []byte) error {
	if len(body) < checksum+1 {
		return fmt.Errorf("%w: a description of %d bytes", ErrNoLog, len(body))
	}
	l.writer, l.trail = server, 0
	if body[len(body)-checksum-1] == byte(replication.BINLOG_CHECKSUM_ALG_CRC32) {
		l.trail = checksum
	}
	return nil
}

func (l *binlog) transaction(kind replication.EventType, server uint32, body []byte) (err error) {
	// The library panics at what is malformed.
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%w: an event %s that cannot be read", ErrNoLog, kind)
		}
	}()
	var e replication.GtidTaggedLogEvent
	if kind == replication.GTID_TAGGED_LOG_EVENT {
		err = e.Decode(body)
	} else {
		err = e.GTIDEvent.Decode(body)
	}
	if err != nil {
		return fmt.Errorf("decode event %s: %w", kind, err)
	}
	if e.OriginalCommitTimestamp == 0 { // left out where it is the same
		e.OriginalCommitTimestamp = e.ImmediateCommitTimestamp
	}
	l.all = append(l.all, Transaction{
		Site: l.site, GTID: name(kind, e.GTIDEvent), Server: server, Writer: l.writer,
		At: time.UnixMicro(int64(e.ImmediateCommitTimestamp)), Original: time.UnixMicro(int64(e.OriginalCommitTimestamp)),
	})
	return nil
}

func name(kind replication.EventType, e replication.GTIDEvent) string {
	if kind == replication.ANONYMOUS_GTID_EVENT || len(e.SID) != 16 {
		return "anonymous"
	}
	id := fmt.Sprintf("%x-%x-%x-%x-%x", e.SID[:4], e.SID[4:6], e.SID[6:8], e.SID[8:10], e.SID[10:])
	if tag := e.Tag.String(); tag != "" {
		id += ":" + tag
	}
	return fmt.Sprintf("%s:%d", id, e.GNO)
}
