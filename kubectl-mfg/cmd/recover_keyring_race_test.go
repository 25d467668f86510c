// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
)

// foreignSecret has the name that is missing, and somebody else made it, perhaps of the last copy of something.
func foreignSecret(f *escrowAPI, content string) *corev1.Secret {
	return keyrings.Bare(f.group(), *f.site(), []byte(content))
}

// once does something at the first request of a kind for Secrets, once the lost one has been made where made says so.
func (f *escrowAPI) once(method string, made bool, do func()) {
	f.on = func(r *http.Request) {
		if r.Method == method && strings.HasPrefix(r.URL.Path, secretsPath) && (!made || f.secrets[lostSecret] != nil) {
			f.on = nil
			do()
		}
	}
}

// TestRecoverKeyringRaces: somebody else changes the Secret between two steps. What was not made here is neither deleted nor
// labelled as a keyring, and what is labelled is what was hashed.
func TestRecoverKeyringRaces(t *testing.T) {
	replace := func(f *escrowAPI) {
		s := foreignSecret(f, "{}")
		version := f.secrets[lostSecret].ResourceVersion // may be the same once etcd was restored
		f.store(s)
		s.UID, s.ResourceVersion = "of-somebody-else", version
	}
	corrupt := func(f *escrowAPI) {
		s := f.secrets[lostSecret].DeepCopy()
		s.Data = foreignSecret(f, "{}").Data
		f.store(s)
	}
	tests := map[string]struct {
		reason  string
		change  func(*escrowAPI)
		code    int
		changes []string
		errOut  string
		// left is what the Secret holds in the end; empty if it is gone.
		left string
	}{
		"SomebodyWasFaster": {"what appeared between the look and the making may be the last copy of something",
			func(f *escrowAPI) { f.once(http.MethodPost, false, func() { f.store(foreignSecret(f, "{}")) }) },
			cli.ExitRefused, []string{"read pod"}, "was not made by this command", "{}"},
		"SomebodyMadeTheSame": {"it is gone on with",
			func(f *escrowAPI) { f.once(http.MethodPost, false, func() { f.store(foreignSecret(f, keyMaterial)) }) },
			cli.ExitHealthy, []string{"read pod", "patch Secret", "patch status", "create Event"}, "", keyMaterial},
		"ReplacedBeforeItIsDeleted": {"what is deleted is what was read", func(f *escrowAPI) {
			f.corrupt = true
			f.once(http.MethodDelete, true, func() { replace(f) })
		}, cli.ExitRefused, []string{"read pod", "create Secret"}, "could not be deleted again", "{}"},
		"ChangedBeforeItIsDeleted": {"it may be right by now", func(f *escrowAPI) {
			f.corrupt = true
			f.once(http.MethodDelete, true, func() { corrupt(f) })
		}, cli.ExitRefused, []string{"read pod", "create Secret"}, "could not be deleted again", "{}"},
		"ChangedBeforeItIsLabelled": {"only the version that was hashed is labelled", func(f *escrowAPI) {
			f.once(http.MethodPatch, true, func() { corrupt(f) })
		}, cli.ExitRefused, []string{"read pod", "create Secret", "delete Secret"}, "was deleted again", ""},
		"ReplacedAfterItWasLabelled": {"it is hashed again before anything is said of it", func(f *escrowAPI) {
			f.once(http.MethodPatch, true, func() { f.once(http.MethodGet, true, func() { replace(f) }) })
		}, cli.ExitRefused, []string{"read pod", "create Secret", "patch Secret"}, "was not made by this command", "{}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newEscrowAPI(t)
			tc.change(f)
			got := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes", "--timeout", "3s")
			if got.code != tc.code || !strings.Contains(got.errOut, tc.errOut) || !slices.Equal(f.changes, tc.changes) {
				t.Errorf("%s: changes %v, want %v: %+v", tc.reason, f.changes, tc.changes, got)
			}
			if tc.code == cli.ExitHealthy {
				checkRecovered(t, f)
				return
			}
			s, want := f.secrets[lostSecret], foreignSecret(f, tc.left)
			switch {
			case tc.left == "" && s != nil:
				t.Errorf("%s: a wrong keyring stays: %v", tc.reason, s)
			case tc.left != "" && (s == nil || keyrings.Digest(s) != keyrings.Digest(want) || len(s.Labels) > 0 || s.Immutable != nil):
				t.Errorf("%s: it was touched: %v", tc.reason, s)
			}
		})
	}
}

// TestRecoverKeyringCtrlCOfAWrongOne: a wrong keyring does not stay because somebody was impatient right after it was made.
func TestRecoverKeyringCtrlCOfAWrongOne(t *testing.T) {
	f := newEscrowAPI(t)
	before := f.state(t)
	f.corrupt = true
	ctx, cancel := context.WithCancel(t.Context())
	f.once(http.MethodGet, true, cancel)
	got := f.recovers(t, runOptions{ctx: ctx}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes", "--timeout", "3s")
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "was deleted again") {
		t.Errorf("%+v", got)
	}
	checkUntouched(t, f, []byte(before))
}
