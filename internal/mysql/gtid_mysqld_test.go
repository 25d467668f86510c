// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// TestGTIDAlgebraAgreesWithServer compares internal/gtid with MySQL's own functions, tags included.
func TestGTIDAlgebraAgreesWithServer(t *testing.T) {
	root := mysqltest.Start(t, mysqltest.Options{}).Root(t)
	names := []string{
		"0AAAAAAA-0000-11ee-8000-0123456789ab", "0bbbbbbb-0000-11ee-8000-0123456789ab",
		"0aaaaaaa-0000-11ee-8000-0123456789ab:Tag", "0aaaaaaa-0000-11ee-8000-0123456789ab:_z9", "0bbbbbbb-0000-11ee-8000-0123456789ab:a:1:b",
	}
	draw := func(t *rapid.T, label string) string {
		var parts []string
		for range rapid.IntRange(0, 4).Draw(t, label) {
			part := rapid.SampledFrom(names).Draw(t, label)
			for range rapid.IntRange(1, 3).Draw(t, label) {
				start := rapid.IntRange(1, 20).Draw(t, label)
				part += fmt.Sprintf(":%d-%d", start, start+rapid.IntRange(0, 5).Draw(t, label))
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, " , ")
	}
	rapid.Check(t, func(rt *rapid.T) {
		x, y := draw(rt, "x"), draw(rt, "y")
		var same, difference string
		var subset bool
		row := root.QueryRowContext(t.Context(), "SELECT GTID_SUBTRACT(?, ''), GTID_SUBTRACT(?, ?), GTID_SUBSET(?, ?)", x, x, y, x, y)
		if err := row.Scan(&same, &difference, &subset); err != nil {
			rt.Fatalf("%q, %q: %v", x, y, err)
		}
		a, b := gtid.MustParse(x), gtid.MustParse(y)
		oneLine := strings.NewReplacer("\n", "")
		if got, want := a.String(), oneLine.Replace(same); got != want {
			rt.Errorf("String() = %q, MySQL prints %q", got, want)
		}
		if got, want := a.Subtract(b).String(), oneLine.Replace(difference); got != want {
			rt.Errorf("Subtract = %q, MySQL says %q", got, want)
		}
		if b.Contains(a) != subset {
			rt.Errorf("Contains = %v, MySQL says %v", b.Contains(a), subset)
		}
	})
}
