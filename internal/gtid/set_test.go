// SPDX-License-Identifier: Apache-2.0

package gtid_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

const (
	a = "0aaaaaaa-0000-11ee-8000-0123456789ab"
	b = "0bbbbbbb-0000-11ee-8000-0123456789ab"
)

func TestParse(t *testing.T) {
	tests := map[string]struct{ reason, in, want string }{
		"empty":        {"a new server has executed nothing", "", ""},
		"blank":        {"whitespace alone is the empty set", " \n\t", ""},
		"one":          {"a single number", a + ":5", a + ":5"},
		"range":        {"a range of one number is printed as one", a + ":5-5", a + ":5"},
		"upper case":   {"MySQL reads UUIDs in any case and prints lower", strings.ToUpper(a) + ":1-3", a + ":1-3"},
		"newlines":     {"MySQL prints a newline after each comma", a + ":1-3,\n" + b + ":1", a + ":1-3," + b + ":1"},
		"spaces":       {"spaces may stand between tokens", " " + a + " : 1 - 3 : 5 , " + b + ":1 ", a + ":1-3:5," + b + ":1"},
		"unordered":    {"members and intervals are sorted", b + ":1," + a + ":7:1-3", a + ":1-3:7," + b + ":1"},
		"overlapping":  {"overlapping intervals are merged", a + ":1-5:3-9:2", a + ":1-9"},
		"adjacent":     {"touching intervals are merged", a + ":1-3:4-5:6", a + ":1-6"},
		"repeated":     {"a UUID may occur twice", a + ":1-3," + a + ":3-6", a + ":1-6"},
		"tag":          {"a tagged sequence is its own", a + ":tag:1-3", a + ":tag:1-3"},
		"tag case":     {"tags are lower case", a + ":Tag_1:1-3", a + ":tag_1:1-3"},
		"tags joined":  {"tags stand behind one UUID, untagged first", a + ":x:1," + a + ":b:2," + a + ":1-3", a + ":1-3:b:2:x:1"},
		"tags grouped": {"MySQL's own form is read back", a + ":1-3:b:2:5-6:x:1", a + ":1-3:b:2:5-6:x:1"},
		"tag repeated": {"a tag may occur twice", a + ":x:1:y:1:x:2", a + ":x:1-2:y:1"},
		"greatest":     {"the greatest number MySQL hands out", a + ":1-9223372036854775806", a + ":1-9223372036854775806"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := gtid.Parse(tc.in)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ reason, in string }{
		"word":             {"no UUID", "hello"},
		"no interval":      {"a UUID alone", a},
		"colon only":       {"an empty interval", a + ":"},
		"short uuid":       {"a digit is missing", a[1:] + ":1"},
		"bad digit":        {"g is not hexadecimal", "g" + a[1:] + ":1"},
		"dashes elsewhere": {"dashes are in the wrong places", strings.ReplaceAll(a, "-", "0")[:32] + "----:1"},
		"zero":             {"numbers start at 1", a + ":0"},
		"backwards":        {"an interval that ends before it starts", a + ":5-3"},
		"open range":       {"no end", a + ":5-"},
		"no start":         {"no start", a + ":-5"},
		"three ends":       {"two dashes", a + ":1-2-3"},
		"sign":             {"a sign", a + ":+1"},
		"inner space":      {"a space within a number", a + ":1 2"},
		"too great":        {"does not fit the exclusive end", a + ":9223372036854775807"},
		"overflow":         {"more than 64 bits", a + ":99999999999999999999"},
		"leading comma":    {"an empty member", "," + a + ":1"},
		"trailing comma":   {"an empty member", a + ":1,"},
		"two commas":       {"an empty member", a + ":1,," + b + ":1"},
		"tag alone":        {"a tag without interval", a + ":tag"},
		"tag at the end":   {"a tag without interval", a + ":1:tag"},
		"two tags":         {"a tag without interval", a + ":one:two:1"},
		"tag with dash":    {"dashes are not allowed in tags", a + ":a-b:1"},
		"tag too long":     {"33 characters", a + ":" + strings.Repeat("t", 33) + ":1"},
		"NUL":              {"a control character", a + ":1\x00"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := gtid.Parse(tc.in)
			if !errors.Is(err, gtid.ErrSyntax) {
				t.Errorf("%s: want ErrSyntax, got %v", tc.reason, err)
			}
			if !got.IsEmpty() {
				t.Errorf("an error must come with the empty set, got %s", got)
			}
		})
	}
}

func TestAlgebra(t *testing.T) {
	tests := map[string]struct {
		reason, x, y               string
		union, subtract, intersect string
		contains                   bool
	}{
		"both empty":  {reason: "the empty set contains itself", contains: true},
		"right empty": {reason: "every set contains the empty one", x: a + ":1-3", union: a + ":1-3", subtract: a + ":1-3", contains: true},
		"left empty":  {reason: "the empty set contains no other", y: a + ":1", union: a + ":1"},
		"subset": {
			reason: "a replica behind its source", x: a + ":1-9," + b + ":1", y: a + ":1-5",
			union: a + ":1-9," + b + ":1", subtract: a + ":6-9," + b + ":1", intersect: a + ":1-5", contains: true,
		},
		"errant": {
			reason: "a transaction of its own on a replica", x: a + ":1-9", y: a + ":1-5," + b + ":1",
			union: a + ":1-9," + b + ":1", subtract: a + ":6-9", intersect: a + ":1-5",
		},
		"hole": {
			reason: "a hole in the middle", x: a + ":1-9", y: a + ":4-5",
			union: a + ":1-9", subtract: a + ":1-3:6-9", intersect: a + ":4-5", contains: true,
		},
		"bridge": {
			reason: "one interval spans several", x: a + ":1-2:5-6:9-12", y: a + ":2-9",
			union: a + ":1-12", subtract: a + ":1:10-12", intersect: a + ":2:5-6:9",
		},
		"tags": {
			reason: "tags are sequences of their own", x: a + ":1-3:t:1-3", y: a + ":1-3:u:1",
			union: a + ":1-3:t:1-3:u:1", subtract: a + ":t:1-3", intersect: a + ":1-3",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x, y := gtid.MustParse(tc.x), gtid.MustParse(tc.y)
			got := []string{x.Union(y).String(), x.Subtract(y).String(), x.Intersect(y).String()}
			if diff := cmp.Diff([]string{tc.union, tc.subtract, tc.intersect}, got); diff != "" {
				t.Errorf("%s: union, subtract, intersect (-want +got):\n%s", tc.reason, diff)
			}
			if x.Contains(y) != tc.contains {
				t.Errorf("%s: Contains = %v", tc.reason, !tc.contains)
			}
		})
	}
}

func TestCount(t *testing.T) {
	tests := map[string]struct {
		in   string
		want int64
	}{
		"empty":     {"", 0},
		"several":   {a + ":1-3:7:t:1-2," + b + ":5", 7},
		"saturates": {a + ":1-9223372036854775806," + b + ":1-10", math.MaxInt64},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := gtid.MustParse(tc.in).Count(); got != tc.want {
				t.Errorf("Count() = %d, want %d", got, tc.want)
			}
		})
	}
}
