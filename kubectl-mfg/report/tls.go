// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// tlsNote says how far a group is on its way to TLS and what that waits for; empty for one that has arrived, or is not on the way.
func tlsNote(cr *v1alpha1.MysqlFailoverGroup) string {
	c := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionTLSRequired)
	if c == nil || c.Status != "False" {
		return ""
	}
	note := "TLS is not required yet; " + c.Message
	if cr.Status.TLS == nil {
		return note
	}
	var counts []string
	for _, site := range cr.Status.TLS.Sites {
		counts = append(counts, fmt.Sprintf("%s %d", site.Name, site.PlainConnections))
	}
	if len(counts) > 0 {
		note += "; clients without TLS: " + strings.Join(counts, ", ")
	}
	return note
}
