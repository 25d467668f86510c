// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file beside the fixture.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestStatusScreens draws every fixture in every width and format.
func TestStatusScreens(t *testing.T) {
	codes := map[string]int{"healthy": cli.ExitHealthy, "failing": cli.ExitDegraded, "last-known": cli.ExitDegraded, "blocked": cli.ExitDegraded, "new": cli.ExitDegraded, "moving": cli.ExitDegraded, "encrypted": cli.ExitDegraded,
		"cached": cli.ExitHealthy, "cache-down": cli.ExitDegraded}
	for name, code := range codes {
		dir := filepath.Join("testdata", "status", name)
		for file, args := range map[string][]string{
			"screen-80.txt":  nil,
			"screen-100.txt": nil,
			"wide.txt":       {"-o", "wide"},
			"report.json":    {"-o", "json"},
		} {
			t.Run(name+"/"+file, func(t *testing.T) {
				width := 0
				_, _ = fmt.Sscanf(file, "screen-%d.txt", &width)
				o := runOptions{width: width, env: map[string]string{"NO_COLOR": "1"}}
				got := run(t, load(t, dir), o, append([]string{"status", "orders", "-n", "shop"}, args...)...)
				if got.code != code || got.errOut != "" {
					t.Errorf("exit code %d, want %d; stderr %q", got.code, code, got.errOut)
				}
				golden(t, filepath.Join(dir, file), got.out)
				for _, line := range strings.Split(got.out, "\n") {
					fixed := strings.Contains(line, "kubectl ") || strings.Contains(line, "=") // commands stay whole words
					if width > 0 && len(line) > width && !fixed {
						t.Errorf("line is %d wide: %s", len(line), line)
					}
					if strings.HasSuffix(line, " ") {
						t.Errorf("line ends in a blank: %q", line)
					}
				}
			})
		}
	}
}
