// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: Domain, Version: "v1alpha1"}

// SchemeGroupVersion is GroupVersion under the name that generated code expects.
var SchemeGroupVersion = GroupVersion

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &MysqlFailoverGroup{}, &MysqlFailoverGroupList{}, &MysqlBackup{}, &MysqlBackupList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
