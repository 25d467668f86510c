// SPDX-License-Identifier: Apache-2.0

package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/klauspost/compress/zstd"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

const (
	typeTableMap  = 19
	typeWriteRows = 30
	lengths       = 42
)

// rawEvent is an event as it comes over the wire, without a checksum.
func rawEvent(kind replication.EventType, body []byte) []byte {
	head := make([]byte, replication.EventHeaderSize)
	head[4] = byte(kind)
	binary.LittleEndian.PutUint32(head[eventSizeField:], uint32(len(head)+len(body)))
	return append(head, body...)
}

func description() []byte {
	body := make([]byte, 2+50+4+1+lengths+checksumTail)
	body[0] = 4
	copy(body[2:], "9.7.0")
	body[56] = replication.EventHeaderSize
	body[56+typeTableMap], body[56+typeWriteRows] = 8, 10
	return rawEvent(replication.FORMAT_DESCRIPTION_EVENT, body)
}

func tableMap() []byte {
	body := []byte{1, 0, 0, 0, 0, 0, 1, 0, 4, 's', 'h', 'o', 'p', 0, 1, 't', 0, 1, 1 /* TINYINT */, 0, 1}
	return rawEvent(replication.TABLE_MAP_EVENT, body)
}

// writeRows inserts rows of one byte each; with its mark of NULL that is two.
func writeRows(rows int) []byte {
	body := []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0xff}
	return rawEvent(replication.WRITE_ROWS_EVENTv2, append(body, bytes.Repeat([]byte{0, 7}, rows)...))
}

func compressed(t *testing.T, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte{payloadType, 1, payloadZstd, payloadEnd}
	return rawEvent(replication.TRANSACTION_PAYLOAD_EVENT, w.EncodeAll(data, body))
}

func taken(t *testing.T, l Limits, events ...[]byte) (*tally, error) {
	t.Helper()
	tally := newTally(gtid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1"), l)
	if err := tally.take(description()); err != nil {
		t.Fatal(err)
	}
	tally.wanted, tally.found = true, 1
	for _, event := range events {
		if err := tally.take(event); err != nil {
			return tally, err
		}
	}
	return tally, nil
}

func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// The operator has half a gigabyte for everything: a large transaction must not be in memory at once.
func TestACompressedTransactionIsReadPieceByPiece(t *testing.T) {
	const events, rows = 2000, 4000
	one := append(tableMap(), writeRows(rows)...)
	raw, size := compressed(t, bytes.Repeat(one, events)), events*len(one)
	runtime.GC()
	before := heap()
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(2 * time.Millisecond):
				most = max(most, heap())
			}
		}
	}()
	got, err := taken(t, Limits{Tables: 1, Bytes: 1 << 30, EventBytes: 1 << 20}, raw)
	close(done)
	used := <-peak - before
	if err != nil {
		t.Fatal(err)
	}
	if c, err := got.counts(); err != nil || len(c.Tables) != 1 || c.Tables[0].Inserted != events*rows {
		t.Errorf("%+v, %v", c, err)
	}
	if used > 128<<20 {
		t.Errorf("%d MiB of memory for %d MiB of events", used>>20, size>>20)
	}
}

// Too small a count would be taken for the whole loss.
func TestTransactionsThatDidNotCome(t *testing.T) {
	tally := newTally(gtid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3"), Limits{Tables: 1})
	for tally.found = range int64(3) {
		if _, err := tally.counts(); !errors.Is(err, ErrIncomplete) {
			t.Errorf("%d of 3 transactions came: error %v", tally.found, err)
		}
	}
	tally.found = 3
	if _, err := tally.counts(); err != nil {
		t.Errorf("all came: %v", err)
	}
}

func TestACompressedTransactionIsBounded(t *testing.T) {
	one := append(tableMap(), writeRows(1000)...)
	good := compressed(t, one)
	tests := map[string]struct {
		limits Limits
		event  []byte
		want   error
	}{
		"fits":            {Limits{Tables: 1, Bytes: 1 << 20, EventBytes: 1 << 20}, good, nil},
		"event too large": {Limits{Tables: 1, Bytes: 1 << 20, EventBytes: 100}, good, ErrTooLarge},
		"too much":        {Limits{Tables: 1, Bytes: 1000, EventBytes: 1 << 20}, good, ErrTooLarge},
		"cut off":         {Limits{Tables: 1, Bytes: 1 << 20, EventBytes: 1 << 20}, good[:len(good)-5], ErrUnreadable},
		"half an event":   {Limits{Tables: 1, Bytes: 1 << 20, EventBytes: 1 << 20}, compressed(t, one[:len(one)-1]), ErrUnreadable},
		"half a head":     {Limits{Tables: 1, Bytes: 1 << 20, EventBytes: 1 << 20}, compressed(t, one[:5]), ErrUnreadable},
		"no data":         {Limits{Tables: 1, Bytes: 1 << 20, EventBytes: 1 << 20}, good[:replication.EventHeaderSize], ErrUnreadable},
		"other algorithm": {Limits{Tables: 1, Bytes: 1 << 20, EventBytes: 1 << 20}, rawEvent(replication.TRANSACTION_PAYLOAD_EVENT, []byte{payloadType, 1, 9, 0}), ErrUnreadable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := taken(t, tt.limits, tt.event); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}
