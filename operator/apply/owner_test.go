// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// I17: only an owner that was a group of the very name, and is not this one, is gone.
func TestIsGoneI17(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "now"}}
	former := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MysqlFailoverGroup", Name: "orders", UID: "before"}
	for name, tt := range map[string]struct {
		change func(*metav1.OwnerReference)
		want   bool
	}{
		"a former group of the name": {func(*metav1.OwnerReference) {}, true},
		"of another version":         {func(o *metav1.OwnerReference) { o.APIVersion = v1alpha1.GroupVersion.Group + "/v9" }, true},
		"the group itself":           {func(o *metav1.OwnerReference) { o.UID = "now" }, false},
		"another group":              {func(o *metav1.OwnerReference) { o.Name = "bills" }, false},
		"another kind":               {func(o *metav1.OwnerReference) { o.Kind = "StatefulSet" }, false},
		"of somebody else's API":     {func(o *metav1.OwnerReference) { o.APIVersion = "example.org/v1" }, false},
	} {
		owner := former
		tt.change(&owner)
		if got := IsGone(group, owner); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
