// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

const madeLog = "binlog.000007"

// made is an event that lies at a position; at 0 it lies nowhere, as those that the server makes up.
func made(at int64, kind replication.EventType, data []byte) []byte {
	size := archive.HeaderBytes + len(data) + 4
	end := uint32(at) + uint32(size)
	if at == 0 {
		end = 0
	}
	e := binary.LittleEndian.AppendUint32(nil, 1700000000)
	e = append(e, byte(kind))
	e = binary.LittleEndian.AppendUint32(e, 7)
	e = binary.LittleEndian.AppendUint32(e, uint32(size))
	e = binary.LittleEndian.AppendUint32(e, end)
	e = binary.LittleEndian.AppendUint16(e, 0)
	e = append(e, data...)
	return binary.LittleEndian.AppendUint32(e, crc32.ChecksumIEEE(e))
}

func description() []byte {
	return append(make([]byte, 99), byte(replication.BINLOG_CHECKSUM_ALG_CRC32))
}

func rotation(log string, at int64) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(at)), log...)
}

// transaction is the beginning of one that has so many bytes.
func transaction(n, bytes int) []byte {
	e := append([]byte{1}, make([]byte, 15)...)
	e = append(e, 9)
	e = binary.LittleEndian.AppendUint64(e, uint64(n))
	e = append(e, 2)
	e = append(e, make([]byte, 16)...)
	e = append(e, binary.LittleEndian.AppendUint64(nil, uint64(n)*1000)[:7]...)
	e = append(e, 0xfd, byte(bytes), byte(bytes>>8), byte(bytes>>16))
	return binary.LittleEndian.AppendUint32(e, 90704)
}

// stream is what a server sends of a log with two transactions, each packet without its marker, and the log itself.
func stream() (packets [][]byte, log []byte) {
	log = []byte(archive.Magic)
	add := func(kind replication.EventType, data []byte) {
		e := made(int64(len(log)), kind, data)
		packets, log = append(packets, e), append(log, e...)
	}
	packets = append(packets, made(0, replication.ROTATE_EVENT, rotation(madeLog, 4)))
	add(replication.FORMAT_DESCRIPTION_EVENT, description())
	add(replication.PREVIOUS_GTIDS_EVENT, make([]byte, 8))
	for n := range 2 {
		begin := transaction(n+1, 0)
		rows := bytes.Repeat([]byte{byte(n)}, 5000)
		add(replication.GTID_EVENT, transaction(n+1, archive.HeaderBytes+len(begin)+4+archive.HeaderBytes+len(rows)+4))
		add(replication.WRITE_ROWS_EVENTv2, rows)
	}
	return packets, log
}

// follow feeds packets, each in pieces of so many bytes, and says what came of it.
func follow(e *events, packets [][]byte, piece int) (done bool, err error) {
	for _, p := range packets {
		e.reset()
		for part := range slices.Chunk(append([]byte{0}, p...), piece) {
			if _, err := e.Write(part); err != nil {
				return false, err
			}
		}
		if done, err := e.packet(); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

func follower(from int64, out *bytes.Buffer) *events {
	return &events{reading: reading{log: madeLog, from: from, out: out, counter: archive.NewCounter(gtid.Set{}, false)}, next: from}
}

// eof is how a server ends a stream.
func eof(e *events) (bool, error) {
	e.reset()
	_, _ = e.Write([]byte{0xfe, 0, 0, 2, 0})
	return e.packet()
}

func TestAStreamBecomesTheLog(t *testing.T) {
	t.Parallel()
	packets, log := stream()
	for _, piece := range []int{1, 7, 20, 4096, 1 << 20} {
		var out bytes.Buffer
		e := follower(0, &out)
		if done, err := follow(e, packets, piece); done || err != nil {
			t.Fatalf("pieces of %d: %t, %v", piece, done, err)
		}
		if done, err := eof(e); !done || err != nil || e.ended || !bytes.Equal(out.Bytes(), log) || e.next != int64(len(log)) {
			t.Errorf("pieces of %d: %t, %v: %d bytes instead of %d", piece, done, err, out.Len(), len(log))
		}
		if c := e.counter.Content(); c.Transactions != 2 || c.Set.Count() != 2 || c.FirstCommit != 1000 || c.LastCommit != 2000 || !c.Checksums {
			t.Errorf("%+v", c)
		}
	}
}

// In the middle of a log the server says first which one it is and how its events are written: neither is in the log.
func TestAStreamThatGoesOn(t *testing.T) {
	t.Parallel()
	packets, log := stream()
	for name, position := range map[string]int64{"made up": 0, "as it lies in the log": 4} {
		var out bytes.Buffer
		at := int64(len(log) - len(packets[5]) - len(packets[6]))
		e := follower(at, &out)
		sent := [][]byte{made(0, replication.ROTATE_EVENT, rotation(madeLog, at)), made(position, replication.FORMAT_DESCRIPTION_EVENT, description()), packets[5], packets[6],
			made(0, replication.ROTATE_EVENT, rotation("binlog.000008", 4))}
		if done, err := follow(e, sent, 100); !done || err != nil || !e.ended || !bytes.Equal(out.Bytes(), log[at:]) {
			t.Errorf("%s: %t, %v: %d bytes instead of %d", name, done, err, out.Len(), len(log)-int(at))
		}
	}
}

// What does not fit is refused, whatever it is: half a transaction, an event of elsewhere, another log.
func TestStreamsThatAreRefused(t *testing.T) {
	t.Parallel()
	packets, _ := stream()
	for name, sent := range map[string][][]byte{
		"half a transaction":       packets[:4],
		"a missing event":          slices.Concat(packets[:3], packets[4:]),
		"another log":              {made(0, replication.ROTATE_EVENT, rotation("binlog.000008", 4))},
		"another position":         {made(0, replication.ROTATE_EVENT, rotation(madeLog, 400))},
		"no word which log":        packets[1:],
		"a log twice":              slices.Concat(packets[:2], packets[:1]),
		"a short event":            slices.Concat(packets[:1], [][]byte{packets[1][:50]}),
		"a long event":             slices.Concat(packets[:1], [][]byte{append(slices.Clone(packets[1]), 1)}),
		"less than a header":       slices.Concat(packets[:1], [][]byte{packets[1][:10]}),
		"a header that lies":       slices.Concat(packets[:1], [][]byte{make([]byte, 30)}),
		"rows that are too long":   slices.Concat(packets[:4], [][]byte{append(slices.Clone(packets[4]), 0)}),
		"half a word of which log": {made(0, replication.ROTATE_EVENT, []byte{4})},
		"a description made up":    slices.Concat(packets[:1], [][]byte{made(0, replication.FORMAT_DESCRIPTION_EVENT, description())}),
	} {
		var out bytes.Buffer
		e := follower(0, &out)
		_, err := follow(e, sent, 64)
		if err == nil {
			_, err = eof(e)
		}
		if reasonOf(err) != string(LogUnreadable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e := follower(0, &bytes.Buffer{})
	e.reset()
	if _, err := e.Write(append([]byte{0xff}, make([]byte, answerMax+1)...)); reasonOf(err) != string(LogUnreadable) {
		t.Errorf("a very long refusal: %v", err)
	}
	e.reset()
	if _, err := e.packet(); reasonOf(err) != string(LogUnreadable) {
		t.Errorf("an empty packet: %v", err)
	}
	if errors.Is(failf(LogUnreadable, "x"), errGone) {
		t.Error("what is unreadable is not gone")
	}
}
