// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

func TestStatusExplained(t *testing.T) {
	explain := func(namespace, group string) (wire.Explanation, bool) {
		return wire.Explanation{Verdict: "Blocked", Reason: "Cooldown"}, namespace+"/"+group == "shop/orders"
	}
	tests := map[string]struct {
		query     string
		explain   func(string, string) (wire.Explanation, bool)
		code      int
		explained bool
	}{
		"Explained":     {"?namespace=shop&group=orders&explain=true", explain, 200, true},
		"NotAsked":      {"?namespace=shop&group=orders", explain, 200, false},
		"AskedNotTo":    {"?namespace=shop&group=orders&explain=false", explain, 200, false},
		"NotDecidedYet": {"?namespace=shop&group=accounts&explain=true", explain, 200, false},
		"CannotExplain": {"?namespace=shop&group=orders&explain=true", nil, 200, false},
		"AllGroups":     {"?explain=true", explain, 400, false},
		"AllOfOne":      {"?namespace=shop&explain=true", explain, 400, false},
		"OtherWord":     {"?namespace=shop&group=orders&explain=1", explain, 400, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := NewBoard()
			b.Publish(group("orders", "1"))
			b.Publish(group("accounts", "1"))
			w := get(New(Options{Authority: &authority{}, Source: b, Explain: tc.explain}), http.MethodGet, "/status"+tc.query)
			if w.Code != tc.code {
				t.Fatalf("status %d, want %d: %s", w.Code, tc.code, w.Body)
			}
			if tc.code != 200 {
				return
			}
			got := decode[wire.ExplainedList](t, w)
			if len(got.Groups) != 1 || got.Groups[0].Namespace != "shop" {
				t.Fatalf("groups %+v", got.Groups)
			}
			e := got.Groups[0].Explanation
			if (e != nil) != tc.explained || strings.Contains(w.Body.String(), "explanation") != tc.explained {
				t.Errorf("explanation %+v", e)
			}
			if tc.explained && e.Reason != "Cooldown" {
				t.Errorf("explanation %+v", e)
			}
		})
	}
}
