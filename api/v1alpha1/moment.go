// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Moment is a point in time to the microsecond, as transactions have it. It reads every RFC 3339 time, with or without a fraction, and
// writes six digits of it; metav1.Time drops them, and metav1.MicroTime reads no time without.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Format=date-time
type Moment struct {
	time.Time `json:"-"`
}

const momentLayout = "2006-01-02T15:04:05.000000Z07:00"

// NewMoment is that point in time, in UTC and without what is finer than a microsecond.
func NewMoment(t time.Time) Moment { return Moment{t.UTC().Truncate(time.Microsecond)} }

// MarshalJSON implements json.Marshaler.
func (m Moment) MarshalJSON() ([]byte, error) {
	if m.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(m.UTC().Format(momentLayout))
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Moment) UnmarshalJSON(raw []byte) error {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return errors.New("a point in time is a text, as in 2026-11-25T02:00:00.123456Z")
	}
	if text == nil {
		m.Time = time.Time{}
		return nil
	}
	t, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return fmt.Errorf("a point in time is written as in 2026-11-25T02:00:00.123456Z: %w", err)
	}
	*m = NewMoment(t)
	return nil
}

// DeepCopyInto copies it.
func (m *Moment) DeepCopyInto(out *Moment) { *out = *m }

// DeepCopy copies it.
func (m *Moment) DeepCopy() *Moment {
	if m == nil {
		return nil
	}
	out := *m
	return &out
}

// String says a point in the history of a group in words; empty without one. Two that are written differently are different.
func (p *PointInTime) String() string {
	switch {
	case p == nil:
		return ""
	case p.Time != nil:
		return "until " + p.Time.UTC().Format(momentLayout)
	case p.GTID != "":
		return "until transaction " + p.GTID
	case p.BeforeGTID != "":
		return "before transaction " + p.BeforeGTID
	case p.BeforeFailover != 0:
		return fmt.Sprintf("before the failover to epoch %d", p.BeforeFailover)
	case p.Latest != nil && *p.Latest:
		return "until the latest point"
	}
	return ""
}
