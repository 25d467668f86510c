// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

const serverA = "0a0b0c0d-0000-0000-0000-000000000001"

// madeLog is a binary log that is made up: a beginning, then transactions of one event with so much data each.
type madeLog struct {
	raw []byte
	ids []string
}

func newMadeLog(previous string) *madeLog {
	m := &madeLog{raw: []byte(Magic)}
	description := make([]byte, 57+42)
	description = append(description, byte(replication.BINLOG_CHECKSUM_ALG_CRC32))
	m.event(replication.FORMAT_DESCRIPTION_EVENT, description)
	m.event(replication.PREVIOUS_GTIDS_EVENT, encodeSet(previous))
	return m
}

// encodeSet encodes one interval of serverA from 1, or nothing.
func encodeSet(text string) []byte {
	if text == "" {
		return make([]byte, 8)
	}
	n := gtid.MustParse(text).Count()
	out := binary.LittleEndian.AppendUint64(nil, 1)
	out = append(out, uuidBytes(serverA)...)
	out = binary.LittleEndian.AppendUint64(out, 1)
	out = binary.LittleEndian.AppendUint64(out, 1)
	return binary.LittleEndian.AppendUint64(out, uint64(n)+1)
}

func uuidBytes(uuid string) []byte {
	raw, _ := hex.DecodeString(strings.ReplaceAll(uuid, "-", ""))
	return raw
}

func (m *madeLog) event(kind replication.EventType, data []byte) {
	size := HeaderBytes + len(data) + checksumBytes
	e := make([]byte, 0, size)
	e = binary.LittleEndian.AppendUint32(e, 1700000000)
	e = append(e, byte(kind))
	e = binary.LittleEndian.AppendUint32(e, 7)
	e = binary.LittleEndian.AppendUint32(e, uint32(size))
	e = binary.LittleEndian.AppendUint32(e, uint32(len(m.raw)+size))
	e = binary.LittleEndian.AppendUint16(e, 0)
	e = append(e, data...)
	m.raw = append(m.raw, binary.LittleEndian.AppendUint32(e, crc32.ChecksumIEEE(e))...)
}

// transaction adds one that was committed at so many microseconds.
func (m *madeLog) transaction(n int64, at int64, data int) {
	e := append([]byte{1}, uuidBytes(serverA)...)
	e = binary.LittleEndian.AppendUint64(e, uint64(n))
	e = append(e, 2)
	e = binary.LittleEndian.AppendUint64(e, 0)
	e = binary.LittleEndian.AppendUint64(e, uint64(n))
	e = append(e, binary.LittleEndian.AppendUint64(nil, uint64(at))[:7]...)
	length := HeaderBytes + len(e) + 3 + 4 + checksumBytes + HeaderBytes + data + checksumBytes
	e = append(e, 0xfc)
	e = binary.LittleEndian.AppendUint16(e, uint16(length))
	e = binary.LittleEndian.AppendUint32(e, 90704)
	m.event(replication.GTID_EVENT, e)
	m.event(replication.QUERY_EVENT, make([]byte, data))
	m.ids = append(m.ids, gtid.MustParse(serverA+":"+itoa(n)).String())
}

func itoa(n int64) string {
	if n >= 10 {
		return itoa(n/10) + itoa(n%10)
	}
	return string(rune('0' + n))
}

// content counts what is in a part of it that begins at an event.
func (m *madeLog) content(t *testing.T, from, to int64, c *Counter) Content {
	t.Helper()
	at := from
	if at == 0 {
		at = int64(len(Magic))
	}
	for at < to {
		h, err := ParseHeader(m.raw[at:])
		if err != nil {
			t.Fatal(err)
		}
		if h.Telling() {
			if err := c.Add(m.raw[at:at+h.Bytes], at); err != nil {
				t.Fatal(err)
			}
		}
		at += h.Bytes
	}
	return c.Content()
}
