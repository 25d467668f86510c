// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A run that failed counts as a run and with its overlaps, but its times are none.
func TestSumUp(t *testing.T) {
	runs := []result{
		{Name: "hung", Outcome: outcomePassed, PauseSeconds: 8, AcceptedSeconds: 5, Acknowledged: 10, Lost: 1, Reported: 2},
		{Name: "hung", Outcome: outcomeFailed, PauseSeconds: 80, AcceptedSeconds: 50, Overlaps: 1, ByServers: 2},
		{Name: "hung", Outcome: outcomePassed, PauseSeconds: 7, AcceptedSeconds: 6},
	}
	want := repeated{
		Name: "hung", Runs: 3, Passed: 2, Overlaps: 1, ByServers: 2, Acknowledged: 10, Lost: 1, Reported: 2,
		PauseP50: 7, PauseMax: 8, AcceptedP50: 5, AcceptedMax: 6,
	}
	if diff := cmp.Diff(want, sumUp(runs), cmpopts.IgnoreFields(repeated{}, "Samples")); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
}

func TestRepeatNeedsNames(t *testing.T) {
	for _, args := range [][]string{{"-repeat", "20"}, {"-repeat", "-1", "-only", "hung-sidecar"}, {"-lease", "4s"}, {"-lease", "11m"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
	if o, err := parse([]string{"-repeat", "20", "-only", "hung-sidecar", "-lease", "5s"}); err != nil || o.repeat != 20 {
		t.Errorf("options %+v, %v", o, err)
	}
}
