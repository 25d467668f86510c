// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// RightsHint adds to a refusal how to see what the user may do.
func RightsHint(err error, verb, kind, namespace string) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w\n  see what you may do: kubectl auth can-i %s %s -n %s", err, verb, kind, namespace)
	}
	return fmt.Errorf("the request to the API server failed: %w", err)
}

// OrNoSite returns the name of a site, or "no site" if it is empty.
func OrNoSite(s string) string {
	if s == "" {
		return "no site"
	}
	return s
}

// FieldManager names the plugin as the one that changes annotations, in managedFields.
const FieldManager = v1alpha1.ManagerPlugin

// GroupName returns kubectl's name for a group, so that kubectl accepts the output of -o name.
func GroupName(name string) string {
	return "mysqlfailovergroup." + v1alpha1.GroupVersion.Group + "/" + name
}

// Resource is the name of the groups in the paths of the API server.
const Resource = "mysqlfailovergroups"
