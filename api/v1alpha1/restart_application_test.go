// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

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

func TestTheAccountIsNamedLikeTheDatabase(t *testing.T) {
	if got := (&ApplicationSpec{Database: "shop"}).Account(); got != "shop" {
		t.Errorf("account %q", got)
	}
	if got := (&ApplicationSpec{Database: "shop", User: "app"}).Account(); got != "app" {
		t.Errorf("account %q", got)
	}
}
