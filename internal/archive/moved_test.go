// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// sealedTwice is a log in two segments and as a whole.
func sealedTwice(t *testing.T, a *Archive, segments, all Recipients) (m *madeLog, first, second, whole Log) {
	t.Helper()
	m, first, second = twoSegments(t, a, segments)
	whole = must(t)(put(t, a, m, LogManifest{Epoch: 1, Log: "binlog.000001", Sealed: true, To: int64(len(m.raw))}, NewCounter(gtid.Set{}, false), all))
	return m, first, second, whole
}

// A segment that is there is read where it is, and a sealed log is looked for nowhere else.
func TestWhatIsThereIsReadThere(t *testing.T) {
	t.Parallel()
	s, a, fresh := openStorage(t)
	m, first, second, whole := sealedTwice(t, a, Recipients{}, Recipients{})
	for _, l := range []Log{first, second, whole} {
		s.refuse()
		got, err := readAll(t, fresh, l, bucket.Identities{})
		if err != nil || !bytes.Equal(got, m.raw[l.From:l.To]) || len(s.requests("")) != 1 || s.requests("")[0] != "GET "+l.dataKey() {
			t.Errorf("%s: %d bytes: %v, asked for %q", l.Name(), len(got), err, s.requests(""))
		}
	}
	delete(s.objects, whole.dataKey())
	s.refuse()
	if got, err := readAll(t, fresh, whole, bucket.Identities{}); !bucket.Missing(err) || len(s.requests("")) != 1 {
		t.Errorf("%d bytes: %v, asked for %q", len(got), err, s.requests(""))
	}
}

// I27: if a segment is gone and its sealed log cannot be asked for, the error is that of the log, which can pass, and not that the segment is gone. A segment
// that cannot be asked for is not gone.
func TestASealedLogThatCannotBeReadI27(t *testing.T) {
	t.Parallel()
	r, ids := encryptedTo(t)
	stranger, _ := encryptedTo(t)
	for name, tc := range map[string]struct {
		segments, all Recipients
		gone          bool
		refused       func(l, whole Log) string
		kind          bucket.Kind
		opened        bool // the error comes only once it is read
	}{
		"its manifest":                         {Recipients{}, Recipients{}, true, func(_, whole Log) string { return "GET " + whole.key() }, bucket.AccessDenied, true},
		"its manifest, of encrypted segments":  {r, r, true, func(_, whole Log) string { return "GET " + whole.key() }, bucket.AccessDenied, false},
		"its data":                             {Recipients{}, Recipients{}, true, func(_, whole Log) string { return "GET " + whole.dataKey() }, bucket.AccessDenied, true},
		"its data, of encrypted segments":      {r, Recipients{}, true, func(_, whole Log) string { return "GET " + whole.dataKey() }, bucket.AccessDenied, false},
		"it is encrypted to somebody else":     {Recipients{}, stranger, true, func(Log, Log) string { return "" }, bucket.WrongIdentity, true},
		"the segment, which is not gone":       {Recipients{}, Recipients{}, false, func(l, _ Log) string { return "GET " + l.dataKey() }, bucket.AccessDenied, true},
		"the segment, which is also encrypted": {r, r, false, func(l, _ Log) string { return "GET " + l.dataKey() }, bucket.AccessDenied, false},
	} {
		s, a, fresh := openStorage(t)
		_, _, second, whole := sealedTwice(t, a, tc.segments, tc.all)
		if tc.gone {
			delete(s.objects, second.dataKey())
		}
		s.refuse(tc.refused(second, whole))
		in, err := fresh.Read(t.Context(), second, ids)
		if (err == nil) != tc.opened {
			t.Errorf("I27: %s: opened: %v", name, err)
		}
		if err == nil {
			_, err = io.ReadAll(in)
			_ = in.Close()
		}
		if bucket.KindOf(err) != tc.kind || bucket.Missing(err) {
			t.Errorf("I27: %s: %v", name, err)
		}
	}
}

// A sealed log that is gone too ends the reading: it does not look for it once more, over and over.
func TestASealedLogThatIsGoneToo(t *testing.T) {
	t.Parallel()
	s, a, fresh := openStorage(t)
	_, first, _, whole := sealedTwice(t, a, Recipients{}, Recipients{})
	delete(s.objects, first.dataKey())
	delete(s.objects, whole.dataKey())
	in, err := fresh.Read(t.Context(), first, bucket.Identities{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	for range 5 {
		if _, err = in.Read(make([]byte, 10)); err != nil {
			break
		}
	}
	if !bucket.Missing(err) {
		t.Errorf("%v", err)
	}
}

// A segment that ends where its log does is whole with the last byte of the sealed log.
func TestASegmentAtTheEndOfItsLog(t *testing.T) {
	t.Parallel()
	s, a, fresh := openStorage(t)
	m, first, second, _ := sealedTwice(t, a, Recipients{}, Recipients{})
	for _, l := range []Log{first, second} {
		delete(s.objects, l.dataKey())
		if got, err := readAll(t, fresh, l, bucket.Identities{}); err != nil || !bytes.Equal(got, m.raw[l.From:l.To]) {
			t.Errorf("%s: %d bytes: %v", l.Name(), len(got), err)
		}
	}
}

// broken fails to be read, and counts how often it is closed.
type broken struct{ closed int }

var errBroken = errors.New("broken")

func (*broken) Read([]byte) (int, error) { return 0, errBroken }
func (b *broken) Close() error           { b.closed++; return nil }

// Only the log that was read to its end is proven; then it is not read once more. What was read before a move is closed.
func TestWhatIsProven(t *testing.T) {
	t.Parallel()
	s, a, _ := openStorage(t)
	_, first, second, whole := sealedTwice(t, a, Recipients{}, Recipients{})
	in := &broken{}
	r := &segment{ctx: t.Context(), a: a, l: second, now: in, whole: &whole}
	for range 2 {
		if err := r.end(); !errors.Is(err, errBroken) {
			t.Errorf("a log that cannot be read to its end is proven: %v", err)
		}
	}
	a.prove(first)
	if err := r.end(); !errors.Is(err, errBroken) {
		t.Errorf("another proves it: %v", err)
	}
	a.prove(whole)
	if err := r.end(); !errors.Is(err, io.EOF) {
		t.Errorf("it is read again: %v", err)
	}
	s.refuse()
	r = &segment{ctx: t.Context(), a: a, l: second, now: in}
	if err := r.move(); err != nil || in.closed != 1 || r.whole == nil {
		t.Errorf("closed %d times: %v", in.closed, err)
	}
	_ = r.Close()
}
