// SPDX-License-Identifier: Apache-2.0

package paint

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/tui/canvas"
)

// TestCommandIsWhole: what is on the screen is the command itself, as a shell reads it, on a screen of any width.
func TestCommandIsWhole(t *testing.T) {
	for _, command := range []string{
		"kubectl mfg explain users -n shop",
		"kubectl logs -c sidecar --tail=100 -n shop -l mysql-mfg.io/failover-group=users,mysql-mfg.io/site=frankfurt,app.kubernetes.io/name=mysql",
		`kubectl mfg mysql orders frankfurt -n shop -e 'SHOW REPLICA STATUS\G'`,
		"kubectl get leases -A --field-selector metadata.name=mfg-operator -o custom-columns=HOLDER:.spec.holderIdentity,RENEWED:.spec.renewTime",
	} {
		for width := 40; width <= 200; width++ {
			var lines []string
			for _, l := range (Painter{Signs: canvas.Unicode, Height: 24}).Command(command, width) {
				if l.Width() > width {
					t.Errorf("%d columns: %d wide: %q", width, l.Width(), canvas.Block{l}.Bare())
				}
				var text strings.Builder
				for _, p := range l {
					text.WriteString(p.Text)
				}
				lines = append(lines, text.String())
			}
			if got := strings.ReplaceAll(strings.Join(lines, "\n"), "\\\n", ""); strings.TrimLeft(got, " ") != command {
				t.Errorf("%d columns: a shell reads %q", width, got)
			}
			for _, l := range lines[:len(lines)-1] {
				if strings.Count(l, "'") == 1 {
					t.Errorf("%d columns: cut inside of quotes, where a backslash is itself: %q", width, lines)
				}
			}
		}
	}
	if out := (Painter{Signs: canvas.Unicode}).Command(strings.Repeat("x", 300), 80); len(out) != 1 {
		t.Errorf("one frame as text cuts a command into %d lines", len(out))
	}
}
