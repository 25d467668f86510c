// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestLostAnswer: the connection breaks while the API server takes a request. The request may stand, also one that accepts data loss: a command that
// says that it failed would make people believe that nothing will happen.
func TestLostAnswer(t *testing.T) {
	planned, force := "failover orders -n shop --to frankfurt --yes --wait=false", "failover orders -n shop --to frankfurt --accept-data-loss --yes --wait=false"
	for name, tc := range map[string]struct {
		args   string
		breaks breaks
		// tick is what happens while the plugin looks.
		tick  func(*fakeAPI)
		code  int
		stand bool
		says  string
	}{
		"a request arrived":            {args: planned, breaks: afterPatch, code: cli.ExitHealthy, stand: true},
		"an order arrived":             {args: force, breaks: afterPatch, code: cli.ExitHealthy, stand: true},
		"the plugin cannot see it yet": {args: force, breaks: beforePatch, code: cli.ExitTimeout, says: "the request may stand"},
		"it can arrive no more": {args: force, breaks: beforePatch, tick: func(f *fakeAPI) { f.groups[0].ResourceVersion = "another" }, code: cli.ExitError,
			says: "the request to the API server failed"},
		"another group has the name": {args: planned, breaks: beforePatch, tick: func(f *fakeAPI) { f.groups[0].UID = "another" }, code: cli.ExitError, says: "failed"},
	} {
		f := loadHealthy(t)
		f.breaks = tc.breaks
		if strings.Contains(tc.args, "loss") {
			lost(f)
		}
		got := run(t, f, runOptions{tick: func(int) {
			if tc.tick != nil {
				tc.tick(f)
			}
		}}, strings.Fields(tc.args)...)
		_, order := f.groups[0].Annotations[v1alpha1.AnnotationForceFailover]
		_, move := f.groups[0].Annotations[v1alpha1.AnnotationPlannedFailover]
		if got.code != tc.code || (order || move) != tc.stand || !strings.Contains(got.errOut, tc.says) {
			t.Errorf("%s: %+v, stands %t", name, got, order || move)
		}
	}
}

// TestLostWithdrawal: the annotation is gone, and not because of the withdrawal: the operator has carried the order out.
func TestLostWithdrawal(t *testing.T) {
	for name, tc := range map[string]struct {
		breaks breaks
		before func(*fakeAPI)
		code   int
		says   string
	}{
		"withdrawn": {breaks: afterPatch, code: cli.ExitHealthy, says: "withdrawn"},
		"too late": {breaks: beforePatch, code: cli.ExitRefused, says: "it was too late", before: func(f *fakeAPI) {
			f.answer(v1alpha1.RequestForceFailover, v1alpha1.RequestDone, "", "frankfurt is active")
		}},
	} {
		f := loadHealthy(t)
		lost(f)
		order := run(t, f, runOptions{}, strings.Fields("failover orders -n shop --to frankfurt --accept-data-loss --yes --wait=false")...)
		f.breaks = tc.breaks
		got := run(t, f, runOptions{tick: func(int) {
			if tc.before != nil {
				tc.before(f)
			}
		}}, strings.Fields("failover orders -n shop --abort --yes --wait=false")...)
		if order.code != cli.ExitHealthy || got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestRefusedByAServerThatIsDone: an API server that has answered takes the request no more, and no one needs to wait.
func TestRefusedByAServerThatIsDone(t *testing.T) {
	f := loadHealthy(t)
	f.refuses = status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "failed calling webhook")
	ticks := 0
	got := run(t, f, runOptions{tick: func(int) { ticks++ }}, strings.Fields("failover orders -n shop --to frankfurt --yes --wait=false")...)
	if got.code != cli.ExitError || !strings.Contains(got.errOut, "failed calling webhook") || ticks > 0 {
		t.Errorf("%+v after %d waits", got, ticks)
	}
}

// TestLostAnswerOfAFastOperator: the operator may have answered, and removed the request, before the plugin looks.
func TestLostAnswerOfAFastOperator(t *testing.T) {
	f := loadHealthy(t)
	f.breaks = afterPatch
	f.patchedThen = func() { f.answer(v1alpha1.RequestRecloneSite, v1alpha1.RequestDone, "", "madrid is cloned") }
	got := run(t, f, runOptions{}, strings.Fields("reclone orders madrid -n shop --yes --confirm-data-loss")...)
	if got.code != cli.ExitHealthy || !strings.Contains(got.out, "madrid is cloned") {
		t.Errorf("%+v", got)
	}
}
