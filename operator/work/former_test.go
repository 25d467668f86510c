// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	someGroup = types.NamespacedName{Namespace: "shop", Name: "orders"}
	someSite  = scope.SiteKey{Group: someGroup, Site: "b"}
)

// A group was deleted and made again under its name, while the clone into its site still ended: what that job says does not count for the
// new group, whose own job goes on.
func TestAForgottenJobLeavesItsSuccessorAlone(t *testing.T) {
	w := New()
	cancelled := false
	former := w.Begin(someSite, func() { cancelled = true })
	former.Hold()
	w.Forget(someGroup)
	if !cancelled {
		t.Error("the job of a group that is gone goes on")
	}
	own := w.Begin(someSite, func() { t.Error("the new group's job is cancelled") })
	if own == nil {
		t.Fatal("the former job keeps the new group's from beginning")
	}
	former.Hold()
	former.Window(true)
	news := former.Advance(v1alpha1.CloneProgress{Stage: "FILE COPY"}, time.Now())
	if purpose, busy := w.Busy(someGroup.Namespace, someGroup.Name, "b"); busy || news || w.Progress(someSite) != nil {
		t.Errorf("the former job holds the new group's site: %q, news %t", purpose, news)
	}
	if windows := w.Windows(someGroup.Namespace, someGroup.Name); len(windows) != 0 {
		t.Errorf("the former job opens %v", windows)
	}
	own.Hold()
	own.Window(true)
	former.Window(false)
	former.Finish(Outcome{Verdict: VerdictAdopt, Cloned: true})
	if o, ended := w.Result(someSite); ended {
		t.Errorf("the former job's outcome %+v is taken for the new one's", o)
	}
	if _, busy := w.Busy(someGroup.Namespace, someGroup.Name, "b"); !busy || len(w.Windows(someGroup.Namespace, someGroup.Name)) != 1 {
		t.Error("the former job ends its successor's hold or window")
	}
	if w.Begin(someSite, func() {}) != nil {
		t.Error("two jobs run on one site")
	}
	own.Finish(Outcome{Verdict: VerdictWait})
	if o, ended := w.Result(someSite); !ended || o.Verdict != VerdictWait {
		t.Errorf("the new group's own outcome: %+v, %t", o, ended)
	}
	own.Finish(Outcome{Verdict: VerdictAdopt})
	if o, _ := w.Result(someSite); o.Verdict != VerdictWait {
		t.Error("a job finishes twice")
	}
}

// The same for the rotation of master keys: a forgotten one neither counts as done nor as half done.
func TestAForgottenRotationLeavesItsSuccessorAlone(t *testing.T) {
	w := New()
	former := w.BeginRotation(someSite, func() {})
	former.Open("former")
	w.Forget(someGroup)
	own := w.BeginRotation(someSite, func() { t.Error("the new group's rotation is cancelled") })
	if own == nil {
		t.Fatal("the former rotation keeps the new group's from beginning")
	}
	former.Open("former")
	if windows := w.Windows(someGroup.Namespace, someGroup.Name); len(windows) != 0 {
		t.Errorf("the former rotation opens %v", windows)
	}
	own.Open("new")
	for _, err := range []error{nil, errors.New("cut off")} {
		former.Finish(err)
		if j := w.Rotation(someSite, "new"); !j.Running || j.Done || j.Trouble != "" {
			t.Errorf("after the former one ended with %v: %+v", err, j)
		}
	}
	if len(w.Windows(someGroup.Namespace, someGroup.Name)) != 1 {
		t.Error("the former rotation closes its successor's window")
	}
	own.Finish(nil)
	if j := w.Rotation(someSite, "new"); !j.Done || j.Running {
		t.Errorf("the new group's own: %+v", j)
	}
}
