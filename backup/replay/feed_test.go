// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

const server = "11111111-1111-1111-1111-111111111111"

// logOf makes events as a server writes them.
type logOf struct {
	out       bytes.Buffer
	checksums bool
}

func (l *logOf) event(kind replication.EventType, body []byte) []byte {
	tail := 0
	if l.checksums || kind == replication.FORMAT_DESCRIPTION_EVENT {
		tail = checksumSize
	}
	raw := make([]byte, headerSize+len(body)+tail)
	raw[4] = byte(kind)
	binary.LittleEndian.PutUint32(raw[9:], uint32(len(raw)))
	copy(raw[headerSize:], body)
	if tail > 0 {
		sealed(raw)
	}
	return raw
}

// begin is the beginning of a log.
func (l *logOf) begin() *logOf {
	body := make([]byte, 2+50+4+1+40+1)
	binary.LittleEndian.PutUint32(body[52:], 77) // when it was created
	if l.checksums {
		body[len(body)-1] = 1
	}
	raw := l.event(replication.FORMAT_DESCRIPTION_EVENT, body)
	raw[17] = flagInUse
	l.out.Write(magic)
	l.out.Write(raw)
	return l
}

// add adds a transaction with one event of some text.
func (l *logOf) add(n int64, text string) *logOf {
	body := make([]byte, 1+16+8+1+8+8+7+1)
	for i := range 16 {
		body[1+i] = 0x11
	}
	binary.LittleEndian.PutUint64(body[17:], uint64(n))
	body[25] = 2
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second).UnixMicro()
	for i := range 7 {
		body[42+i] = byte(at >> (8 * i))
	}
	rows := l.event(replication.WRITE_ROWS_EVENTv2, []byte(text))
	head := len(l.event(replication.GTID_EVENT, body))
	body[49] = byte(head + len(rows))
	if body[49] >= 251 {
		panic("the text is too long")
	}
	l.out.Write(l.event(replication.GTID_EVENT, body))
	l.out.Write(rows)
	return l
}

func (l *logOf) log(name, has string) Log {
	raw := bytes.Clone(l.out.Bytes())
	return Log{Name: name, Has: gtid.MustParse(has), Bytes: int64(len(raw)), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(raw)), nil
	}}
}

// sink is a connection that keeps what it is sent, as events.
func sink() (*conn, func() []string) {
	var all bytes.Buffer
	c := &conn{out: bufio.NewWriter(&all)}
	return c, func() (out []string) {
		_ = c.out.Flush()
		raw := all.Bytes()
		for len(raw) > 0 {
			n := int(raw[0]) | int(raw[1])<<8 | int(raw[2])<<16
			event := raw[5 : 4+n]
			raw = raw[4+n:]
			at := len(event) - checksumSize
			whole := "whole"
			if crc32.ChecksumIEEE(event[:at]) != binary.LittleEndian.Uint32(event[at:]) || int(binary.LittleEndian.Uint32(event[9:])) != len(event) {
				whole = "damaged"
			}
			text := ""
			switch replication.EventType(event[4]) { //nolint:exhaustive // the others are not made here
			case replication.GTID_EVENT:
				text = fmt.Sprint(binary.LittleEndian.Uint64(event[headerSize+17:]))
			case replication.WRITE_ROWS_EVENTv2:
				text = string(event[headerSize:at])
			case replication.ROTATE_EVENT:
				text = string(event[headerSize+8 : at])
			case replication.FORMAT_DESCRIPTION_EVENT:
				text = fmt.Sprintf("created %d, flags %d, checksums %d", binary.LittleEndian.Uint32(event[headerSize+52:]), event[17], event[at-1])
			}
			out = append(out, fmt.Sprintf("%d %s %s", event[4], text, whole))
		}
		return out
	}
}

func TestWhatIsWantedIsSentOnceAndNothingElse(t *testing.T) {
	for _, checksums := range []bool{true, false} {
		first := (&logOf{checksums: checksums}).begin().add(1, "one").add(2, "two").add(3, "three")
		second := (&logOf{checksums: checksums}).begin().add(3, "three again").add(4, "four").add(5, "five")
		to, got := sink()
		f := &feed{to: to, want: gtid.MustParse(server + ":2-4"), logs: []Log{first.log("first", server+":1-3"), second.log("second", server+":3-5")}}
		if err := f.send(t.Context()); err != nil {
			t.Fatal(err)
		}
		describe := "15 created 0, flags 0, checksums 1 whole"
		want := []string{"4 archive.000001 whole", describe, "33 2 whole", "30 two whole", "33 3 whole", "30 three whole", "4 archive.000002 whole", describe, "33 4 whole", "30 four whole"}
		if all := got(); !slices.Equal(all, want) {
			t.Errorf("checksums %t: sent\n%s", checksums, strings.Join(all, "\n"))
		}
		until, n := f.marks.end()
		if n != 3 || !until.Equal(time.Date(2026, 11, 24, 12, 0, 4, 0, time.UTC)) {
			t.Errorf("%d until %s", n, until)
		}
	}
}

// A segment other than the first has no format description of its own: that of the log's beginning is read, whether or not anything of it
// is wanted.
func TestSegmentsAreReadByTheBeginningOfTheirLog(t *testing.T) {
	first := (&logOf{checksums: true}).begin().add(1, "one")
	second := (&logOf{checksums: true}).add(2, "two")
	third := (&logOf{checksums: true}).add(3, "three")
	begin := first.log("0", server+":1")
	b, c := second.log("1", server+":2"), third.log("2", server+":3")
	begin.Run, b.Run, c.Run = "run", "run", "run"
	b.Begin, c.Begin = begin.Open, begin.Open
	for want, logs := range map[string][]Log{"1-3": {begin, b, c}, "2-3": {b, c}, "3": {b, c}} {
		to, got := sink()
		f := &feed{to: to, want: gtid.MustParse(server + ":" + want), logs: logs}
		if err := f.send(t.Context()); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		all := got()
		if n := len(all); n < 4 || !strings.HasPrefix(all[0], "4 ") || !strings.HasPrefix(all[1], "15 ") || all[n-1] != "30 three whole" {
			t.Errorf("%s: sent\n%s", want, strings.Join(all, "\n"))
		}
		for _, event := range all[2:] {
			if strings.HasPrefix(event, "4 ") || strings.HasPrefix(event, "15 ") || strings.HasSuffix(event, "damaged") {
				t.Errorf("%s: sent\n%s", want, strings.Join(all, "\n"))
			}
		}
	}
}

// TestATimeThatLooksLikeAMagic: a session may set the time of its events to anything, and a segment may begin with one.
func TestATimeThatLooksLikeAMagic(t *testing.T) {
	raw := (&logOf{}).event(replication.GTID_EVENT, make([]byte, 42))
	copy(raw, magic)
	if h, err := newReader(bytes.NewReader(raw), false, false).next(); err != nil || h.kind != replication.GTID_EVENT || int(h.size) != len(raw) {
		t.Errorf("within a log: %+v, %v", h, err)
	}
	if h, err := newReader(bytes.NewReader(slices.Concat(magic, raw)), true, false).next(); err != nil || h.kind != replication.GTID_EVENT {
		t.Errorf("at the beginning of a log: %+v, %v", h, err)
	}
}

func TestDamageIsNotPassedOn(t *testing.T) {
	good := (&logOf{checksums: true}).begin().add(1, "one").add(2, "two")
	flipped := (&logOf{checksums: true}).begin().add(1, "one")
	flipped.out.Bytes()[flipped.out.Len()-len("one")-30] ^= 1
	short := (&logOf{checksums: true}).begin().add(1, "one")
	short.out.Truncate(short.out.Len() - 3)
	half := (&logOf{checksums: true}).begin().add(1, "one")
	half.out.Truncate(half.out.Len() - len(half.event(replication.WRITE_ROWS_EVENTv2, []byte("one"))))
	headless := (&logOf{checksums: true}).add(1, "one")
	huge := (&logOf{checksums: true}).begin()
	huge.out.Write(append(make([]byte, 9), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0))
	for name, c := range map[string]struct {
		log  *logOf
		want string
	}{
		"a GTID with a wrong bit": {flipped, "1"}, "the end is missing": {short, "1"}, "half a transaction": {half, "1"},
		"what the manifest names is not there": {good, "1-3"}, "no format description": {headless, "1"}, "an event of 4 GiB": {huge, "1"},
	} {
		to, _ := sink()
		f := &feed{to: to, want: gtid.MustParse(server + ":" + c.want), logs: []Log{c.log.log("log", server+":1-3")}}
		if err := f.send(t.Context()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsAppliedTellsHowMuchIsDone(t *testing.T) {
	var m marks
	for i := range int64(10) {
		m.read(i * markEvery)
		tr, err := newReader(nil, true, false).head((&logOf{}).event(replication.GTID_EVENT, append([]byte{0}, append(bytes.Repeat([]byte{0x11}, 16), byte(i+1), 0, 0, 0, 0, 0, 0, 0)...)))
		if err != nil {
			t.Fatal(err)
		}
		m.sent(tr)
	}
	// In this order: what a server has executed only grows, and done forgets the marks that are behind it.
	for _, c := range []struct {
		executed string
		want     int64
	}{{"", 0}, {server + ":1-4", 4 * markEvery}} {
		if got := m.done(gtid.MustParse(c.executed)); got != c.want {
			t.Errorf("with %q done %d, want %d", c.executed, got, c.want)
		}
	}
}

// Events of 16 MiB and more take several packets, the last of which is shorter.
func TestLargeEventsTakeSeveralPackets(t *testing.T) {
	for _, size := range []int64{100, packetMax - 2, packetMax - 1, packetMax, 2*packetMax - 1, 2*packetMax + 7} {
		var out bytes.Buffer
		c := &conn{out: bufio.NewWriter(&out)}
		if err := c.event(size, io.LimitReader(zeros{}, size)); err != nil {
			t.Fatal(err)
		}
		_ = c.out.Flush()
		raw, sum := out.Bytes(), int64(0)
		for seq := byte(0); ; seq++ {
			n := int64(raw[0]) | int64(raw[1])<<8 | int64(raw[2])<<16
			if raw[3] != seq {
				t.Fatalf("%d bytes: packet %d has the number %d", size, seq, raw[3])
			}
			sum += n
			if raw = raw[4+n:]; n < packetMax {
				break
			}
		}
		if sum != size+1 || len(raw) != 0 {
			t.Errorf("%d bytes became %d, and %d are left", size, sum, len(raw))
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Whoever can reach the loopback of the pod gets nothing without the password, and cannot have the program take memory.
func TestNobodyElseIsSentTheArchive(t *testing.T) {
	s, err := listen(t.Context(), "9.7.4", func(*conn) error { t.Error("it was sent"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.serve(ctx); close(done) }()
	for name, answer := range map[string][]byte{
		"nothing":             {},
		"no password":         append(append(make([]byte, 32), sourceUser...), 0, 0),
		"a wrong password":    append(append(append(make([]byte, 32), sourceUser...), 0, 32), make([]byte, 32)...),
		"a length of nothing": append(append(make([]byte, 32), sourceUser...), 0, 200),
		"a huge packet":       nil,
	} {
		raw, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := newConn(raw)
		if _, err := c.take(); err != nil {
			t.Fatal(err)
		}
		if answer == nil {
			_, _ = raw.Write([]byte{0xff, 0xff, 0xff, 1})
		} else {
			if len(answer) > 4 {
				binary.LittleEndian.PutUint32(answer, capPluginAuth|capProtocol41)
			}
			_ = c.give(answer)
		}
		_ = c.give([]byte{commandDumpGTID})
		rest, _ := io.ReadAll(raw)
		if bytes.Contains(rest, magic) || len(rest) > 200 {
			t.Errorf("%s: answered %q", name, rest)
		}
		_ = raw.Close()
	}
	cancel()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}
