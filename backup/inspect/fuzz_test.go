// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	_ "embed"
	"math/rand/v2"
	"testing"

	"github.com/mysql-mfg/mfg/internal/archive"
)

// sample is a small binary log of MySQL 9.7.4 with rows of every type, DDL, a tagged GTID and a compressed transaction;
// TestSample in sample_mysqld_test.go makes it.
//
//go:embed testdata/sample.binlog
var sample []byte

func look(raw []byte) (int, error) {
	l := &silent{}
	s := &scan{look: l}
	err := s.file(archive.Log{LogManifest: archive.LogManifest{Log: "binlog.000001", Site: "a", Epoch: 1}}, bytes.NewReader(raw))
	return l.rows, err
}

func TestSampleIsRead(t *testing.T) {
	if rows, err := look(sample); err != nil || rows < 10 {
		t.Fatalf("%d rows: %v", rows, err)
	}
}

// TestMalformedLogs: bytes that are turned, left out and cut off come to an error or to other rows, and never to a panic.
func TestMalformedLogs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1500 {
		raw := bytes.Clone(sample)
		for range 1 + r.IntN(4) {
			at := 4 + r.IntN(len(raw)-4)
			switch r.IntN(3) {
			case 0:
				raw[at] = byte(r.Uint32())
			case 1:
				raw[at] = []byte{0, 0xff, 0xfe, 0xfd, 0xfc, 0x80, 0x7f}[r.IntN(7)]
			case 2:
				if i%4 == 0 {
					raw = raw[:at+1]
				}
			}
			if len(raw) < 6 {
				break
			}
		}
		_, _ = look(raw)
	}
}

func FuzzLog(f *testing.F) {
	f.Add(sample)
	f.Fuzz(func(_ *testing.T, raw []byte) { _, _ = look(raw) })
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte{jsonSmallArray, 1, 0, 7, 0, jsonInt16, 7, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if text, ok := document(raw); ok && len(text) > 16*len(raw)+1024 {
			t.Errorf("%d bytes of %d", len(text), len(raw))
		}
	})
}
