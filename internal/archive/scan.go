// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	protocol "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Magic is the beginning of a binary log.
const Magic = "\xfebin"

// Content is what a file holds, as its manifest says.
type Content struct {
	// Set are the transactions in it, Previous what was executed before it.
	Set, Previous gtid.Set
	Transactions  int64
	// FirstCommit and LastCommit are the earliest and latest original commit, in microseconds since 1970; 0 without any.
	FirstCommit, LastCommit int64
	Checksums               bool
	SeenAt                  time.Time
}

// Transaction is one of a binary log.
type Transaction struct {
	// GTID is empty if it has none; ID is the same GTID as a set.
	GTID string
	ID   gtid.Set
	// Committed is when it was first committed, by the clock of that server, in microseconds.
	Committed time.Time
	// From and To are its bytes in the log; To is 0 if the event does not say.
	From, To int64
}

// Header is the beginning of every event.
type Header struct {
	Time time.Time // of its statement, in seconds
	Type replication.EventType
	// Bytes is its length with header and checksum.
	Bytes int64
	// End is the position after it as the server wrote it; 0 for an event that is not in the log.
	End   uint32
	Flags uint16
}

// HeaderBytes is the length of a header.
const HeaderBytes = replication.EventHeaderSize

// checksumBytes is the length of the checksum at the end of an event, in a log with checksums.
const checksumBytes = 4

// bodyMax bounds the events that are parsed: sets of GTIDs are the longest.
const bodyMax = 16 << 20

var errEvent = errors.New("the binary log holds an event that cannot be read")

// ParseHeader reads the first HeaderBytes of an event.
func ParseHeader(raw []byte) (Header, error) {
	if len(raw) < HeaderBytes {
		return Header{}, fmt.Errorf("%w: it is cut off", errEvent)
	}
	h := Header{
		Time: time.Unix(int64(binary.LittleEndian.Uint32(raw)), 0).UTC(), Type: replication.EventType(raw[4]),
		Bytes: int64(binary.LittleEndian.Uint32(raw[9:])), End: binary.LittleEndian.Uint32(raw[13:]), Flags: binary.LittleEndian.Uint16(raw[17:]),
	}
	if h.Bytes < HeaderBytes {
		return Header{}, fmt.Errorf("%w: it is shorter than its header", errEvent)
	}
	return h, nil
}

// Telling is true for events that say where transactions begin and what was before: the others need not be parsed.
func (h Header) Telling() bool {
	switch h.Type { //nolint:exhaustive // all others hold data
	case replication.FORMAT_DESCRIPTION_EVENT, replication.PREVIOUS_GTIDS_EVENT, replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT,
		replication.GTID_TAGGED_LOG_EVENT, replication.ROTATE_EVENT:
		return h.Bytes <= bodyMax
	}
	return false
}

// Checksummed says whether a format description (a whole event) announces checksums.
func Checksummed(event []byte) bool {
	const tail = checksumBytes + 1
	return len(event) >= HeaderBytes+tail && replication.BinlogChecksum(event[len(event)-tail]) == replication.BINLOG_CHECKSUM_ALG_CRC32
}

// body is an event without header and checksum.
func body(event []byte, checksums bool) []byte {
	end := len(event)
	if checksums {
		end -= checksumBytes
	}
	return event[HeaderBytes:max(HeaderBytes, end)]
}

// decodeEvent guards against events that make the library panic, and does not return its errors, which may quote data.
func decodeEvent(e replication.Event, data []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = errEvent
		}
	}()
	if e.Decode(data) != nil {
		return errEvent
	}
	return nil
}

// ParseTransaction reads the event that begins a transaction: a whole event, at the given position of its log.
func ParseTransaction(event []byte, at int64, checksums bool) (Transaction, error) {
	h, err := ParseHeader(event)
	if err != nil {
		return Transaction{}, err
	}
	e, err := beginning(h, event, checksums)
	if err != nil {
		return Transaction{}, err
	}
	t := begins(e, at)
	if h.Type == replication.ANONYMOUS_GTID_EVENT {
		return t, nil
	}
	next, err := e.GTIDNext()
	if err != nil {
		return Transaction{}, errEvent
	}
	if t.ID, err = gtid.Parse(next.String()); err != nil {
		return Transaction{}, errEvent
	}
	t.GTID = t.ID.String()
	return t, nil
}

// beginning decodes the event that begins a transaction.
func beginning(h Header, event []byte, checksums bool) (*replication.GtidTaggedLogEvent, error) {
	e := &replication.GtidTaggedLogEvent{}
	if h.Type == replication.GTID_TAGGED_LOG_EVENT {
		return e, decodeEvent(e, body(event, checksums))
	}
	return e, decodeEvent(&e.GTIDEvent, body(event, checksums))
}

// begins is what such an event, at the given position, says of its transaction, but for the GTID.
func begins(e *replication.GtidTaggedLogEvent, at int64) Transaction {
	t := Transaction{From: at, Committed: micro(int64(e.OriginalCommitTimestamp))}
	if n := e.TransactionLength; n > 0 && n < logMax {
		t.To = at + int64(n)
	}
	return t
}

// ParsePrevious reads the event with the set of what was executed before a log.
func ParsePrevious(event []byte, checksums bool) (gtid.Set, error) {
	e := &replication.PreviousGTIDsEvent{}
	if err := decodeEvent(e, body(event, checksums)); err != nil {
		return gtid.Set{}, err
	}
	s, err := gtid.Parse(e.GTIDSets)
	if err != nil {
		return gtid.Set{}, errEvent
	}
	return s, nil
}

// tally gathers many single GTIDs, as runs of one sequence at a time, so that it costs little however many there are.
type tally struct {
	set  gtid.Set
	runs []string
	head string // "uuid:tag:" of the run
	from int64
	to   int64
	// sid and tag are head as the event had it that the run began with.
	sid string
	tag protocol.Tag
}

// runsMax is how many runs are gathered before they are added to the set.
const runsMax = 4096

// goesOn takes the GTID of an event if it is the next one of the run, as most are. Nothing is made or parsed for it: an active site commits thousands
// a second, and its archiver has the same processors.
func (t *tally) goesOn(e *replication.GtidTaggedLogEvent) bool {
	if t.head == "" || e.GNO == math.MaxInt64 || e.GNO != t.to+1 || e.Tag != t.tag || string(e.SID) != t.sid {
		return false
	}
	t.to = e.GNO
	return true
}

// begin takes the GTID of an event, with its text, so that the events after it may go on.
func (t *tally) begin(id string, e *replication.GtidTaggedLogEvent) {
	t.add(id)
	t.sid, t.tag = string(e.SID), e.Tag
}

// add takes the text of one GTID.
func (t *tally) add(id string) {
	i := strings.LastIndexByte(id, ':')
	head, n := id[:i+1], Number("."+id[i+1:])
	if head == t.head && n == t.to+1 {
		t.to = n
		return
	}
	t.end()
	t.head, t.from, t.to = head, n, n
	if len(t.runs) >= runsMax {
		t.flush()
	}
}

func (t *tally) end() {
	if t.head != "" {
		t.runs = append(t.runs, fmt.Sprintf("%s%d-%d", t.head, t.from, t.to))
		t.head = ""
	}
}

func (t *tally) flush() {
	if s, err := gtid.Parse(strings.Join(t.runs, ",")); err == nil { // always: the runs are made of parsed GTIDs
		t.set = t.set.Union(s)
	}
	t.runs = slices.Delete(t.runs, 0, len(t.runs))
}

func (t *tally) sum() gtid.Set {
	t.end()
	t.flush()
	return t.set
}

// Counter makes a Content from the events of one file.
type Counter struct {
	content Content
	tally   tally
	open    int64
}

// NewCounter begins a file with the set that was executed before it. The event in a log that has one replaces that set.
func NewCounter(previous gtid.Set, checksums bool) *Counter {
	return &Counter{content: Content{Previous: previous, Checksums: checksums}}
}

// Add takes a telling event, as it is in the log at the given position.
func (c *Counter) Add(event []byte, at int64) error {
	h, err := ParseHeader(event)
	if err != nil {
		return err
	}
	switch h.Type { //nolint:exhaustive // the others tell nothing
	case replication.FORMAT_DESCRIPTION_EVENT:
		c.content.Checksums = Checksummed(event)
	case replication.PREVIOUS_GTIDS_EVENT:
		c.content.Previous, err = ParsePrevious(event, c.content.Checksums)
	case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT:
		err = c.transaction(h, event, at)
	}
	return err
}

func (c *Counter) transaction(h Header, event []byte, at int64) error {
	e, err := beginning(h, event, c.content.Checksums)
	if err != nil {
		return err
	}
	t := begins(e, at)
	if h.Type != replication.ANONYMOUS_GTID_EVENT && !c.tally.goesOn(e) {
		if t, err = ParseTransaction(event, at, c.content.Checksums); err != nil {
			return err
		}
		c.tally.begin(t.GTID, e)
	}
	c.content.Transactions++
	c.open = t.To
	if t.Committed.IsZero() {
		return nil
	}
	us := t.Committed.UnixMicro()
	if c.content.FirstCommit == 0 || us < c.content.FirstCommit {
		c.content.FirstCommit = us
	}
	c.content.LastCommit = max(c.content.LastCommit, us)
	return nil
}

// Content is the content of all events that were added.
func (c *Counter) Content() Content {
	c.content.Set = c.tally.sum()
	return c.content
}

// Transactions calls do with each transaction of a file's plaintext, in order, until it returns an error; ErrDone ends without one. It holds
// no more than one telling event.
func Transactions(r io.Reader, l Log, do func(Transaction) error) error {
	in := bufio.NewReaderSize(r, 256<<10)
	s := scan{at: l.From, checksums: l.Checksums, do: do}
	if l.From == 0 {
		magic := make([]byte, len(Magic))
		if _, err := io.ReadFull(in, magic); err != nil {
			return err
		}
		if string(magic) != Magic {
			return fmt.Errorf("%s: it does not begin as a binary log", l.Name())
		}
		s.at += int64(len(Magic))
	}
	for {
		event, h, err := nextEvent(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.take(event, h)
		}
		if errors.Is(err, ErrDone) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", l.Name(), err)
		}
	}
}

// scan is the state of Transactions.
type scan struct {
	at        int64
	checksums bool
	do        func(Transaction) error
}

func (s *scan) take(event []byte, h Header) error {
	at := s.at
	s.at += h.Bytes
	switch h.Type { //nolint:exhaustive // the others begin no transaction
	case replication.FORMAT_DESCRIPTION_EVENT:
		s.checksums = Checksummed(event)
	case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT:
		t, err := ParseTransaction(event, at, s.checksums)
		if err != nil {
			return err
		}
		return s.do(t)
	}
	return nil
}

// ErrDone ends Transactions.
var ErrDone = errors.New("that is all that was wanted")

// nextEvent reads one event, but only the header of one that is not telling.
func nextEvent(in *bufio.Reader) ([]byte, Header, error) {
	head := make([]byte, HeaderBytes)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, Header{}, err // io.EOF alone is the end
	}
	h, err := ParseHeader(head)
	if err != nil {
		return nil, h, err
	}
	rest := h.Bytes - HeaderBytes
	if !h.Telling() {
		_, err = io.CopyN(io.Discard, in, rest)
		return head, h, noEOF(err)
	}
	event := make([]byte, h.Bytes)
	copy(event, head)
	_, err = io.ReadFull(in, event[HeaderBytes:])
	return event, h, noEOF(err)
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Checksums is true if the next events have checksums.
func (c *Counter) Checksums() bool { return c.content.Checksums }

// Open is where the last transaction ends that began; 0 if there is none, or its event does not say.
func (c *Counter) Open() int64 { return c.open }
