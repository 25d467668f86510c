// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// What deleting the pod does depends on why the site keeps its role.
func TestWhatToDoAboutASiteThatStays(t *testing.T) {
	for reason, want := range map[v1alpha1.Reason]string{
		v1alpha1.ReasonLargeChange: "to move the role now and have that transaction rolled back, delete the pod",
		v1alpha1.ReasonTargetLags:  "to accept that writes stop until it is back, delete the pod",
	} {
		if said := StaysMessage(&failover.Stays{Site: "west", Leaving: "its node is cordoned", Reason: reason, Message: "why"}); !strings.HasSuffix(said, want) {
			t.Errorf("%s: %s", reason, said)
		}
	}
	stays := failover.Stays{Site: "west", Leaving: "its node is cordoned", Reason: v1alpha1.ReasonLargeChange, Message: "why",
		Remedies: []failover.Remedy{{Text: "see whose it is", Command: "kubectl mfg mysql"}, {Text: "end it with KILL"}}}
	if said := StaysMessage(&stays); !strings.Contains(said, "see whose it is: kubectl mfg mysql") || !strings.Contains(said, "; end it with KILL; to move the role now") {
		t.Errorf("nobody is told how to go on: %s", said)
	}
}
