// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestASlipInAPaceEndsNothing: without the operator no group fails over, so a setting that only paces upgrades, or sends traces, never ends it.
func TestASlipInAPaceEndsNothing(t *testing.T) {
	given := []string{"--auxiliary-url=http://a", "--sidecar-image=s", "--namespace=mfg"}
	for name, tc := range map[string]struct {
		args        []string
		notes       string
		open        bool
		pause, stop time.Duration
	}{
		"nothing is wrong":      {nil, "", true, time.Minute, 30 * time.Minute},
		"a window of no days":   {[]string{"--upgrade-window=Mo-Fr 22-04"}, "--upgrade-window", false, time.Minute, 30 * time.Minute},
		"never":                 {[]string{"--upgrade-window=never"}, "", false, time.Minute, 30 * time.Minute},
		"too short a pause":     {[]string{"--upgrade-pause=5s"}, "--upgrade-pause 5s is too short: 10s is used", true, 10 * time.Second, 30 * time.Minute},
		"too short a stop":      {[]string{"--upgrade-stop-after=30s"}, "--upgrade-stop-after 30s is too short: 1m0s is used", true, time.Minute, time.Minute},
		"a pause before it was": {[]string{"--upgrade-pause=-1s"}, "--upgrade-pause -1s", true, 10 * time.Second, 30 * time.Minute},
	} {
		s, err := parse(append(tc.args, given...))
		if err != nil {
			t.Errorf("%s: the operator ends: %v", name, err)
			continue
		}
		p := s.upgrades.policy
		if said := strings.Join(s.notes, "; "); !strings.Contains(said, tc.notes) || (said == "") != (tc.notes == "") {
			t.Errorf("%s: %q", name, said)
		}
		if p.Window.Open(time.Now()) != tc.open || p.Pause != tc.pause || p.StopAfter != tc.stop {
			t.Errorf("%s: %+v", name, p)
		}
	}
	var log strings.Builder
	if err := addTraces(nil, settings{tracing: "collector:4318"}, slog.New(slog.NewTextHandler(&log, nil))); err != nil || !strings.Contains(log.String(), "collector:4318") {
		t.Errorf("an address that is no URL: %v, %s", err, log.String())
	}
}
