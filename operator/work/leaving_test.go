// SPDX-License-Identifier: Apache-2.0

package work

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// forUpdate is why a site is asked to leave in these tests.
const forUpdate = "its pod is to be updated"

func TestWishesToLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		own := types.NamespacedName{Namespace: "shop", Name: "orders"}
		other := types.NamespacedName{Namespace: "shop", Name: "bills"}
		leaving := func(group types.NamespacedName, site string) string {
			reason, wanted := w.Leaving(group.Namespace, group.Name, site)
			if wanted != (reason != "") {
				t.Errorf("%q, %v", reason, wanted)
			}
			return reason
		}
		if leaving(own, "a") != "" {
			t.Error("nobody asked")
		}
		if !w.AskToLeave(own, "a", forUpdate) || w.AskToLeave(own, "a", forUpdate) {
			t.Error("what is new is told once")
		}
		w.AskToLeave(other, "a", forUpdate)
		if leaving(own, "a") != forUpdate || leaving(own, "b") != "" {
			t.Error("only a is asked")
		}
		// The role has moved, and the next one is to go.
		w.AskToLeave(own, "b", forUpdate)
		if leaving(own, "a") != "" || leaving(own, "b") == "" {
			t.Error("one site of a group at a time")
		}
		w.AskToLeave(own, "", "")
		if leaving(own, "b") != "" || leaving(other, "a") == "" {
			t.Error("the wish of this group is over, that of the other is not")
		}
		time.Sleep(askedFor + time.Second)
		if leaving(other, "a") != "" {
			t.Error("nobody repeated the wish")
		}
	})
}
