// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFinish: a drill passes only if everything that was to be shown was shown; what is not known does not pass.
func TestFinish(t *testing.T) {
	tests := map[string]struct {
		change  func(*Drill)
		failure error
		want    []string
	}{
		"Passed":   {func(*Drill) {}, nil, nil},
		"NoCanary": {withoutCanary, nil, nil},
		"AtTheLimit": {func(d *Drill) {
			d.Legs[0].WritePauseMillis, d.Legs[1].CanaryPauseMillis = new(int64(2000)), new(int64(2000))
		}, nil, nil},
		"Refused": {func(d *Drill) {
			d.Legs[1].Outcome, d.Legs[1].Reason, d.Legs[1].Message = "Reverted", "PauseTimeout", "it is opened again"
		}, nil,
			[]string{"back: Reverted (PauseTimeout): it is opened again"}},
		"Unknown":     {func(d *Drill) { d.Legs[1].Outcome, d.Legs[1].Reason, d.Legs[1].Message = "Unknown", "", "no answer" }, nil, []string{"back: Unknown: no answer"}},
		"NotMeasured": {func(d *Drill) { d.Legs[0].WritePauseMillis = nil }, nil, []string{"there: the pause of writes was not measured"}},
		"Slow":        {func(d *Drill) { d.Legs[0].WritePauseMillis = new(int64(2001)) }, nil, []string{"there: writes were kept out for 2001 ms, the target is 2000 ms"}},
		"Lost":        {func(d *Drill) { d.Legs[1].LostTransactions = new(int64(1)) }, nil, []string{"back: transactions were lost, or it is not known that none were"}},
		"LossUnknown": {func(d *Drill) { d.Legs[1].LostTransactions = nil }, nil, []string{"back: transactions were lost, or it is not known that none were"}},
		"NoRow":       {func(d *Drill) { d.Legs[0].CanaryPauseMillis = nil }, nil, []string{"there: the canary got no row acknowledged by frankfurt"}},
		"CanarySlow":  {func(d *Drill) { d.Legs[0].CanaryPauseMillis = new(int64(2001)) }, nil, []string{"there: no row of the canary was acknowledged for 2001 ms, the target is 2000 ms"}},
		"RowsMissing": {func(d *Drill) { d.Canary.Missing = new(int64(3)) }, nil, []string{"canary: 3 of 700 acknowledged rows are missing"}},
		"RowsUnread":  {func(d *Drill) { d.Canary.Missing, d.Canary.Message = nil, "the rows could not be read: gone" }, nil, []string{"canary: the rows could not be read: gone"}},
		"NotBack": {func(d *Drill) { d.Legs = d.Legs[:1] }, errors.New("interrupted"),
			[]string{"back: not tried: the drill was interrupted after the first move, and frankfurt is active"}},
		"NotThere": {func(d *Drill) { d.Legs = nil }, errors.New("interrupted"), []string{"back: not tried: the first move was not asked for"}},
		"ThereUnknown": {func(d *Drill) {
			d.Legs = d.Legs[:1]
			d.Legs[0].Outcome, d.Legs[0].Reason, d.Legs[0].Message = "Unknown", "", "no answer"
		}, nil, []string{"there: Unknown: no answer", "back: not tried: the outcome of the first move is not known"}},
		"ThereRefused": {func(d *Drill) {
			d.Legs = d.Legs[:1]
			d.Legs[0].Outcome, d.Legs[0].Reason, d.Legs[0].Message = "Refused", "Paused", "until noon"
		}, nil, []string{"there: Refused (Paused): until noon", "back: not tried: the first move did not succeed"}},
		"Unhealthy": {func(d *Drill) { d.Legs = d.Legs[:1]; d.Legs[0].Unsettled = "interrupted" }, errors.New("told already"),
			[]string{"there: the group was not seen healthy after it: interrupted", "back: not tried: the group was not seen healthy after the first move, and frankfurt is active"}},
		"UnhealthyThen": {func(d *Drill) { d.Legs[1].Unsettled = "no outcome within 5m0s" }, errors.New("told already"),
			[]string{"back: the group was not seen healthy after it: no outcome within 5m0s"}},
		"Otherwise": {func(*Drill) {}, errors.New("for another reason"), []string{"for another reason"}},
		"All": {func(d *Drill) {
			d.Legs[0].LostTransactions, d.Legs[1].WritePauseMillis, d.Canary.Missing = new(int64(1)), nil, new(int64(1))
		}, errors.New("told already"), []string{"there: transactions were lost, or it is not known that none were", "back: the pause of writes was not measured", "canary: 1 of 700 acknowledged rows are missing"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := drilled()
			tc.change(&d)
			d.Finish(time.Unix(60, 0), tc.failure)
			if diff := cmp.Diff(tc.want, d.Failures); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := len(tc.want) == 0; d.Passed != want || strings.Contains(d.Text(), ": PASSED\n") != want || strings.Contains(d.Text(), ": FAILED\n") == want {
				t.Errorf("passed %t, want %t:\n%s", d.Passed, want, d.Text())
			}
			if !d.FinishedAt.Equal(time.Unix(60, 0)) || strings.Contains(d.Measured, drillCanary) != (d.Canary != nil) {
				t.Errorf("%+v", d)
			}
		})
	}
}

func withoutCanary(d *Drill) {
	d.Canary = nil
	for i := range d.Legs {
		d.Legs[i].CanaryPauseMillis, d.Legs[i].CanaryRows = nil, 0
	}
}

// drilled is a drill in which everything went well.
func drilled() Drill {
	d := NewDrill("shop", "orders", 2*time.Second, time.Unix(0, 0))
	leg := Leg{Name: "there", From: "paris", To: "frankfurt", Outcome: "Succeeded", Reason: "Opened",
		WritePauseMillis: new(int64(400)), LostTransactions: new(int64(0)), CanaryPauseMillis: new(int64(450)), CanaryRows: 350}
	d.Legs = append(d.Legs, leg)
	leg.Name, leg.From, leg.To = "back", "frankfurt", "paris"
	d.Legs = append(d.Legs, leg)
	d.Canary = &Canary{EveryMillis: 20, Rows: 700, Missing: new(int64(0))}
	return d
}
