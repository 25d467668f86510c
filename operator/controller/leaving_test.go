// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestWishesToLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWork()
		other := types.NamespacedName{Namespace: "shop", Name: "bills"}
		leaving := func(group types.NamespacedName, site string) string {
			reason, wanted := w.Leaving(group.Namespace, group.Name, site)
			if wanted != (reason != "") {
				t.Errorf("%q, %v", reason, wanted)
			}
			return reason
		}
		if leaving(testKey, "a") != "" {
			t.Error("nobody asked")
		}
		if !w.askToLeave(testKey, "a", leavingForUpdate) || w.askToLeave(testKey, "a", leavingForUpdate) {
			t.Error("what is new is told once")
		}
		w.askToLeave(other, "a", leavingForUpdate)
		if leaving(testKey, "a") != leavingForUpdate || leaving(testKey, "b") != "" {
			t.Error("only a is asked")
		}
		// The role has moved, and the next one is to go.
		w.askToLeave(testKey, "b", leavingForUpdate)
		if leaving(testKey, "a") != "" || leaving(testKey, "b") == "" {
			t.Error("one site of a group at a time")
		}
		w.askToLeave(testKey, "", "")
		if leaving(testKey, "b") != "" || leaving(other, "a") == "" {
			t.Error("the wish of this group is over, that of the other is not")
		}
		time.Sleep(askedFor + time.Second)
		if leaving(other, "a") != "" {
			t.Error("nobody repeated the wish")
		}
	})
}
