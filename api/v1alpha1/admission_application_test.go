// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
)

// TestTheDatabaseAndTheAccountOfAnApplicationAreNamedOnce: what belongs to MySQL or to the operator is refused, and so is a change, for which
// nothing would be made.
func TestTheDatabaseAndTheAccountOfAnApplicationAreNamedOnce(t *testing.T) {
	const database, user = "spec.application.database", "spec.application.user"
	long := strings.Repeat("d", 33)
	s := newServer(t)
	for name, tc := range map[string]struct {
		old, change edit
		// path is where it is refused; empty if it is taken.
		path string
	}{
		"database alone":         {"", `spec/application = {database: shop}`, ""},
		"signs":                  {"", `spec/application = {database: shop_1-x, user: a_1-b}`, ""},
		"comes later":            {"status/epoch = 1", "status/epoch = 1\nspec/application = {database: shop}", ""},
		"stays":                  {`spec/application = {database: shop}`, "spec/application = {database: shop}\nspec/image = mysql:9.8", ""},
		"long database":          {"", edit("spec/application = {database: " + long + ", user: u}"), ""},
		"changes":                {`spec/application = {database: shop}`, `spec/application = {database: other}`, "spec.application"},
		"another user":           {`spec/application = {database: shop}`, `spec/application = {database: shop, user: other}`, "spec.application"},
		"goes":                   {`spec/application = {database: shop}`, `spec/image = mysql:9.8`, "spec.application"},
		"no database":            {"", `spec/application = {user: a}`, database},
		"the system's":           {"", `spec/application = {database: mysql, user: a}`, database},
		"sys":                    {"", `spec/application = {database: sys, user: a}`, database},
		"of the operator":        {"", `spec/application = {database: mfg_x, user: a}`, database},
		"a file of MySQL":        {"", `spec/application = {database: undo_001, user: a}`, database},
		"capital letters":        {"", `spec/application = {database: Shop}`, database},
		"a backtick":             {"", "spec/application = {database: \"a`b\"}", database},
		"too long":               {"", edit("spec/application = {database: " + long + long + ", user: u}"), database},
		"root":                   {"", `spec/application = {database: shop, user: root}`, user},
		"root by its database":   {"", `spec/application = {database: root}`, user},
		"an account of ours":     {"", `spec/application = {database: shop, user: mfg_operator}`, user},
		"a quote":                {"", `spec/application = {database: shop, user: "a'b"}`, user},
		"user too long":          {"", edit("spec/application = {database: shop, user: " + long + "}"), user},
		"user is a long default": {"", edit("spec/application = {database: " + long + "}"), user},
	} {
		t.Run(name, func(t *testing.T) {
			old, object := parse(t, minimal), parse(t, minimal)
			tc.old.apply(t, old)
			tc.change.apply(t, object)
			if errs := s.admit(old, nil); len(errs) != 0 {
				t.Fatalf("the old object is refused: %v", errs)
			}
			var before map[string]any
			if tc.old != "" {
				before = old
			}
			if tc.path != "" {
				wantError(t, s, object, before, tc.path)
			} else if errs := s.admit(object, before); len(errs) != 0 {
				t.Errorf("refused: %v", errs)
			}
		})
	}
}
