// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	apiwire "github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/monitor"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// factsOf hands what the poll loops saw to the controller, in the controller's words.
type factsOf struct{ monitor *monitor.Monitor }

// keyringOf is what the sidecar said of the keyring in this poll; its earlier words may be out of date.
func keyringOf(s monitor.SiteFacts) *apiwire.KeyringReport {
	if !s.Sidecar.Answered {
		return nil
	}
	return s.Sidecar.Report.Keyring
}

// reportedAt is when the sidecar said so; zero if it did not answer.
func reportedAt(s monitor.SiteFacts) time.Time {
	if !s.Sidecar.Answered {
		return time.Time{}
	}
	return s.Sidecar.At
}

// certificateOf is the same for the certificate that MySQL shows.
func certificateOf(s monitor.SiteFacts) *apiwire.CertificateReport {
	if !s.Sidecar.Answered {
		return nil
	}
	return s.Sidecar.Report.Certificate
}

// enginesOf is the same for the tables whose rows a clone loses.
func enginesOf(s monitor.SiteFacts) *apiwire.EngineReport {
	if !s.Sidecar.Answered {
		return nil
	}
	return s.Sidecar.Report.Engines
}

// serialOf is the same for the password with which it logs in.
func serialOf(s monitor.SiteFacts) int64 {
	if !s.Sidecar.Answered || s.Sidecar.Report.Accounts == nil {
		return 0
	}
	return s.Sidecar.Report.Accounts.Serial
}

// Sites implements scope.Facts.
func (f factsOf) Sites(namespace, group string) (scope.GroupFacts, bool) {
	seen, known := f.monitor.Facts(namespace, group)
	if !known {
		return scope.GroupFacts{}, false
	}
	out := scope.GroupFacts{ActiveSite: seen.ActiveSite, Epoch: seen.Epoch, Open: seen.Open, SignedBy: seen.SignedBy, Vouch: seen.Vouch, Target: seen.Target, InDoubt: seen.InDoubt,
		Sites: map[string]scope.SiteFacts{}}
	for _, s := range seen.Sites {
		out.Sites[s.Name] = siteFacts(s, seen.ActiveSite)
	}
	return out, true
}

// siteFacts are those of one site, in a group with that active site.
func siteFacts(s monitor.SiteFacts, active string) scope.SiteFacts {
	var lag time.Duration
	if s.MySQL.LagSeconds != nil {
		lag = time.Duration(*s.MySQL.LagSeconds * float64(time.Second))
	}
	return scope.SiteFacts{
		Lag: lag, LagKnown: s.MySQL.LagSeconds != nil, Busy: s.Busy, Leaving: s.Leaving, PreparedXA: s.Sidecar.Answered && s.Sidecar.Report.PreparedXA > 0,
		Reachable: s.Reachable(), MysqlUp: s.MySQL.Direct, Writable: s.Writable(), Cloning: s.MySQL.Cloning,
		Executed: s.MySQL.Executed, Retrieved: s.MySQL.Retrieved, Purged: s.MySQL.Purged, IOErrno: s.MySQL.IOErrno,
		Following: s.MySQL.ReplicaOf == active && s.MySQL.IORunning && s.MySQL.SQLRunning && !s.MySQL.Delayed,
		Filtered:  s.MySQL.Filtered || s.View.Filtered != "" && s.View.Filtered == s.MySQL.ServerUUID,
		VolumeID:  s.Sidecar.Report.VolumeID, Keyring: keyringOf(s), ReportedAt: reportedAt(s), Certificate: certificateOf(s), Engines: enginesOf(s),
		Lasts: s.Lasts(), VolumeGoes: s.Pod.VolumeGoes,
		Diverged: s.View.State == v1alpha1.SiteDiverged, Errant: s.View.Errant,
		PasswordSerial: serialOf(s), ReceiverSerial: s.ReceiverSerial, ReceiverVerifies: s.Verified,
		Version: s.MySQL.Version, AdminAddr: s.AdminAddr, PodName: s.Pod.Name, PodUID: s.Pod.UID,
	}
}
