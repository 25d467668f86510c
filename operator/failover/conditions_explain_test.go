// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/memory"
)

// TestWhatIsExplainedOfAStall: when another site takes over, or that none does.
func TestWhatIsExplainedOfAStall(t *testing.T) {
	for reason, limits := range map[string]map[time.Duration]string{
		wire.WriteDiskStalled: {time.Minute: "after spec.failover.stallTimeout 1m0s, of which 20s have passed", 0: "stallTimeout is 0s"},
		wire.WriteNoAnswer:    {time.Minute: ""},
	} {
		for limit, want := range limits {
			s := factstest.StalledGroup(reason)
			s.Policy.StallTimeout = limit
			s, d := lasts(s, Memory{}, 20*time.Second)
			e := Explain(s, d.Memory, d)
			i := strings.Index(e.Rules[1].Input, "; ")
			if said := e.Rules[1].Input; d.Unwritable == nil || !strings.Contains(said, want) || want == "" && strings.Contains(said, "stallTimeout") {
				t.Errorf("%s, %s: %d %+v", reason, limit, i, e.Rules[1])
			}
		}
	}
}

// TestSinceWhenAVolumeIsStalled: silence alone is no stall, and begins none.
func TestSinceWhenAVolumeIsStalled(t *testing.T) {
	s := factstest.StalledGroup(wire.WriteDiskStalled)
	s.Sites[0].Sidecar = Sidecar{}
	if since := memory.Remember(s, Memory{}).Of("a").StalledSince; !since.IsZero() {
		t.Errorf("since %s", since)
	}
	for name, tc := range map[string]struct {
		change func(*Site)
		want   bool
	}{
		"it is open and stalled": {func(*Site) {}, true},
		"its sidecar is silent":  {func(a *Site) { a.Sidecar.Answered = false }, false},
		"it is read-only":        {func(a *Site) { a.MySQL.SuperReadOnly = true }, false},
		"it takes writes":        {func(a *Site) { a.Sidecar.Report.WriteProbe = &wire.WriteProbe{Outcome: wire.WriteDone} }, false},
	} {
		a := factstest.StalledGroup(wire.WriteDiskStalled).Sites[0]
		tc.change(&a)
		if a.Stalls() != tc.want {
			t.Errorf("%s: %t", name, !tc.want)
		}
	}
}

// TestWhatIsSaidOfTheVolumeOfACandidate: what nobody knows is not told as trouble.
func TestWhatIsSaidOfTheVolumeOfACandidate(t *testing.T) {
	for name, tc := range map[string]struct {
		probe *wire.VolumeProbe
		want  string
	}{
		"it takes writes":  {&wire.VolumeProbe{Outcome: wire.WriteDone}, ""},
		"it takes none":    {&wire.VolumeProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull}, "it is not known whether its own volume takes writes"}, // and a guard says more
		"nobody tried":     {nil, "it is not known whether its own volume takes writes"},
		"the try is old":   {&wire.VolumeProbe{Outcome: wire.WriteDone, AgeMillis: 31_000}, "it is not known whether its own volume takes writes"},
		"nobody found out": {&wire.VolumeProbe{Outcome: wire.WriteUnknown}, "it is not known whether its own volume takes writes"},
	} {
		b := Site{Name: "b", Sidecar: Sidecar{Answered: true}}
		b.Sidecar.Report.VolumeProbe = tc.probe
		if got := mayTakeNoWrites(b); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
