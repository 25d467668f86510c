// SPDX-License-Identifier: Apache-2.0

// Package factstest makes groups and sites for the tests of the packages that decide on facts.
package factstest

import (
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
)

// Base is a snapshot without sites, with the policy of a group that fails over automatically.
func Base() facts.Snapshot {
	return facts.Snapshot{
		Now: Start, LeaderSince: Start.Add(-time.Hour), Answered: map[string]time.Time{}, Permitted: map[string]time.Time{},
		Policy: facts.Policy{Mode: v1alpha1.FailoverAuto, PollInterval: 2 * time.Second, Threshold: 3, CrashGrace: 5 * time.Second,
			Cooldown: 10 * time.Minute, DrainTimeout: 30 * time.Second, LeaseTimeout: 20 * time.Second, FenceTimeout: 2 * time.Second,
			PlannedLagTimeout: time.Minute, PlannedPauseTimeout: 5 * time.Second},
	}
}

// Start is when every story begins.
var Start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Uuids are those of the servers, by the letter that stands for each.
var Uuids = map[string]string{"A": uuid("a"), "B": uuid("b"), "C": uuid("c")}

// uuid makes the UUID of a server from one digit.
func uuid(digit string) string {
	r := strings.Repeat
	return r(digit, 8) + "-" + r(digit, 4) + "-" + r(digit, 4) + "-" + r(digit, 4) + "-" + r(digit, 12)
}

// Set parses a text like A:1-9, where A stands for the UUID of a server.
func Set(text string) gtid.Set {
	for name, id := range Uuids {
		text = strings.ReplaceAll(text, name+":", id+":")
	}
	return gtid.MustParse(text)
}

// Short is a text with A for the UUID of a server.
func Short(text string) string {
	for name, id := range Uuids {
		text = strings.ReplaceAll(text, id+":", name+":")
	}
	return text
}

// Seen is a site that answers, fenced unless open, and acknowledges the epoch.
func Seen(name, executed string, epoch int64) facts.Site {
	s := facts.Site{Name: name, Role: v1alpha1.PrimaryCandidate, Provisioned: true}
	s.MySQL = facts.MySQL{Direct: true, SuperReadOnly: true, ReadOnly: true, Executed: Set(executed), ServerUUID: name, ReceiverStopped: true}
	s.Sidecar.Answered, s.Sidecar.At = true, Start
	s.Sidecar.Report.Epoch, s.Sidecar.Report.Answered, s.Sidecar.Report.SuperReadOnly = epoch, true, true
	s.Sidecar.Report.MysqldRunning, s.Sidecar.Report.GTIDExecuted = true, Set(executed).String()
	return s
}

// World is a snapshot of those sites.
func World(status facts.Durable, sites ...facts.Site) facts.Snapshot {
	s := Base()
	s.Status, s.Sites = status, sites
	return s
}

// ThreeSites is a healthy group whose active site is a.
func ThreeSites() facts.Snapshot {
	lag := 0.0
	s := Base()
	for _, name := range []string{"a", "b", "c"} {
		open := name == "a"
		site := facts.Site{Name: name, Role: v1alpha1.PrimaryCandidate, Provisioned: true, Sidecar: facts.Sidecar{Answered: true, At: Start},
			MySQL: facts.MySQL{Direct: true, SuperReadOnly: !open, ReadOnly: !open, Executed: Set("A:1-9"), LagSeconds: &lag}}
		if !open {
			site.MySQL.ReplicaOf, site.MySQL.ReplicaHost, site.MySQL.IORunning, site.MySQL.SQLRunning = "a", "a", true, true
		}
		s.Sites = append(s.Sites, site)
	}
	s.Status = facts.Durable{Epoch: 3, ActiveSite: "a"}
	return s
}

// HealthyThree is a group of three sites; a accepts writes.
func HealthyThree() facts.Snapshot {
	lag := 0.5
	site := func(name, executed string) facts.Site {
		return facts.Site{Name: name, Role: v1alpha1.PrimaryCandidate, Provisioned: true, Sidecar: facts.Sidecar{Answered: true, At: Start},
			MySQL: facts.MySQL{Direct: true, SuperReadOnly: true, ReadOnly: true, Executed: Set(executed), LagSeconds: &lag,
				ReplicaOf: "a", IORunning: true, SQLRunning: true}}
	}
	s := Base()
	s.Sites = []facts.Site{site("a", "A:1-10"), site("b", "A:1-8"), site("c", "A:1-9")}
	s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = false, false
	s.Status = facts.Durable{Epoch: 3, ActiveSite: "a"}
	return s
}

// AtRest is a healthy group of three: a is open, and b and c follow it.
func AtRest() facts.Snapshot {
	none := 0.0
	s := World(facts.Durable{Epoch: 4, ActiveSite: "a"}, Seen("a", "A:1-1000", 4), Seen("b", "A:1-1000", 4), Seen("c", "A:1-1000", 4))
	s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = false, false
	s.Sites[0].Sidecar.Report.Writable, s.Sites[0].Sidecar.Report.SuperReadOnly = true, false
	for i := range s.Sites[1:] {
		m := &s.Sites[i+1].MySQL
		m.ReplicaOf, m.ReplicaHost, m.ReceiverStopped, m.IORunning, m.SQLRunning, m.LagSeconds = "a", "a", false, true, true, &none
	}
	return s
}

// Between is a change from a to b that has not passed its gate, with all sites whole.
func Between(kind v1alpha1.FailoverKind, sites ...facts.Site) facts.Snapshot {
	return World(facts.Durable{Epoch: 4, ActiveSite: "b", Transition: &facts.Transition{Kind: kind, Step: v1alpha1.TransitionFencing, From: "a", To: "b",
		StartedAt: Start, DetectedAt: Start}}, sites...)
}

// Under is a group whose role moves from a to b under epoch 4; c looks on.
func Under(kind v1alpha1.FailoverKind) facts.Snapshot {
	s := World(facts.Durable{Epoch: 4, ActiveSite: "b", Transition: &facts.Transition{Kind: kind, Step: v1alpha1.TransitionFencing, From: "a", To: "b", StartedAt: Start}},
		Seen("a", "A:1-9", 4), Seen("b", "A:1-9", 4), Seen("c", "A:1-9", 4))
	s.Policy.PlannedPauseTimeout = 5 * time.Second
	s.Now = Start.Add(time.Second)
	return s
}

// Silence removes all answers of a site.
func Silence(site *facts.Site) {
	site.Sidecar, site.MySQL = facts.Sidecar{}, facts.MySQL{}
}

// Keyring is what a sidecar reports in the states that matter to failover.
func Keyring(state string) *wire.KeyringReport {
	switch state {
	case "escrowed":
		return &wire.KeyringReport{Digest: "sha256:1", EscrowedDigest: "sha256:1"}
	case "behind":
		return &wire.KeyringReport{Digest: "sha256:2", EscrowedDigest: "sha256:1", Trouble: "the operator does not answer"}
	case "unreadable":
		return &wire.KeyringReport{}
	case "sealed":
		return &wire.KeyringReport{Sealed: true, Digest: "sha256:2"}
	}
	return nil
}

// On is a run on a node of that name; the machine behind it has the same one.
func On(uid, node string) facts.Run {
	return facts.Run{UID: uid, Node: node, Machine: node, Volume: "v"}
}

// PodOn gives a site a pod that is there, runs on a node, and answers from a volume.
func PodOn(s *facts.Snapshot, i int, uid, node, volume string) {
	site := &s.Sites[i]
	site.Pod.Exists, site.Pod.UID = true, uid
	site.Pod.Runs = append(site.Pod.Runs, facts.SeenRun{UID: uid, Node: node, Machine: node, Lease: 22 * time.Second, Started: true})
	site.Sidecar.Report.VolumeID, site.Sidecar.Report.PodUID = volume, uid
	if s.Nodes == nil {
		s.Nodes = map[string]facts.Node{}
	}
	s.Nodes[node] = facts.Node{Machine: node, Ready: true}
}

// StalledGroup is a group whose active site a is open, and whose volume has just begun to take no writes.
func StalledGroup(reason string) facts.Snapshot {
	s := ThreeSites()
	s.Policy.StallTimeout = time.Minute
	s.Sites[0].Sidecar.Report.WriteProbe = &wire.WriteProbe{Outcome: wire.WriteFails, Reason: reason, ForMillis: 3_600_000, AgeMillis: 900}
	for i := range 2 {
		s.Sites[i+1].Sidecar.Report.VolumeProbe = &wire.VolumeProbe{Outcome: wire.WriteDone, AgeMillis: 9_000}
	}
	return s
}

// TextOf writes runs as "pod@node:machine/volume lease flags"; the machine is left out where it has the name of the node.
func TextOf(all []facts.Run) string {
	var out []string
	for _, r := range all {
		text := r.UID + "@" + r.Node
		if r.Machine != r.Node {
			text += ":" + r.Machine
		}
		text += "/" + r.Volume
		if r.Lease > 0 {
			text += " " + r.Lease.String()
		}
		for _, flag := range []struct {
			name string
			is   bool
		}{{"closed", r.Closed}, {"idle", r.Idle}, {"ended", r.Ended}, {"elsewhere", r.Elsewhere}} {
			if flag.is {
				text += " " + flag.name
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}
