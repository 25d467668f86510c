// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheApplicationsAccountIsMadeWithTheData: a Secret that is of no use keeps no data directory from being made.
func TestTheApplicationsAccountIsMadeWithTheData(t *testing.T) {
	for name, c := range map[string]struct {
		user string
		want string
	}{
		"none": {"", ""}, "usual": {"app", "GRANT ALL ON `shop`.* TO 'app'@'%'"}, "not allowed": {"root", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.user != "" {
				for file, text := range map[string]string{"app-username": c.user, "app-password": "p", "app-database": "shop"} {
					if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := strings.Join(applicationStatements(dir, slog.New(slog.DiscardHandler)), "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("statements %q", got)
			}
		})
	}
}
