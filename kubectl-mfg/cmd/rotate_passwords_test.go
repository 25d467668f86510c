// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

func TestRotatePasswords(t *testing.T) {
	const key = v1alpha1.AnnotationRotatePasswords
	asked := func(value string) []map[string]any { return []map[string]any{{key: value}} }
	tests := map[string]struct {
		args, stdin string
		before      string
		answer      string
		code        int
		patched     []map[string]any
		want        string
	}{
		"All":        {"", "y\n", "", "the passwords of clone, operator were replaced", cli.ExitHealthy, asked("all"), "were replaced"},
		"Some":       {"--account sidecar --account replication --yes", "", "", "x", cli.ExitHealthy, asked("replication,sidecar"), "done"},
		"Progress":   {"--yes", "", "", "x", cli.ExitHealthy, asked("all"), "all programs change to the new passwords; the old ones are still valid: frankfurt waits"},
		"Refused":    {"--yes", "", "", "no: not now", cli.ExitRefused, asked("all"), "not now"},
		"Joined":     {"--yes", "", "all", "x", cli.ExitHealthy, asked("all"), "done"},
		"Another":    {"--yes", "", "operator", "", cli.ExitRefused, nil, "the passwords of operator are being replaced"},
		"Root":       {"--account root --yes", "", "", "", cli.ExitUsage, nil, "--account must be one of"},
		"NotSure":    {"", "n\n", "", "", cli.ExitUsage, nil, "not confirmed"},
		"NotWaiting": {"--yes --wait=false", "", "", "", cli.ExitHealthy, asked("all"), "asked for"},
		"Dry":        {"--dry-run=client", "", "", "", cli.ExitHealthy, nil, "Would     set annotation " + key + "=all"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			if tc.before != "" {
				f.groups[0].Annotations = map[string]string{key: tc.before}
			}
			ticks := 0
			got := run(t, f, runOptions{stdin: tc.stdin, tick: func(int) {
				g := &f.groups[0]
				_, is := g.Annotations[key]
				if ticks++; !is || tc.answer == "" {
					return
				}
				g.Status.Passwords = &v1alpha1.PasswordsStatus{Phase: v1alpha1.PasswordsSwitching, Message: "frankfurt waits"}
				if ticks < 10 {
					return
				}
				if message, refused := strings.CutPrefix(tc.answer, "no: "); refused {
					f.answer(v1alpha1.RequestRotatePasswords, v1alpha1.RequestRefused, "Because", message)
				}
				f.answer(v1alpha1.RequestRotatePasswords, v1alpha1.RequestDone, v1alpha1.AnswerCompleted, tc.answer)
			}}, append([]string{"rotate-passwords", "orders", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d: %+v", got.code, tc.code, got)
			}
			if diff := cmp.Diff(tc.patched, f.patched); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
