// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"crypto/ed25519"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Facts is where the controller learns how the sites of a group are: the snapshot that the poll loop publishes. The
// controller never asks MySQL itself, except on the site that it provisions.
type Facts interface {
	// Sites returns the newest facts of a group; false if the loop has none yet.
	Sites(namespace, group string) (GroupFacts, bool)
}

// GroupFacts is a group as the poll loop last saw it.
type GroupFacts struct {
	ActiveSite string
	Epoch      int64
	// Open is true if the active site was seen writable under this epoch.
	Open  bool
	Sites map[string]SiteFacts
	// Target is the site that is being promoted, or that a planned failover waits for to catch up; empty if there is none.
	Target string
	// InDoubt is true from the first poll on in which the active site was not seen open for writes, long before a failover is due, and while
	// it is about to go and nobody has caught up who could take its place.
	InDoubt bool
	// SignedBy is the public key of what the sites are told, and Vouch has it vouch for the one that is to come after it; nil if it is
	// not known.
	SignedBy ed25519.PublicKey
	Vouch    func(next ed25519.PublicKey) wire.Chain
}

// SiteFacts is one site as the poll loop last saw it. Sets are those of the last answer, and empty if there was none.
type SiteFacts struct {
	// Reachable is true if the site's MySQL or sidecar answered at the last poll.
	Reachable bool
	// VolumeID is the name of the data volume that the sidecar reported; empty if it is not known.
	VolumeID string
	// Diverged is true if the poll loop found transactions on the site that the group's history lacks.
	Diverged bool
	// Errant is those transactions, as found last: a clone may have thrown them away since.
	Errant gtid.Set
	// MysqlUp is true if MySQL answered SQL at the last poll; the fields below are known only then.
	MysqlUp  bool
	Writable bool
	Cloning  bool
	Executed gtid.Set
	Purged   gtid.Set
	// Retrieved is what the relay logs hold, applied or not.
	Retrieved     gtid.Set
	UserDatabases int
	// IOErrno is the error of the replication receiver; 0 means none.
	IOErrno int
	// Following is true if the site replicates from the active site and both threads run.
	Following bool
	// Lag is how far the site is behind; it counts only with LagKnown.
	Lag      time.Duration
	LagKnown bool
	// Busy names long work on the site, and Leaving says why it is about to go; empty normally.
	Busy, Leaving string
	Version       string
	// Keyring is what the sidecar says of the site's keyring; nil if it did not answer, or there is none.
	Keyring *wire.KeyringReport
	// ReportedAt is when the sidecar said so; zero if it did not answer. What happened since then is not known.
	ReportedAt time.Time
	// Certificate is what the sidecar says of the certificate that MySQL shows; nil if it did not answer, or there is none.
	Certificate *wire.CertificateReport
	// Engines is what the sidecar says of tables whose rows a clone loses; nil if that is not known.
	Engines *wire.EngineReport
	// PasswordSerial is that of the accounts Secret with whose password the site's sidecar logs in, ReceiverSerial of the one whose
	// password its receiver was given; 0 if that is not known.
	PasswordSerial, ReceiverSerial int64
	// ReceiverVerifies is true if the site's receiver was seen to verify the active site, while TLS comes to the group.
	ReceiverVerifies bool
	// AdminAddr is podIP:33062 of the site's pod.
	AdminAddr string
	PodName   string
	PodUID    string
}
