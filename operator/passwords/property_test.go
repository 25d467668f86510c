// SPDX-License-Identifier: Apache-2.0

package passwords_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/passwords"
)

// TestEverybodyCanLogInI21 lets people order and edit, sites go and come, roles move with and without loss, kubelets and replicas lag,
// and the operator forget everything at any time: whoever has to log in can at every moment, and in the end every replacement is over.
func TestEverybodyCanLogInI21(t *testing.T) {
	runs, finished := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		one := func() *node { return w.nodes[rapid.IntRange(0, len(w.nodes)-1).Draw(rt, "site")] }
		account := func() string { return rapid.SampledFrom(passwords.Accounts).Draw(rt, "account") }
		actions := map[string]func(){
			"step":      w.step,
			"replicate": func() { w.replicate(one()) },
			"kubelet":   func() { w.kubelet(one()) },
			"receive":   func() { w.receive(one()) },
			"settle":    w.settle,
			"forget":    func() { w.looks, w.settled = nil, false },
			"clone":     func() { w.clone(one()) },
			"close":     func() { w.open = !w.open; w.looks = nil },
			"failover":  func() { w.failover(rapid.IntRange(0, len(w.nodes)-1).Draw(rt, "to")) },
			"reach":     func() { n := one(); n.reachable = !n.reachable; w.looks = nil },
			"order": func() {
				w.order = rapid.SampledFrom([]string{passwords.All, v1alpha1.AccountOperator, "replication,sidecar", "root", ""}).Draw(rt, "order")
				w.orders, w.before = w.orders+1, w.made
			},
			"edit": func() {
				a := account()
				e := w.secret.entries[a]
				w.made++
				e.Current = rapid.SampledFrom([]string{fmt.Sprintf("%s-%d", a, w.made), "", "a line\n", "much too long for any replica, really"}).Draw(rt, "edited")
				next := w.secret.clone()
				next.entries[a] = e
				w.put(next)
			},
			"edit next": func() {
				a := account()
				e := w.secret.entries[a]
				w.made++
				e.Next = rapid.SampledFrom([]string{fmt.Sprintf("%s-%d", a, w.made), "", e.Known, e.Previous}).Draw(rt, "next")
				next := w.secret.clone()
				next.entries[a] = e
				w.put(next)
			},
		}
		for range rapid.IntRange(10, 150).Draw(rt, "length") {
			name := rapid.SampledFrom([]string{"step", "step", "step", "step", "step", "replicate", "replicate", "kubelet", "kubelet", "receive", "receive",
				"settle", "settle", "forget", "clone", "clone", "close", "failover", "reach", "order", "edit", "edit next"}).Draw(rt, "do")
			actions[name]()
			w.check()
		}
		w.calm()
		mustSettle(t, w)
		for _, n := range w.nodes {
			for _, a := range passwords.Accounts {
				if !n.takes[a].takes(w.secret.entries[a].Current) {
					rt.Errorf("%s does not take the password of %s", n.name, a)
				}
			}
		}
		finished += w.done
		runs++
	})
	if runs >= 100 && finished == 0 {
		t.Error("no replacement ever came to its end: the test shows nothing")
	}
}
