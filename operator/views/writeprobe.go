// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// Unwritable says that an active site is open, but that clients cannot write to it. It holds nothing that changes with every
// poll.
type Unwritable struct {
	Group  facts.Group
	Site   string
	Reason facts.Reason
	Errno  int
	// Stands says why no site takes its place although that is due; empty if it is not.
	Stands string
}

const (
	// certainFor is how long the write probe must have failed for a reason that does not pass without help, busyFor for one
	// that a short peak of load causes too.
	certainFor = 4 * time.Second
	busyFor    = 10 * time.Second
)

// busy are the reasons that a short peak of load causes too.
var busy = map[string]bool{
	wire.WriteNoAnswer: true, wire.WriteDiskStalled: true, wire.WriteTooManyConnections: true, wire.WriteLocked: true,
}

// UnwritableOf is what the sidecar of an open active site found when it wrote as a client does; nil if it could, or if nothing is
// known: a sidecar of an older version does not try, and one that is silent is another trouble.
func UnwritableOf(s facts.Snapshot, d Decided, stands string) *Unwritable {
	a, known := s.Site(d.Status.ActiveSite)
	p := a.Sidecar.Report.WriteProbe
	if !d.Healthy || !known || !a.Sidecar.Answered || p == nil || p.Outcome != wire.WriteFails {
		return nil
	}
	if time.Duration(p.AgeMillis)*time.Millisecond > facts.ProbeValid {
		return nil // what it found is too old
	}
	patience := certainFor
	if busy[p.Reason] {
		patience = busyFor
	}
	if time.Duration(p.ForMillis)*time.Millisecond < patience {
		return nil
	}
	return &Unwritable{Group: s.Group, Site: a.Name, Reason: facts.Reason(p.Reason), Errno: p.Errno, Stands: stands}
}

// trouble says each reason in words, and what to do about it.
var trouble = map[facts.Reason]struct {
	words string
	way   func(g facts.Group, site string) facts.Remedy
}{
	wire.WriteOffline:            {"offline_mode is on, so clients are not let in", ask("", "SET GLOBAL offline_mode = OFF")},
	wire.WriteReadOnly:           {"read_only is on", ask("", "SET GLOBAL read_only = OFF")},
	wire.WriteTooManyConnections: {"all its connections are taken", ask("", "SELECT @@max_connections; SHOW PROCESSLIST")},
	wire.WriteSecureTransport: {"it takes encrypted connections only, and the group has no certificate",
		ask("set spec.tls, or", "SET GLOBAL require_secure_transport = OFF")},
	wire.WriteDiskFull: {"its data volume is full", func(g facts.Group, site string) facts.Remedy {
		return ask("make spec.sites[].storage.size of "+site+" larger, or free space", "SHOW BINARY LOGS")(g, site)
	}},
	wire.WriteDiskStalled: {"its data volume does not answer", whoElse},
	wire.WriteDiskFailed:  {"its data volume fails, or takes no writes any more", whoElse},
	wire.WriteLocked:      {"a lock on the whole server stands in the way", ask("see who holds it", "SHOW PROCESSLIST")},
	wire.WriteNoAnswer:    {"a write is not answered", ask("see what it is busy with", "SHOW PROCESSLIST")},
}

// ask is a remedy that runs a statement on the site's MySQL.
func ask(text, statement string) func(facts.Group, string) facts.Remedy {
	return func(g facts.Group, site string) facts.Remedy {
		return remedy.New(text, g.Command("mysql", site, "-e '"+statement+"'"))
	}
}

func whoElse(g facts.Group, _ string) facts.Remedy {
	return remedy.New("look at the volume and its node, and see who could take over", g.Command("explain", "", ""))
}

// Message tells people, and names the next step.
func (u Unwritable) Message() (words string, way facts.Remedy) {
	t, known := trouble[u.Reason]
	if !known {
		t.words, t.way = "it refuses a write", ask("look at the log of its mysqld, and at its settings", "SHOW VARIABLES")
	}
	words = fmt.Sprintf("%s is open, but clients cannot write: %s", u.Site, t.words)
	if u.Errno != 0 {
		words += fmt.Sprintf(" (error %d)", u.Errno)
	}
	if u.Stands != "" {
		words += "; no site takes its place: " + u.Stands
	}
	return words, t.way(u.Group, u.Site)
}
