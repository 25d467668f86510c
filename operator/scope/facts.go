// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"crypto/ed25519"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Facts is where the controller learns the state of a group's sites: the snapshot that the poll loop publishes. The
// controller itself asks no MySQL, except on the site that it provisions.
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
	// Target is the site that is being promoted, or that must catch up for a planned failover; empty if there is none.
	Target string
	// InDoubt is true from the first poll that did not see the active site open for writes, long before a failover is due. It is also true
	// while the active site is about to go and no site that could take its place has caught up.
	InDoubt bool
	// SignedBy is the public key that statements are signed with; Vouch lets its key vouch for the next one. Both are nil if the key
	// is not known.
	SignedBy ed25519.PublicKey
	Vouch    func(next ed25519.PublicKey) wire.Chain
}

// SiteFacts is one site as the poll loop last saw it. GTID sets are from the last answer, and empty if there was none.
type SiteFacts struct {
	// Reachable is true if the site's MySQL or sidecar answered at the last poll.
	Reachable bool
	// VolumeID is the name of the data volume that the sidecar reported; empty if not known.
	VolumeID string
	// Diverged is true if the poll loop found transactions on the site that the group's history lacks.
	Diverged bool
	// Errant holds those transactions, as last found: a clone may have thrown them away since.
	Errant gtid.Set
	// MysqlUp is true if MySQL answered SQL at the last poll; the fields below are known only then.
	MysqlUp  bool
	Writable bool
	Cloning  bool
	Executed gtid.Set
	Purged   gtid.Set
	// Retrieved is the set in the relay logs, applied or not.
	Retrieved gtid.Set
	// IOErrno is the error of the replication receiver; 0 means none.
	IOErrno int
	// Following is true if the site replicates from the active site and both threads run.
	Following bool
	// Lag is how far the site is behind; it counts only with LagKnown.
	Lag      time.Duration
	LagKnown bool
	// Filtered is true if a replication filter is set on the site, or was: it may lack rows that its sets say it has.
	Filtered bool
	// PreparedXA is true if the sidecar says that an XA transaction is prepared on a site that is not open.
	PreparedXA bool
	// Lasts is true if what the site has is there after its pod ends: the site is in the specification, status says that it has the group's data on
	// this very volume, and the volume's claim is not being deleted. VolumeGoes is true if it is.
	Lasts, VolumeGoes bool
	// Busy names long work on the site, and Leaving says why the site is about to go; both are normally empty.
	Busy, Leaving string
	Version       string
	// Keyring is the sidecar's report on the site's keyring; nil if the sidecar did not answer, or there is no keyring.
	Keyring *wire.KeyringReport
	// ReportedAt is the time of that report; zero if the sidecar did not answer. What happened since then is not known.
	ReportedAt time.Time
	// Certificate is the sidecar's report on the certificate that MySQL serves; nil if the sidecar did not answer, or there is none.
	Certificate *wire.CertificateReport
	// Engines is the sidecar's report on tables whose rows a clone loses; nil if not known.
	Engines *wire.EngineReport
	// PasswordSerial is the serial of the accounts Secret whose password the site's sidecar uses, ReceiverSerial of the one whose
	// password its receiver got; each is 0 if not known.
	PasswordSerial, ReceiverSerial int64
	// ReceiverVerifies is true if the site's receiver was seen to verify the active site, while the group gets TLS.
	ReceiverVerifies bool
	// AdminAddr is podIP:33062 of the site's pod.
	AdminAddr string
	PodName   string
	PodUID    string
}
