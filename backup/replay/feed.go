// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Log is one file of the archive, in the order of the history: a binary log, or a segment of one.
type Log struct {
	// Name is for people.
	Name string
	// Run names the binary log of which this is a part; empty if it is one of its own.
	Run string
	// Begin gives the beginning of that binary log, whose format description counts for this file; nil if this is its beginning.
	Begin func(context.Context) (io.ReadCloser, error)
	// Has is what it holds of what is wanted.
	Has gtid.Set
	// Bytes is how long it is, unpacked.
	Bytes int64
	// Open gives its bytes, unpacked and checked.
	Open func(context.Context) (io.ReadCloser, error)
}

// feed sends what is wanted of logs, in their order, each transaction once.
type feed struct {
	logs []Log
	// want is what has not been sent yet.
	want gtid.Set
	to   *conn

	reader *reader
	// format is the format description of the log, until it is sent.
	format []byte
	files  int
	open   transaction

	marks marks
}

// transaction is the one that is being read. It is sent if sending is true; of its length, in bytes, passed are done.
type transaction struct {
	sending        bool
	length, passed int64
}

// send sends everything. An error says which log it is about.
func (f *feed) send(ctx context.Context) error {
	var before int64 // bytes of earlier logs
	run := ""
	for _, log := range f.logs {
		if f.want.IsEmpty() {
			break
		}
		if log.Has.Intersect(f.want).IsEmpty() {
			before += log.Bytes
			continue
		}
		if log.Begin != nil && log.Run != run {
			if err := f.describeBy(ctx, log.Begin); err != nil {
				return fmt.Errorf("the beginning of %s: %w", log.Name, err)
			}
		}
		run = log.Run
		if err := f.log(ctx, log, before); err != nil {
			return fmt.Errorf("%s: %w", log.Name, err)
		}
		before += log.Bytes
	}
	if !f.want.IsEmpty() {
		return fmt.Errorf("%w: it does not hold %.200s, which its manifests name", ErrDamaged, f.want)
	}
	return nil
}

// describeBy reads the format description of a binary log of whose beginning nothing is wanted.
func (f *feed) describeBy(ctx context.Context, begin func(context.Context) (io.ReadCloser, error)) (err error) {
	in, err := begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // its end is not looked for
	f.reader = newReader(in, true, false)
	h, err := f.reader.next()
	if err == nil && h.kind != replication.FORMAT_DESCRIPTION_EVENT || errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: it has no format description", ErrDamaged)
	}
	if err != nil {
		return err
	}
	return f.event(h)
}

// log sends what is wanted of one log.
func (f *feed) log(ctx context.Context, log Log, before int64) error {
	in, err := log.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // of what is not read to its end nobody asks for the end
	f.reader = newReader(in, log.Begin == nil, log.Begin != nil && f.reader.checksummed)
	for {
		h, err := f.reader.next()
		if errors.Is(err, io.EOF) {
			return f.close()
		}
		if err == nil {
			err = f.event(h)
		}
		if err != nil {
			return err
		}
		if f.want.IsEmpty() && !f.open.sending {
			return nil // what follows is not wanted, and need not be read
		}
		f.marks.read(before + f.reader.read)
	}
}

// event sends one event, or leaves it out.
func (f *feed) event(h header) error {
	switch {
	case h.kind == replication.FORMAT_DESCRIPTION_EVENT:
		raw, err := f.reader.whole(h)
		if err != nil {
			return err
		}
		if err := f.reader.describe(raw); err != nil {
			return err
		}
		f.format = formatFor(raw)
		return nil
	case begins(h.kind):
		return f.begin(h)
	case !belongs(h.kind):
		return f.close() // the reader passes it, as it does what is not wanted
	case !f.open.sending:
		return nil
	}
	f.open.passed += int64(h.size)
	return f.pass(h.raw[:], f.reader, int64(h.size)-headerSize)
}

// begin begins a transaction.
func (f *feed) begin(h header) error {
	if err := f.close(); err != nil {
		return err
	}
	raw, err := f.reader.whole(h)
	if err != nil {
		return err
	}
	first, err := f.reader.head(raw)
	if err != nil {
		return err
	}
	if f.want.Intersect(first.ID).IsEmpty() {
		return nil
	}
	if err := f.describe(); err != nil {
		return err
	}
	f.want = f.want.Subtract(first.ID)
	f.open = transaction{sending: true, length: first.To, passed: int64(len(raw))}
	f.marks.sent(first)
	return f.pass(raw[:headerSize], bytes.NewReader(raw[headerSize:]), int64(len(raw))-headerSize)
}

// describe sends the beginning of a log before the first of its transactions.
func (f *feed) describe() error {
	if f.format == nil {
		if f.files == 0 {
			return fmt.Errorf("%w: it has no format description", ErrDamaged)
		}
		return nil
	}
	f.files++
	for _, event := range [][]byte{rotation(fmt.Sprintf("archive.%06d", f.files)), f.format} {
		if err := f.to.event(int64(len(event)), bytes.NewReader(event)); err != nil {
			return err
		}
	}
	f.format = nil
	return nil
}

// close ends a transaction, which must be whole: half of one would never be applied, and all would wait for it.
func (f *feed) close() error {
	t := f.open
	f.open = transaction{}
	if t.sending && t.length > 0 && t.passed != t.length {
		return fmt.Errorf("%w: of a transaction of %d bytes it has %d", ErrDamaged, t.length, t.passed)
	}
	return nil
}

// pass sends an event, of which so many bytes follow its header. What has no checksum gets one, as the receiver was promised.
func (f *feed) pass(head []byte, body io.Reader, left int64) error {
	if f.reader.checksummed {
		return f.to.event(headerSize+left, io.MultiReader(bytes.NewReader(head), body))
	}
	head = bytes.Clone(head)
	binary.LittleEndian.PutUint32(head[9:], uint32(headerSize+left+checksumSize))
	sum := crc32.NewIEEE()
	all := io.TeeReader(io.LimitReader(io.MultiReader(bytes.NewReader(head), body), headerSize+left), sum)
	return f.to.event(headerSize+left+checksumSize, io.MultiReader(all, &checksum{of: func() uint32 { return sum.Sum32() }}))
}

// checksum is a reader of four bytes that are known once all before them was read.
type checksum struct {
	of   func() uint32
	text *bytes.Reader
}

func (c *checksum) Read(p []byte) (int, error) {
	if c.text == nil {
		c.text = bytes.NewReader(binary.LittleEndian.AppendUint32(nil, c.of()))
	}
	return c.text.Read(p)
}

// markEvery is how many bytes of the archive are between two marks, and marksMax how many marks are kept.
const (
	markEvery = 1 << 20
	marksMax  = 4096
)

// marks remember how far the archive was read when a transaction was sent, so that what is applied tells how much of it is done.
type marks struct {
	mu    sync.Mutex
	all   []mark
	bytes int64
	last  time.Time
	count int64
}

type mark struct {
	id    gtid.Set
	bytes int64
}

func (m *marks) read(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes = bytes
}

// sent notes a transaction.
func (m *marks) sent(t archive.Transaction) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.Committed.After(m.last) {
		m.last = t.Committed
	}
	m.count++
	if n := len(m.all); n == 0 || n < marksMax && m.bytes-m.all[n-1].bytes >= markEvery {
		m.all = append(m.all, mark{id: t.ID, bytes: m.bytes})
	}
}

// done is how much of the archive is applied, given what the server has executed.
func (m *marks) done(executed gtid.Set) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out int64
	for len(m.all) > 1 && executed.Contains(m.all[0].id) {
		out = m.all[0].bytes
		m.all = m.all[1:]
	}
	if len(m.all) > 0 {
		return m.all[0].bytes
	}
	return out
}

// end is when the last of what was sent was committed, and how many it was.
func (m *marks) end() (time.Time, int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.count
}
