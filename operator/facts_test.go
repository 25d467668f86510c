// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/mysql-mfg/mfg/operator/monitor"
)

// A site on which an XA transaction is prepared is no source of a backup, as long as its sidecar says so itself.
func TestAPreparedXATransactionIsAFactOfItsSite(t *testing.T) {
	var s monitor.SiteFacts
	s.Sidecar.Answered, s.Sidecar.Report.PreparedXA = true, 2
	if !siteFacts(s, "a").PreparedXA {
		t.Error("nobody hears of it")
	}
	s.Sidecar.Answered = false
	if siteFacts(s, "a").PreparedXA {
		t.Error("what a sidecar said earlier may be over")
	}
}

// TestAReplicaThatSkipsTransactionsIsAFactOfItsSite covers I7: no backup is taken of it, whether the filter is set or only remembered.
func TestAReplicaThatSkipsTransactionsIsAFactOfItsSite(t *testing.T) {
	var s monitor.SiteFacts
	if siteFacts(s, "a").Filtered {
		t.Error("a site without a filter has one")
	}
	s.MySQL.Filtered = true
	if !siteFacts(s, "a").Filtered {
		t.Error("a filter that is set is not seen")
	}
	s.MySQL.Filtered, s.MySQL.ServerUUID, s.View.Filtered = false, "u", "u"
	if !siteFacts(s, "a").Filtered {
		t.Error("a filter that was taken away is forgotten")
	}
	if s.View.Filtered = "before the clone"; siteFacts(s, "a").Filtered {
		t.Error("a site that was copied again is still said to lack rows")
	}
	s.MySQL.ReplicaOf, s.MySQL.IORunning, s.MySQL.SQLRunning, s.MySQL.Delayed = "a", true, true, true
	if siteFacts(s, "a").Following {
		t.Error("a replica that is behind on purpose follows")
	}
}

// TestWhatLastsIsAFactOfItsSiteI14: a site counts as another copy only as the last poll saw it.
func TestWhatLastsIsAFactOfItsSiteI14(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*monitor.SiteFacts)
		want   bool
	}{
		"it has the data":            {func(*monitor.SiteFacts) {}, true},
		"it has no mark":             {func(s *monitor.SiteFacts) { s.Provisioned = false }, false},
		"it left":                    {func(s *monitor.SiteFacts) { s.Removed = true }, false},
		"it is on another volume":    {func(s *monitor.SiteFacts) { s.OtherVolume = true }, false},
		"its claim is being deleted": {func(s *monitor.SiteFacts) { s.Pod.VolumeGoes = true }, false},
	} {
		s := monitor.SiteFacts{}
		s.Provisioned = true
		tc.change(&s)
		if got := siteFacts(s, "a"); got.Lasts != tc.want || got.VolumeGoes != s.Pod.VolumeGoes {
			t.Errorf("I14: %s: %+v", name, got)
		}
	}
}
