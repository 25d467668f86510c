// SPDX-License-Identifier: Apache-2.0

package commits

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// log writes a binary log as a server does.
type log struct{ bytes.Buffer }

func newLog(server uint32) *log {
	l := &log{}
	l.WriteString(magic)
	l.event(15, server, append(make([]byte, 60), 1)) // checksums are on
	return l
}

func (l *log) event(kind byte, server uint32, body []byte) {
	head := make([]byte, 19)
	head[4] = kind
	binary.LittleEndian.PutUint32(head[5:], server)
	binary.LittleEndian.PutUint32(head[9:], uint32(19+len(body)+4))
	l.Write(head)
	l.Write(body)
	l.Write([]byte{0xde, 0xad, 0xbe, 0xef})
}

// transaction writes the event that begins one, and one that is no news.
func (l *log) transaction(server uint32, n int64, at, original int64) {
	body := append([]byte{0}, bytes.Repeat([]byte{0x11}, 16)...)
	body = binary.LittleEndian.AppendUint64(body, uint64(n))
	body = append(body, 2)
	body = append(body, make([]byte, 16)...)
	stamp := func(us int64, flag uint64) {
		raw := binary.LittleEndian.AppendUint64(nil, uint64(us)|flag)
		body = append(body, raw[:7]...)
	}
	if at == original {
		stamp(at, 0)
	} else {
		stamp(at, 1<<55)
		stamp(original, 0)
	}
	body = append(body, 42, 0, 0, 9, 0)
	l.event(33, server, body)
	l.event(2, server, []byte("INSERT INTO t VALUES ('GTID')"))
}

const us = 1_790_000_000_000_000

func TestRead(t *testing.T) {
	l := newLog(7)
	l.transaction(7, 1, us, us)
	l.transaction(8, 2, us+500, us+100)
	whole := bytes.Clone(l.Bytes())
	want := []Transaction{
		{Site: "east", GTID: "11111111-1111-1111-1111-111111111111:1", At: time.UnixMicro(us), Original: time.UnixMicro(us), Server: 7, Writer: 7},
		{Site: "east", GTID: "11111111-1111-1111-1111-111111111111:2", At: time.UnixMicro(us + 500), Original: time.UnixMicro(us + 100), Server: 8, Writer: 7},
	}
	for name, tt := range map[string]struct {
		raw  []byte
		want []Transaction
		err  error
	}{
		"whole":                {raw: whole, want: want},
		"empty":                {},
		"cut in an event":      {raw: whole[:len(whole)-70], want: want[:1]},
		"cut after the magic":  {raw: whole[:4]},
		"encrypted":            {raw: []byte("\xfdbin and more"), err: ErrEncrypted},
		"something else":       {raw: []byte("ELF, perhaps"), err: ErrNoLog},
		"an event of no bytes": {raw: append(bytes.Clone(whole), make([]byte, 19)...), want: want, err: ErrNoLog},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(bytes.NewReader(tt.raw), "east")
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The old site's client never learned what came of its COMMIT, so no journal holds it; the log does.
func TestOverlapThatOnlyTheLogsShow(t *testing.T) {
	a, b := newLog(1), newLog(2)
	a.transaction(1, 1, us, us)
	b.transaction(1, 1, us+50, us)
	b.transaction(2, 2, us+1000, us+1000)
	a.transaction(1, 3, us+1001, us+1001)
	var all []Transaction
	for site, l := range map[string]*log{"a": a, "b": b} {
		got, err := Read(l, site)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got...)
	}
	got := Overlaps(all, turns("a", "b"))
	if len(got) != 1 || got[0].Site != "a" || got[0].Count != 1 || !got[0].Since.Equal(time.UnixMicro(us+1000)) {
		t.Errorf("overlaps %v", got)
	}
}
