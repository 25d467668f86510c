// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// A point in time keeps its microseconds on every way, or a restore would stop at another transaction.
func TestAMomentKeepsItsMicroseconds(t *testing.T) {
	for text, want := range map[string]string{
		`"2026-11-25T02:00:00.123456Z"`:      `"2026-11-25T02:00:00.123456Z"`,
		`"2026-11-25T02:00:00Z"`:             `"2026-11-25T02:00:00.000000Z"`,
		`"2026-11-25T03:00:00.1+01:00"`:      `"2026-11-25T02:00:00.100000Z"`,
		`"2026-11-25T02:00:00.123456789Z"`:   `"2026-11-25T02:00:00.123456Z"`,
		`"2026-11-25T02:00:00.000001-00:00"`: `"2026-11-25T02:00:00.000001Z"`,
		`null`:                               `null`,
	} {
		var m v1alpha1.Moment
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := json.Marshal(*m.DeepCopy())
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{`"yesterday"`, `7`, `"2026-11-25"`, `{}`} {
		if err := json.Unmarshal([]byte(text), &v1alpha1.Moment{}); err == nil {
			t.Errorf("%s is taken for a point in time", text)
		}
	}
}

func TestPointsInTimeAreToldApart(t *testing.T) {
	at := v1alpha1.NewMoment(time.Date(2026, 11, 25, 2, 0, 0, 1000, time.UTC))
	later := v1alpha1.NewMoment(at.Add(time.Microsecond))
	seen := map[string]bool{"": true}
	for _, p := range []v1alpha1.PointInTime{
		{Time: &at}, {Time: &later}, {GTID: "u:1"}, {BeforeGTID: "u:1"}, {GTID: "u:2"}, {BeforeFailover: 2}, {BeforeFailover: 3}, {Latest: new(true)},
	} {
		text := p.String()
		if seen[text] {
			t.Errorf("%+v is called %q, as another or none", p, text)
		}
		seen[text] = true
	}
	if text := (*v1alpha1.PointInTime)(nil).String(); text != "" {
		t.Errorf("no point is called %q", text)
	}
}
