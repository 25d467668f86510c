// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Unwritable says that an active site is open, and that clients cannot write to it all the same. It holds nothing that changes
// with every poll.
type Unwritable struct {
	Group  Group
	Site   string
	Reason Reason
	Errno  int
	// Stands says why nobody takes its place although that is due; empty if it is not.
	Stands string
}

const (
	// certainFor is how long the write probe must have failed for a reason that does not pass by itself, busyFor for one that a
	// short peak of load brings too.
	certainFor = 4 * time.Second
	busyFor    = 10 * time.Second
	// probeValid is how old the last probe may be to say anything.
	probeValid = 10 * time.Second
)

// busy are the reasons that a short peak of load brings too.
var busy = map[string]bool{
	wire.WriteNoAnswer: true, wire.WriteDiskStalled: true, wire.WriteTooManyConnections: true, wire.WriteLocked: true,
}

// unwritable is what the sidecar of an open active site found when it wrote as a client does; nil if it could, or if nothing is
// known: a sidecar of an older version does not try, and one that is silent is another trouble.
func unwritable(s Snapshot, d Decision) *Unwritable {
	a, known := s.Site(d.Status.ActiveSite)
	p := a.Sidecar.Report.WriteProbe
	if d.Topology != TopologyHealthy || !known || !a.Sidecar.Answered || p == nil || p.Outcome != wire.WriteFails {
		return nil
	}
	if time.Duration(p.AgeMillis)*time.Millisecond > probeValid {
		return nil // what it found is of long ago
	}
	patience := certainFor
	if busy[p.Reason] {
		patience = busyFor
	}
	if time.Duration(p.ForMillis)*time.Millisecond < patience {
		return nil
	}
	return &Unwritable{Group: s.Group, Site: a.Name, Reason: Reason(p.Reason), Errno: p.Errno, Stands: d.StallStands}
}

// trouble says each reason in words, and what to do about it.
var trouble = map[Reason]struct {
	words string
	way   func(g Group, site string) Remedy
}{
	wire.WriteOffline:            {"offline_mode is on, so clients are not let in", ask("", "SET GLOBAL offline_mode = OFF")},
	wire.WriteReadOnly:           {"read_only is on", ask("", "SET GLOBAL read_only = OFF")},
	wire.WriteTooManyConnections: {"all its connections are taken", ask("", "SELECT @@max_connections; SHOW PROCESSLIST")},
	wire.WriteSecureTransport: {"it takes encrypted connections only, and the group has no certificate",
		ask("set spec.tls, or", "SET GLOBAL require_secure_transport = OFF")},
	wire.WriteDiskFull: {"its data volume is full", func(g Group, site string) Remedy {
		return ask("make spec.sites[].storage.size of "+site+" larger, or free space", "SHOW BINARY LOGS")(g, site)
	}},
	wire.WriteDiskStalled: {"its data volume does not answer", whoElse},
	wire.WriteDiskFailed:  {"its data volume fails, or takes no writes any more", whoElse},
	wire.WriteLocked:      {"a lock on the whole server stands in the way", ask("see who holds it", "SHOW PROCESSLIST")},
	wire.WriteNoAnswer:    {"a write is not answered", ask("see what it is busy with", "SHOW PROCESSLIST")},
}

// ask is a remedy that says something to the MySQL of the site.
func ask(text, statement string) func(Group, string) Remedy {
	return func(g Group, site string) Remedy { return remedy(text, g.Command("mysql", site, "-e '"+statement+"'")) }
}

func whoElse(g Group, _ string) Remedy {
	return remedy("look at the volume and its node, and see who could take over", g.Command("explain", "", ""))
}

// Message says it to people and names the next step.
func (u Unwritable) Message() (words string, way Remedy) {
	t, known := trouble[u.Reason]
	if !known {
		t.words, t.way = "it refuses a write", ask("look at the log of its mysqld, and at its settings", "SHOW VARIABLES")
	}
	words = fmt.Sprintf("%s is open, but clients cannot write: %s", u.Site, t.words)
	if u.Errno != 0 {
		words += fmt.Sprintf(" (error %d)", u.Errno)
	}
	if u.Stands != "" {
		words += "; nobody takes its place: " + u.Stands
	}
	return words, t.way(u.Group, u.Site)
}

// sayUnwritable puts it in front of what is said of a group of which there is nothing else to say.
func (d Decision) sayUnwritable(s Snapshot) Decision {
	if d.Unwritable = unwritable(s, d); d.Unwritable != nil && d.Verdict == VerdictNothing {
		words, way := d.Unwritable.Message()
		d.Reason, d.Message = d.Unwritable.Reason, words+"; "+way.String()
	}
	return d
}
