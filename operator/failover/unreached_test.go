// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"math"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/views"
)

// Nobody but the operator makes epochs, one after the other. A report with one that was never reached is forged or damaged: with
// it in status no failover could ever begin again, because the next epoch would not fit (I2), and no sidecar goes back (I5).
func TestAnEpochThatNobodyReachedIsNotAdopted(t *testing.T) {
	for name, tc := range map[string]struct {
		status, reported int64
		adopted          bool
	}{
		"the next number does not fit":       {4, math.MaxInt64, false},
		"none is left after the next":        {4, math.MaxInt64 - 1, false},
		"more than a statement may have":     {4, wire.MaxEpoch + 1, false},
		"none would be left in a statement":  {4, wire.MaxEpoch, false},
		"far above all that was ever in use": {4, 1<<40 + 1, false},
		"in a new group":                     {0, 1<<40 + 1, false},
		"status restored from a backup":      {4, 1200, true},
		"retained volumes after an order":    {0, 3*memory.UnseenEpochs + 7, true},
		"a group that was led far away":      {1 << 40, 1<<40 + 9, true},
		"and again":                          {1 << 40, 1<<40 + 16_000_000 + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			active := "a"
			if tc.status == 0 {
				active = ""
			}
			a, b := factstest.Seen("a", "A:1-9", tc.reported), factstest.Seen("b", "A:1-9", tc.status)
			a.Sidecar.Report.ActiveSite, a.Sidecar.Report.Writable, a.Sidecar.Report.SuperReadOnly = "a", true, false
			a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = false, false
			d := Decide(factstest.World(Durable{Epoch: tc.status, ActiveSite: active}, a, b), Memory{})
			if got := d.Status.Epoch > tc.reported; got != tc.adopted {
				t.Errorf("status has epoch %d after a report with %d (%s: %s)", d.Status.Epoch, tc.reported, d.Reason, d.Message)
			}
			if d.Reason == "InvariantViolated" || d.Status.Epoch < tc.status {
				t.Errorf("the group is wedged: %s: %s", d.Reason, d.Message)
			}
		})
	}
}

// The forged report of one site neither stops the failover of the others nor counts for anything in it: no proof, no
// acknowledgement, no candidate.
func TestAReportUnderAnUnreachedEpochCountsAsSilence(t *testing.T) {
	b := factstest.Seen("b", "A:1-9", math.MaxInt64)
	s := memory.Believed(factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), b))
	if s.Sites[1].Sidecar.Answered || s.Sites[1].Sidecar.Report.Epoch != 0 {
		t.Errorf("I2, I12: the report counts: %+v", s.Sites[1].Sidecar)
	}
	if !s.Sites[1].MySQL.Direct || !s.Sites[0].Sidecar.Answered {
		t.Error("what the operator saw itself, or another site said, is lost")
	}
	d := Decide(factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), b), Memory{})
	if ack := d.Memory.Of("b").Ack; ack != nil && ack.Epoch != 0 {
		t.Errorf("I5: it acknowledges epoch %d", ack.Epoch)
	}
	if v := viewOf(d, "b"); v.Reason != "ImpossibleEpoch" {
		t.Errorf("nobody is told: %+v", v)
	}
}

// At the very end of the numbers nothing moves, and it is told.
func TestNoEpochIsBeyondTheLast(t *testing.T) {
	d := Decision{Status: Durable{Epoch: wire.MaxEpoch + 1, ActiveSite: "b"}, Hold: true}
	if err := d.check(factstest.World(Durable{Epoch: wire.MaxEpoch, ActiveSite: "a"})); err == nil {
		t.Error("I2: an epoch is decided that no statement can carry")
	}
}

func viewOf(d Decision, site string) views.View {
	for _, v := range d.Views {
		if v.Name == site {
			return v
		}
	}
	return views.View{}
}
