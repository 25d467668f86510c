// SPDX-License-Identifier: Apache-2.0

package pitr_test

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

var listAll = metav1.ListOptions{}
