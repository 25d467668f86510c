// SPDX-License-Identifier: Apache-2.0

package apppassword

import (
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// slowPerson says yes, but much happens before that.
type slowPerson struct {
	meanwhile func()
	words     io.Reader
}

func (p *slowPerson) Read(b []byte) (int, error) {
	if p.meanwhile != nil {
		p.meanwhile()
		p.meanwhile = nil
	}
	return p.words.Read(b)
}

// TestYesIsToOneReplacement: a yes ends the password that the plan was about, and none of another replacement.
func TestYesIsToOneReplacement(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*corev1.Secret)
		refused bool
	}{
		"Nothing":  {func(*corev1.Secret) {}, false},
		"Replaced": {func(s *corev1.Secret) { s.ResourceVersion += "1"; s.Data["password"] = []byte("three") }, true},
		"Remade":   {func(s *corev1.Secret) { s.UID = "another"; s.Data["password"] = []byte("three") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if _, err := w.rotate(t); err != nil {
				t.Fatal(err)
			}
			env, shown := environment("y\n")
			env.In = &slowPerson{words: strings.NewReader("y\n"), meanwhile: func() {
				s := w.stored(t)
				tc.change(s)
				if err := w.kube.Tracker().Update(secrets, s, "shop"); err != nil {
					t.Error(err)
				}
				if tc.refused { // somebody else has retired, and replaced again
					*w.servers["paris"] = stored{own: "three", older: "two"}
				}
			}}
			op := &Retire{Op: common()}
			op.Yes = false
			_, err := op.Run(t.Context(), env, w)
			var failure *cli.Error
			refused := errors.As(err, &failure) && failure.Code == cli.ExitRefused && strings.Contains(err.Error(), "the Secret was changed meanwhile")
			if refused != tc.refused || !refused && err != nil {
				t.Errorf("%v, %s", err, shown)
			}
			if kept := w.servers["paris"].older == "two"; kept != tc.refused {
				t.Errorf("paris has %+v", *w.servers["paris"])
			}
		})
	}
}

// TestSitesLeftOutAreNamed: of a site that was not asked nothing is claimed.
func TestSitesLeftOutAreNamed(t *testing.T) {
	w := newWorld(t)
	w.lags = true
	shown, err := w.rotate(t, "rome")
	if err != nil || strings.Contains(shown, "every site lets") || strings.Contains(shown, "every site has") ||
		!strings.Contains(shown, "every site but rome lets the account in") || !strings.Contains(shown, "not asked, as --without says: rome") {
		t.Errorf("%v, %s", err, shown)
	}
	w = newWorld(t)
	if shown, err = w.rotate(t); err != nil || !strings.Contains(shown, "every site lets the account in") || strings.Contains(shown, "not asked") {
		t.Errorf("%v, %s", err, shown)
	}
}
