// SPDX-License-Identifier: Apache-2.0

package gtid_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// naive is the obvious form of a GTID set: for each "uuid" or "uuid:tag" the numbers, one by one.
type naive map[string]map[int]bool

func (n naive) add(name string, num int) {
	if n[name] == nil {
		n[name] = map[int]bool{}
	}
	n[name][num] = true
}

// filter is every GTID of n for which keep is true.
func (n naive) filter(keep func(name string, num int) bool) naive {
	out := naive{}
	for name, nums := range n {
		for num := range nums {
			if keep(name, num) {
				out.add(name, num)
			}
		}
	}
	return out
}

func (n naive) has(name string, num int) bool { return n[name][num] }

func (n naive) count() (c int64) {
	for nums := range maps.Values(n) {
		c += int64(len(nums))
	}
	return c
}

// drawn is a random set in text form, with intervals unordered and overlapping, beside its obvious form.
func drawn(t *rapid.T, label string) (string, naive) {
	names := []string{a, b, a + ":t", a + ":u_1", strings.ToUpper(b) + ":T"}
	canonical := map[string]string{names[4]: b + ":t"}
	obvious := naive{}
	var parts []string
	for range rapid.IntRange(0, 5).Draw(t, label+" members") {
		name := rapid.SampledFrom(names).Draw(t, label+" name")
		part := name
		for range rapid.IntRange(1, 4).Draw(t, label+" intervals") {
			start := rapid.IntRange(1, 24).Draw(t, label+" start")
			end := start + rapid.IntRange(0, 6).Draw(t, label+" length")
			part += fmt.Sprintf(":%d-%d", start, end)
			for num := start; num <= end; num++ {
				if c, ok := canonical[name]; ok {
					obvious.add(c, num)
				} else {
					obvious.add(name, num)
				}
			}
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, rapid.SampledFrom([]string{",", ",\n", " , "}).Draw(t, label+" separator")), obvious
}

// check compares a set with its obvious form, member by member, and with its own text.
func check(t *rapid.T, what string, got gtid.Set, want naive) {
	t.Helper()
	if got.Count() != want.count() {
		t.Fatalf("%s: Count() = %d, want %d: %s", what, got.Count(), want.count(), got)
	}
	if got.IsEmpty() != (want.count() == 0) {
		t.Fatalf("%s: IsEmpty() = %v: %s", what, got.IsEmpty(), got)
	}
	for name, nums := range want {
		for num := range nums {
			if !got.Contains(gtid.MustParse(fmt.Sprintf("%s:%d", name, num))) {
				t.Fatalf("%s: %s:%d is missing in %s", what, name, num, got)
			}
		}
	}
	again, err := gtid.Parse(got.String())
	if err != nil || !again.Equal(got) || again.String() != got.String() {
		t.Fatalf("%s: %s does not read back: %s, %v", what, got, again, err)
	}
}

func TestAgainstNaiveSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xText, xWant := drawn(t, "x")
		yText, yWant := drawn(t, "y")
		x, y := gtid.MustParse(xText), gtid.MustParse(yText)
		xBefore, yBefore := x.String(), y.String()

		check(t, "x", x, xWant)
		union := xWant.filter(func(string, int) bool { return true })
		for name, nums := range yWant {
			for num := range nums {
				union.add(name, num)
			}
		}
		check(t, "union", x.Union(y), union)
		missing := yWant.filter(func(name string, num int) bool { return !xWant.has(name, num) })
		check(t, "subtract", x.Subtract(y), xWant.filter(func(name string, num int) bool { return !yWant.has(name, num) }))
		check(t, "intersect", x.Intersect(y), xWant.filter(yWant.has))
		if x.Contains(y) != (missing.count() == 0) {
			t.Fatalf("Contains = %v, but %d are missing", x.Contains(y), missing.count())
		}
		if x.Equal(y) != (x.String() == y.String()) || x.Equal(y) != (x.Contains(y) && y.Contains(x)) {
			t.Fatalf("Equal = %v disagrees: %s and %s", x.Equal(y), x, y)
		}
		if x.String() != xBefore || y.String() != yBefore {
			t.Fatalf("an operand has changed: %s and %s", x, y)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", " \n", a + ":1", a + ":1-3:5,\n" + b + ":7-9", strings.ToUpper(a) + ":Tag:1-3:5:x:1", a + ":1-9223372036854775806",
		a + ":5-3", a + ":", a, ",", a + ":1," + a + ":2", a + ":t:u:1", "\x00", a + " : 1 - 2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := gtid.Parse(text)
		if err != nil {
			return
		}
		again, err := gtid.Parse(set.String())
		if err != nil || !again.Equal(set) || again.String() != set.String() {
			t.Fatalf("%q gives %s, which does not read back: %s, %v", text, set, again, err)
		}
		if !set.Contains(set) || !set.Subtract(set).IsEmpty() || !set.Union(set).Equal(set) {
			t.Fatalf("%s does not agree with itself", set)
		}
	})
}
