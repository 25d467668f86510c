// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/work"
)

// A clone may be over before status says that it has begun, and the operator may die then. The order is not carried out
// twice for that: the server knows when it was cloned last.
func TestAFastCloneIsNotMadeTwice(t *testing.T) {
	accepted := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	whole := fenced(history)
	whole.HasDatabases = true
	clone := &v1alpha1.CloneProgress{Order: "b:confirm", Source: "a", StartedAt: &metav1.Time{Time: accepted}}
	for name, tc := range map[string]struct {
		reason string
		last   mysql.CloneStatus
		want   work.Verdict
	}{
		"since it was accepted":  {"that was it", mysql.CloneStatus{State: cloneCompleted, BeganAt: accepted.Add(5 * time.Second)}, work.VerdictAdopt},
		"before it was accepted": {"that was another", mysql.CloneStatus{State: cloneCompleted, BeganAt: accepted.Add(-time.Hour)}, work.VerdictReclone},
		"at a time nobody knows": {"in doubt once more", mysql.CloneStatus{State: cloneCompleted}, work.VerdictReclone},
		"since, and failed":      {"part of the data is gone", mysql.CloneStatus{State: "Failed", BeganAt: accepted.Add(5 * time.Second)}, work.VerdictReclone},
	} {
		if got, why := examine(whole, open(history), tc.last, standing(clone)); got != tc.want {
			t.Errorf("%s: %s: got %s (%s), want %s", name, tc.reason, got, why, tc.want)
		}
	}
	clone.StartedAt = nil
	if got, _ := examine(whole, open(history), mysql.CloneStatus{State: cloneCompleted, BeganAt: accepted}, standing(clone)); got != work.VerdictReclone {
		t.Errorf("nobody knows when it was accepted: got %s", got)
	}
}

// I14: an order says what may be thrown away, and no more.
func TestExamineUnderAnOrder(t *testing.T) {
	unknown, whole, errant := fenced(""), fenced(history), fenced(uuidB+":1-3")
	unknown.HasDatabases, whole.HasDatabases, errant.HasDatabases = true, true, true
	tests := map[string]struct {
		reason string
		site   mysql.Status
		last   string
		order  order
		want   work.Verdict
	}{
		"no order":              {"it holds the data", whole, cloneCompleted, order{}, work.VerdictAdopt},
		"whole":                 {"it was ordered", whole, cloneCompleted, order{value: "b"}, work.VerdictReclone},
		"carried out":           {"once is enough", whole, cloneCompleted, order{value: "b"}.carriedOut(), work.VerdictAdopt},
		"begun and completed":   {"the operator was restarted meanwhile", whole, cloneCompleted, order{value: "b:confirm", begun: true}, work.VerdictAdopt},
		"begun and failed":      {"part of the data is gone", whole, "Failed", order{value: "b", begun: true}, work.VerdictReclone},
		"errant":                {"nobody said that it may go", errant, "", order{value: "b"}, work.VerdictRefuse},
		"errant, confirmed":     {"somebody said so", errant, "", order{value: "b:confirm"}, work.VerdictReclone},
		"errant, policy":        {"the specification says so", errant, "", order{value: orderOfPolicy}, work.VerdictReclone},
		"errant after it":       {"the role has moved meanwhile", errant, cloneCompleted, order{value: "b:confirm"}.carriedOut(), work.VerdictRefuse},
		"errant, begun":         {"the role has moved meanwhile", errant, cloneCompleted, order{value: "b:confirm", begun: true}, work.VerdictRefuse},
		"unknown data":          {"nobody knows where it comes from", unknown, "", order{value: "b"}, work.VerdictRefuse},
		"unknown data, confirm": {"somebody said that it may go", unknown, "", order{value: "b:confirm"}, work.VerdictReclone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, why := examine(tt.site, open(history), mysql.CloneStatus{State: tt.last}, tt.order); got != tt.want {
				t.Errorf("%s: got %s (%s), want %s", tt.reason, got, why, tt.want)
			}
		})
	}
}
