// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/secure"
)

// finishRequiring plays the update by which the sites refuse clients without TLS; b is the active site. The condition is true with the
// last site, the active one before, and not sooner.
func (w *stepping) finishRequiring(t *testing.T) {
	t.Helper()
	said := func() string {
		c := w.condition(v1alpha1.ConditionTLSRequired)
		return string(c.Status) + " " + c.Message
	}
	for range 3 {
		w.says(0, secure.Quiet, "a", "c")
		w.moves("b", 2)
		w.reconcile()
	}
	if got := said(); !w.asked("b") || !strings.HasPrefix(got, "False Required") || !strings.Contains(got, "until b does so") {
		t.Errorf("while the active site accepts clients without TLS: %s; asked to move: %t", got, w.asked("b"))
	}
	w.moves("a", 3)
	for range 3 {
		w.reconcile()
		w.says(0, secure.Quiet, all...)
		w.moves("a", 3)
	}
	w.reconcile()
	if got := said(); !strings.HasPrefix(got, string(metav1.ConditionTrue)) {
		t.Errorf("once every site refuses them: %s", got)
	}
	w.facts.Change("c", func(f *scope.SiteFacts) { f.MysqlUp = false })
	w.reconcile()
	if got := said(); !strings.HasPrefix(got, string(metav1.ConditionTrue)) {
		t.Errorf("a site that is away accepts nobody: %s", got)
	}
}
