// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// TestHowLongAPollWaitsForASite: for a short time only while a change is young, and never for a site that it needs.
func TestHowLongAPollWaitsForASite(t *testing.T) {
	now := time.Unix(1000, 0)
	p := Policy{PlannedPauseTimeout: 5 * time.Second, LeaseTimeout: 20 * time.Second, FenceTimeout: 2 * time.Second}
	young := 2 * LeaseEnd(p.LeaseTimeout+p.FenceTimeout)
	begun := func(kind v1alpha1.FailoverKind, ago time.Duration) *Transition {
		return &Transition{Kind: kind, From: "a", To: "b", StartedAt: now.Add(-ago)}
	}
	move, lost := begun(v1alpha1.FailoverPlanned, time.Second), begun(v1alpha1.FailoverEmergency, time.Second)
	for name, tc := range map[string]struct {
		change *Transition
		site   string
		silent bool
		want   time.Duration
	}{
		"nothing moves":                       {nil, "a", true, AskTimeout},
		"who looks on at a move":              {move, "c", false, BystanderTimeout},
		"who leaves the role":                 {move, "a", false, AskTimeout},
		"who leaves the role, and is silent":  {move, "a", true, AskTimeout},
		"who gets the role":                   {move, "b", false, AskTimeout},
		"who looks on at a move that is late": {begun(v1alpha1.FailoverPlanned, 2*p.PlannedPauseTimeout), "c", false, AskTimeout},
		"who is lost":                         {lost, "a", true, LostTimeout},
		"who is lost, and answered":           {lost, "a", false, AskTimeout},
		"who takes over, and was silent":      {lost, "b", true, AskTimeout},
		"who looks on, and was silent":        {lost, "c", true, AskTimeout},
		"who is lost, at the end of that":     {begun(v1alpha1.FailoverEmergency, young-1), "a", true, LostTimeout},
		"who is lost, after the end of that":  {begun(v1alpha1.FailoverEmergency, young), "a", true, AskTimeout},
		"who is replaced by order":            {begun(v1alpha1.FailoverForced, time.Second), "a", true, AskTimeout},
	} {
		if got := tc.change.Patience(tc.site, tc.silent, now, p); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestWhatIsSaidOfAKeyringThatIsNotEscrowedI16: that it is not, and why, if its sidecar knows.
func TestWhatIsSaidOfAKeyringThatIsNotEscrowedI16(t *testing.T) {
	for name, tc := range map[string]struct {
		keyring *wire.KeyringReport
		want    string
	}{
		"there is none":       {nil, ""},
		"it is escrowed":      {&wire.KeyringReport{Digest: "1", EscrowedDigest: "1"}, ""},
		"it came from escrow": {&wire.KeyringReport{Sealed: true, Digest: "1"}, ""},
		"it is written":       {&wire.KeyringReport{}, "its live keyring is not escrowed yet"},
		"an older one is":     {&wire.KeyringReport{Digest: "2", EscrowedDigest: "1"}, "its live keyring is not escrowed yet"},
		"that fails":          {&wire.KeyringReport{Digest: "1", Trouble: "nobody answers"}, "its live keyring is not escrowed: nobody answers"},
	} {
		s := answering()
		s.Sidecar.Report.Keyring = tc.keyring
		if got := s.Unescrowed(); got != tc.want {
			t.Errorf("I16: %s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestWhichSiteStalls: one that is open, of which its sidecar has just found it, and says so now.
func TestWhichSiteStalls(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Site)
		want   bool
	}{
		"just found":                {func(*Site) {}, true},
		"as long ago as may be":     {func(s *Site) { s.Sidecar.Report.WriteProbe.AgeMillis = ProbeValid.Milliseconds() }, true},
		"longer ago":                {func(s *Site) { s.Sidecar.Report.WriteProbe.AgeMillis = ProbeValid.Milliseconds() + 1 }, false},
		"its sidecar is silent now": {func(s *Site) { s.Sidecar.Answered = false }, false},
		"it is shut":                {func(s *Site) { s.MySQL.ReadOnly, s.MySQL.SuperReadOnly = true, true }, false},
		"it writes":                 {func(s *Site) { s.Sidecar.Report.WriteProbe.Outcome = wire.WriteDone }, false},
		"it was never tried":        {func(s *Site) { s.Sidecar.Report.WriteProbe = nil }, false},
	} {
		s := answering()
		s.MySQL.ReadOnly, s.MySQL.SuperReadOnly = false, false
		s.Sidecar.Report.WriteProbe = &wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskStalled}
		tc.change(&s)
		if got := s.Stalls(); got != tc.want {
			t.Errorf("%s: stalls %t", name, got)
		}
	}
}

// TestUntilWhenOthersMayHaveAnsweredI4: until this operator began, or until the former one ended, if it is known to have ended before.
func TestUntilWhenOthersMayHaveAnsweredI4(t *testing.T) {
	since := time.Unix(1000, 0)
	for name, tc := range map[string]struct{ former, want time.Time }{
		"nothing is known":  {time.Time{}, since},
		"it ended before":   {since.Add(-time.Minute), since.Add(-time.Minute)},
		"it ended since":    {since.Add(time.Minute), since},
		"it ended just now": {since, since},
	} {
		if got := (Snapshot{LeaderSince: since, FormerUntil: tc.former}).OthersUntil(); !got.Equal(tc.want) {
			t.Errorf("I4: %s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestWhatMovesTheRole: only what leads from a site that is alive to another one.
func TestWhatMovesTheRole(t *testing.T) {
	for name, tc := range map[string]struct {
		change *Transition
		want   bool
	}{
		"none":                {nil, false},
		"a move":              {&Transition{From: "a", To: "b", Kind: v1alpha1.FailoverPlanned}, true},
		"the way back":        {&Transition{From: "a", To: "a", Kind: v1alpha1.FailoverPlanned}, false},
		"after a loss":        {&Transition{From: "a", To: "b", Kind: v1alpha1.FailoverEmergency}, false},
		"the first active on": {&Transition{To: "b", Kind: v1alpha1.FailoverBootstrap}, false},
	} {
		if got := tc.change.Moves(); got != tc.want {
			t.Errorf("%s: moves %t", name, got)
		}
	}
}
