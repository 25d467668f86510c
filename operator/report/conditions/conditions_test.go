// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/operator/report/conditions"
)

func TestStamp(t *testing.T) {
	before := metav1.NewTime(time.Unix(1000, 0))
	now := time.Unix(2000, 0)
	current := []metav1.Condition{{
		Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Updating", Message: "m", LastTransitionTime: before,
	}}
	tests := map[string]struct {
		reason      string
		want        conditions.Condition
		changed     bool
		transitions bool
	}{
		"same":           {"nothing new to say", conditions.True("Progressing", "Updating", "m"), false, false},
		"other message":  {"news, but the status stands", conditions.True("Progressing", "Updating", "n"), true, false},
		"other status":   {"a transition", conditions.False("Progressing", "AsExpected", "n"), true, true},
		"a new type":     {"first seen", conditions.False("TLSReady", "SecretMissing", "n"), true, true},
		"unknown status": {"a transition", conditions.Unknown("Progressing", "Updating", "m"), true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := conditions.Stamp(current, tt.want, 7, now)
			if got.ObservedGeneration != 7 || got.Type != tt.want.Type || got.Status != tt.want.Status {
				t.Errorf("stamped %+v", got)
			}
			if changed := conditions.Changed(current, got); changed != tt.changed {
				t.Errorf("%s: changed = %v", tt.reason, changed)
			}
			if moved := !got.LastTransitionTime.Equal(&before); moved != tt.transitions {
				t.Errorf("%s: last transition = %v", tt.reason, got.LastTransitionTime)
			}
		})
	}
}
