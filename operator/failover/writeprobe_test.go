// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/views"
)

// probed is a healthy group whose active site was written to with that outcome.
func probed(p *wire.WriteProbe) Snapshot {
	s := factstest.HealthyThree()
	for i := range s.Sites {
		if s.Sites[i].Name == s.Status.ActiveSite {
			s.Sites[i].Sidecar.Report.WriteProbe = p
		}
	}
	return s
}

func fails(reason string, millis int64) *wire.WriteProbe {
	return &wire.WriteProbe{Outcome: wire.WriteFails, Reason: reason, Errno: 3032, ForMillis: millis, AgeMillis: 900}
}

func TestAnOpenSiteThatClientsCannotWriteTo(t *testing.T) {
	old := fails(wire.WriteOffline, 60_000)
	old.AgeMillis = 11_000
	for name, tc := range map[string]struct {
		reason string
		probe  *wire.WriteProbe
		change func(*Snapshot)
		told   bool
	}{
		"no probe":              {"a sidecar of an older version does not try, and its group stays well", nil, nil, false},
		"committed":             {"clients can write", &wire.WriteProbe{Outcome: wire.WriteDone, ForMillis: 60_000}, nil, false},
		"the probe cannot":      {"unknown is not bad", &wire.WriteProbe{Outcome: wire.WriteUnknown, Reason: wire.WriteProbeUnable, ForMillis: 60_000}, nil, false},
		"just now":              {"two probes may meet a change that is undone at once", fails(wire.WriteOffline, 3_900), nil, false},
		"offline":               {"it does not pass by itself", fails(wire.WriteOffline, 4_000), nil, true},
		"a peak of connections": {"a short peak of load is none", fails(wire.WriteTooManyConnections, 9_900), nil, false},
		"all taken for long":    {"it lasts", fails(wire.WriteTooManyConnections, 10_000), nil, true},
		"slow":                  {"a short peak of load is none", fails(wire.WriteNoAnswer, 9_900), nil, false},
		"a disk that stumbles":  {"it goes on within seconds", fails(wire.WriteDiskStalled, 9_900), nil, false},
		"a short lock":          {"a backup takes one", fails(wire.WriteLocked, 9_900), nil, false},
		"a disk that hangs":     {"it lasts", fails(wire.WriteDiskStalled, 10_000), nil, true},
		"long ago":              {"what the last probe found may be over", old, nil, false},
		"silent":                {"the report is not of this poll", fails(wire.WriteOffline, 60_000), func(s *Snapshot) { s.Sites[0].Sidecar.Answered = false }, false},
		"closed": {"that is another trouble, with its own word", fails(wire.WriteOffline, 60_000), func(s *Snapshot) {
			s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = true, true
			s.Sites[0].Sidecar.Report.Writable, s.Sites[0].Sidecar.Report.SuperReadOnly = false, true
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := probed(tc.probe)
			if tc.change != nil {
				tc.change(&s)
			}
			d := Decide(s, Memory{})
			if got := d.Unwritable != nil; got != tc.told {
				t.Fatalf("%s: told %v: %+v", tc.reason, got, d.Unwritable)
			}
			if d.Verdict == VerdictFailover {
				t.Errorf("a probe moves no role: %s", d.Message)
			}
			if !tc.told {
				return
			}
			if string(d.Reason) != tc.probe.Reason || !strings.Contains(d.Message, "clients cannot write") || d.Verdict != VerdictNothing {
				t.Errorf("%s %s: %s", d.Verdict, d.Reason, d.Message)
			}
			e := Explain(s, Memory{}, d)
			if r, ok := first(s, e); !ok || r.Reason != tc.probe.Reason || !strings.Contains(r.Remedy, "kubectl mfg ") {
				t.Errorf("explained as %+v", r)
			}
		})
	}
}

// Every reason of a probe has words and a next step with the name of the site in it, also one of a newer sidecar.
func TestEveryTroubleHasAWayOut(t *testing.T) {
	for _, reason := range []Reason{
		wire.WriteNoAnswer, wire.WriteOffline, wire.WriteReadOnly, wire.WriteTooManyConnections, wire.WriteSecureTransport, wire.WriteDiskFull,
		wire.WriteDiskStalled, wire.WriteDiskFailed, wire.WriteLocked, wire.WriteRefused, "OfANewerVersion",
	} {
		words, way := views.Unwritable{Site: "paris", Reason: reason, Errno: 7}.Message()
		if !strings.HasPrefix(words, "paris is open, but clients cannot write: ") || !strings.HasSuffix(words, "(error 7)") {
			t.Errorf("%s: %s", reason, words)
		}
		if !strings.HasPrefix(way.Command, "kubectl mfg ") || strings.Contains(way.String(), "SITE") {
			t.Errorf("%s: %s", reason, way)
		}
	}
}
