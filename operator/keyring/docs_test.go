// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the table in docs/internals/keyring-phases.md")

const (
	page       = "../../docs/internals/keyring-phases.md"
	tableBegin = "<!-- table: made from operator/keyring/phase.go; go test ./operator/keyring -update -->\n"
	tableEnd   = "<!-- end of table -->\n"
)

// markdown is the table of transitions as the documentation shows it.
func markdown() string {
	var b strings.Builder
	b.WriteString("| From | Trigger | Condition | To | Also happens |\n|---|---|---|---|---|\n")
	for _, row := range Table {
		var from []string
		for _, p := range row.From {
			text := "(new)"
			if p != none {
				text = "`" + string(p) + "`"
			}
			from = append(from, text)
		}
		to := "(stays)"
		if row.To != none {
			to = "`" + string(row.To) + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", strings.Join(from, ", "), row.Trigger, row.Condition, to, row.Also)
	}
	return b.String()
}

func TestDocumentationShowsTheTable(t *testing.T) {
	body, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(body), tableBegin)
	shown, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table", page)
	}
	want := "\n" + markdown() + "\n"
	if *update {
		if err := os.WriteFile(page, []byte(before+tableBegin+want+tableEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("run with -update and read the diff (-want +got):\n%s", diff)
	}
}
