// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRemedyCommandsAreWhole: what stands on the line of a command is that command, whatever is said around it.
func TestRemedyCommandsAreWhole(t *testing.T) {
	for name, tc := range map[string]struct{ words, want string }{
		"TwoWaysOut": {
			"restore the escrow Secret of south (kubectl mfg recover-keyring orders -n shop south), or bring a primary-candidate back, or accept what may be lost: kubectl mfg failover orders -n shop --to south --accept-data-loss",
			`-> restore the escrow Secret of south:
    kubectl mfg recover-keyring orders -n shop south
    or bring a primary-candidate back, or accept what may be
    lost:
    kubectl mfg failover orders -n shop --to south --accept-data-loss
`,
		},
		"CommandInTheMiddle": {
			"wait; kubectl mfg resume orders -n shop, or wait until noon",
			"-> wait:\n    kubectl mfg resume orders -n shop\n    or wait until noon\n",
		},
		"CommandAtTheEnd": {"wait, or: kubectl mfg failover orders -n shop", "-> wait, or:\n    kubectl mfg failover orders -n shop\n"},
		"CommandFirst":    {"kubectl mfg resume orders -n shop, or wait", "-> kubectl mfg resume orders -n shop\n    or wait\n"},
		"OnlyACommand":    {"kubectl mfg resume orders -n shop", "-> kubectl mfg resume orders -n shop\n"},
		"OnlyProse":       {"wait: it may restart (in place)", "-> wait: it may restart (in place)\n"},
		"CommasOfItsOwn":  {"see: kubectl get x -o custom-columns=A:.a,B:.b, then wait", "-> see:\n    kubectl get x -o custom-columns=A:.a,B:.b\n    then wait\n"},
		"QuotesOfItsOwn":  {"see: kubectl get x -o 'a, (b); c', then wait", "-> see:\n    kubectl get x -o 'a, (b); c'\n    then wait\n"},
		"BracketOfItsOwn": {"see: kubectl get x $(y)", "-> see:\n    kubectl get x $(y)\n"},
		"NoWordOfItsOwn":  {"ask mykubectl get x", "-> ask mykubectl get x\n"},
	} {
		if diff := cmp.Diff(tc.want, Options{Width: 64}.remedy(4, tc.words)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := (Options{}).remedy(4, tc.words); got != "-> "+tc.words+"\n" {
			t.Errorf("%s without a terminal: %q", name, got)
		}
	}
	for _, words := range []string{"see: kubectl mfg history orders -n shop --epoch 8", "kubectl mfg history orders -n shop --epoch 8"} {
		if got := (Options{Width: 20}).remedy(4, words); !strings.Contains(got, "kubectl mfg history orders -n shop --epoch 8\n") {
			t.Errorf("a long command is broken: %q", got)
		}
	}
}
