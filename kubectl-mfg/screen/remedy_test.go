// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// TestRemedyCommandsAreWhole: what stands on the line of a command is that command, whatever is said around it.
func TestRemedyCommandsAreWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		remedies      []wire.Remedy
		want, inWords string
	}{
		"TwoWaysOut": {
			[]wire.Remedy{
				{Text: "restore the escrow Secret of south", Command: "kubectl mfg recover-keyring orders south -n shop"},
				{Text: "or bring a primary-candidate back, whichever of them it is"},
				{Text: "or accept what may be lost", Command: "kubectl mfg failover orders -n shop --to south --accept-data-loss"},
			},
			`    -> restore the escrow Secret of south:
    kubectl mfg recover-keyring orders south -n shop
    or bring a primary-candidate back, whichever of them it
    is
    or accept what may be lost:
    kubectl mfg failover orders -n shop --to south --accept-data-loss
`,
			"restore the escrow Secret of south: kubectl mfg recover-keyring orders south -n shop; or bring a primary-candidate back, whichever of them it is; " +
				"or accept what may be lost: kubectl mfg failover orders -n shop --to south --accept-data-loss",
		},
		"OnlyACommand": {[]wire.Remedy{{Command: "kubectl mfg resume orders -n shop"}}, "    -> kubectl mfg resume orders -n shop\n", "kubectl mfg resume orders -n shop"},
		"OnlyProse":    {[]wire.Remedy{{Text: "wait: it may restart (in place)"}}, "    -> wait: it may restart (in place)\n", "wait: it may restart (in place)"},
		"SignsOfItsOwn": {[]wire.Remedy{{Text: "see", Command: "kubectl get x -o 'a, (b); c' $(y)"}, {Text: "then wait"}},
			"    -> see:\n    kubectl get x -o 'a, (b); c' $(y)\n    then wait\n", "see: kubectl get x -o 'a, (b); c' $(y); then wait"},
	} {
		if diff := cmp.Diff(tc.want, Options{Width: 60}.remedies(4, tc.remedies)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := (Options{}).remedies(4, tc.remedies); got != "    -> "+tc.inWords+"\n" {
			t.Errorf("%s without a terminal: %q", name, got)
		}
	}
	long := "kubectl mfg history orders -n shop --epoch 8"
	for _, r := range []wire.Remedy{{Text: "see", Command: long}, {Command: long}} {
		if got := (Options{Width: 20}).remedies(4, []wire.Remedy{r}); !strings.Contains(got, long+"\n") {
			t.Errorf("a long command is broken: %q", got)
		}
	}
	if got := (Options{Width: 20}).remedies(4, nil); got != "" {
		t.Errorf("nothing to do: %q", got)
	}
}

// Some conditions are bad news while they are true. Of one that is as it should be nothing is said.
func TestWhichConditionsAreNoteworthy(t *testing.T) {
	for _, kind := range []string{v1alpha1.ConditionFailoverBlocked, v1alpha1.ConditionPlannedBlocked, v1alpha1.ConditionPaused, v1alpha1.ConditionSitesKeptFenced} {
		if !noteworthy(report.Condition{Type: kind, Status: "True"}) || noteworthy(report.Condition{Type: kind, Status: "False", Reason: v1alpha1.ReasonNotBlocked}) {
			t.Errorf("%s is told while it is not so, or not while it is", kind)
		}
	}
}
