// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestAReportIsOpenedOnlyWithItsKeyAndChallengeI12: whoever answers at a pod's address, or on the way, has no key; and what was said
// once answers no later push.
func TestAReportIsOpenedOnlyWithItsKeyAndChallengeI12(t *testing.T) {
	key, other := bytes.Repeat([]byte{1}, wire.ReportKeyBytes), bytes.Repeat([]byte{2}, wire.ReportKeyBytes)
	report := wire.Report{Site: "a", PodUID: "pod-a", Epoch: 7, Answered: true, SuperReadOnly: true, MysqldRunning: true}
	signed, err := wire.SignReport(key, "c1", report)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(signed), ".")
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	forged := strings.Join([]string{parts[0], encode(bytes.Replace(body, []byte(`"epoch":7`), []byte(`"epoch":8`), 1)), parts[2]}, ".")
	none := encode([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	for name, c := range map[string]struct {
		key       []byte
		challenge string
		signed    wire.SignedReport
		opens     bool
	}{
		"its key and challenge":  {key, "c1", signed, true},
		"another key":            {other, "c1", signed, false},
		"no key":                 {nil, "c1", signed, false},
		"a short key":            {key[:16], "c1", signed, false},
		"the answer to another":  {key, "c2", signed, false},
		"no challenge":           {key, "", signed, false},
		"what was changed":       {key, "c1", wire.SignedReport(forged), false},
		"nothing that is signed": {key, "c1", wire.SignedReport(none), false},
		"nothing":                {key, "c1", "", false},
	} {
		got, err := wire.OpenReport(c.key, c.challenge, c.signed)
		if (err == nil) != c.opens {
			t.Errorf("I12: %s: opened %t: %v", name, err == nil, err)
		}
		want := wire.Report{}
		if c.opens {
			want = report
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("I12: %s: report (-want +got):\n%s", name, diff)
		}
	}
	if unasked, err := wire.SignReport(key, "", report); err != nil {
		t.Error(err)
	} else if _, err := wire.OpenReport(key, "", unasked); err == nil {
		t.Error("I12: a report that answers no push is taken")
	}
	if _, err := wire.SignReport(key[:31], "c1", report); err == nil {
		t.Error("a short key is used")
	}
}
