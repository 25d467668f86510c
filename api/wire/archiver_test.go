// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// The sidecar passes on what lies in a file, and the operator believes the sidecar: what is no status is refused, and texts are bounded.
func TestParseArchiverStatus(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	good := ArchiverStatus{
		At: now, State: ArchiverFailing, Reason: "StorageUnreachable", Message: "no\x1b[31m", Site: "a", Epoch: 3, StartedAt: now, Latest: now, Bytes: 5,
		Gaps: []ArchiverGap{{GTIDs: "x:1", Transactions: 1, Epoch: 2, Site: "b"}}, GapCount: 1,
	}
	text := func(change func(*ArchiverStatus)) []byte {
		s := good
		change(&s)
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	s, err := ParseArchiverStatus(text(func(*ArchiverStatus) {}))
	if err != nil || s.Message != "no [31m" || !s.Latest.Equal(now) || len(s.Gaps) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	for name, raw := range map[string][]byte{
		"nothing": nil, "no time": text(func(s *ArchiverStatus) { s.At = time.Time{} }), "a state": text(func(s *ArchiverStatus) { s.State = "Dancing" }),
		"a reason of words": text(func(s *ArchiverStatus) { s.Reason = "it failed" }), "negative": text(func(s *ArchiverStatus) { s.Bytes = -1 }),
		"huge":          text(func(s *ArchiverStatus) { s.UploadsFailed = 1 << 61 }),
		"many gaps":     text(func(s *ArchiverStatus) { s.Gaps = make([]ArchiverGap, MaxArchiverGaps+1) }),
		"a long set":    text(func(s *ArchiverStatus) { s.ArchivedGTID = strings.Repeat("a", MaxArchiverGTIDBytes+1) }),
		"a long gap":    text(func(s *ArchiverStatus) { s.Gaps = []ArchiverGap{{GTIDs: strings.Repeat("a", MaxGapGTIDBytes+1)}} }),
		"a long site":   text(func(s *ArchiverStatus) { s.Site = strings.Repeat("a", 256) }),
		"two documents": append(text(func(*ArchiverStatus) {}), "{}"...), "unknown": []byte(`{"at":"2026-01-01T00:00:00Z","state":"Standby","more":1}`),
		"too long": append(text(func(*ArchiverStatus) {}), make([]byte, MaxArchiverStatusBytes)...),
	} {
		if s, err := ParseArchiverStatus(raw); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
