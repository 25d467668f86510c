// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"
	"time"
)

func TestRestartedAt(t *testing.T) {
	const all, one = AnnotationRestartedAt, AnnotationRestartedAt + "-paris"
	for name, c := range map[string]struct {
		reason      string
		annotations map[string]string
		want        string
	}{
		"none":        {"nobody ordered it", nil, ""},
		"all":         {"every site follows the group's", map[string]string{all: "2026-11-26T10:00:00Z"}, "2026-11-26T10:00:00Z"},
		"one":         {"only this site", map[string]string{one: "2026-11-26T10:00:00Z"}, "2026-11-26T10:00:00Z"},
		"other":       {"that of another site", map[string]string{all + "-rome": "2026-11-26T10:00:00Z"}, ""},
		"later":       {"the last order counts", map[string]string{all: "2026-11-26T10:00:00Z", one: "2026-11-26T11:00:00+02:00"}, "2026-11-26T10:00:00Z"},
		"later site":  {"the last order counts", map[string]string{all: "2026-11-26T10:00:00Z", one: "2026-11-26T11:00:00Z"}, "2026-11-26T11:00:00Z"},
		"no time":     {"a slip must not replace pods", map[string]string{all: "now"}, ""},
		"no time one": {"a slip must not hide the other order", map[string]string{all: "2026-11-26T10:00:00Z", one: "x"}, "2026-11-26T10:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &MysqlFailoverGroup{}
			g.Annotations = c.annotations
			if got := RestartedAt(g, "paris"); got != c.want {
				t.Errorf("%s: %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestASlipInAnOrderReplacesNoPod(t *testing.T) {
	const (
		all, one              = AnnotationRestartedAt, AnnotationRestartedAt + "-paris"
		ten, eleven, tomorrow = "2026-11-26T10:00:00Z", "2026-11-26T11:00:00Z", "2026-11-27T10:00:00Z"
	)
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		reason      string
		annotations map[string]string
		carried     string
		want        string
	}{
		"none":           {"nobody ordered it", nil, "", ""},
		"first":          {"the first order", map[string]string{all: ten}, "", ten},
		"done":           {"the pod is of this order", map[string]string{all: ten}, ten, ten},
		"next":           {"a new order", map[string]string{all: eleven}, ten, eleven},
		"taken off":      {"a tool that applies the group without the annotation", nil, ten, ten},
		"spoilt":         {"a slip", map[string]string{all: "now"}, ten, ten},
		"one taken off":  {"the order of the group is older than what was done", map[string]string{all: ten}, eleven, eleven},
		"one spoilt":     {"likewise", map[string]string{all: ten, one: "now"}, eleven, eleven},
		"out of the way": {"a time that was never reached must not stand in the way for ever", map[string]string{all: eleven}, tomorrow, eleven},
		"future taken":   {"nobody orders anything", nil, tomorrow, tomorrow},
		"future stays":   {"an order for a time to come is carried out at once, and once", map[string]string{all: tomorrow}, tomorrow, tomorrow},
		"no time":        {"somebody wrote on the Deployment", map[string]string{all: ten}, "x", ten},
	} {
		t.Run(name, func(t *testing.T) {
			g := &MysqlFailoverGroup{}
			g.Annotations = c.annotations
			if got := RestartOf(g, "paris", c.carried, now); got != c.want {
				t.Errorf("%s: %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestTheAccountIsNamedLikeTheDatabase(t *testing.T) {
	if got := (&ApplicationSpec{Database: "shop"}).Account(); got != "shop" {
		t.Errorf("account %q", got)
	}
	if got := (&ApplicationSpec{Database: "shop", User: "app"}).Account(); got != "app" {
		t.Errorf("account %q", got)
	}
}
