// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the types of the MysqlFailoverGroup API, and every name that crosses a process or a person.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="applyconfiguration"
// +groupName=mysql-mfg.io
package v1alpha1
