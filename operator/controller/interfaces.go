// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/ed25519"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/keyring"
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
	Version   string
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
	// AdminAddr is podIP:33062 of the site's pod.
	AdminAddr string
	PodName   string
	PodUID    string
}

// Access gives the operator's connection settings; *access.Access implements it.
type Access interface {
	Site(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, podIP string) (mysql.Target, error)
	Donor(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, source string) (mysql.Donor, error)
}

// Server is what provisioning asks of one MySQL; *mysql.DB implements it.
type Server interface {
	Status(ctx context.Context) (mysql.Status, error)
	CloneStatus(ctx context.Context) (mysql.CloneStatus, error)
	Close() error
}

// Recipient is a server that may be cloned into; *mysql.DB implements it.
type Recipient interface {
	Server
	StopReplication(ctx context.Context) error
	DropReplication(ctx context.Context) error
	Clone(ctx context.Context, donor mysql.Donor) error
	CancelClone(ctx context.Context) error
	BeginWindow(ctx context.Context) error
	EndWindow(ctx context.Context) error
}

// Rotator is a server whose master keys can be rotated; *mysql.DB implements it.
type Rotator interface {
	BeginWindow(ctx context.Context) error
	RotateMasterKeys(ctx context.Context) error
	EndWindow(ctx context.Context) error
}

// Escrow is the store of keyrings. It never gives a content away.
type Escrow interface {
	// Versions are the escrow Secrets of a site, with the digest of their content as it is now.
	Versions(ctx context.Context, namespace, group, site string) ([]keyring.Version, error)
	// Digest is that of the content of a Secret; empty if there is none.
	Digest(ctx context.Context, namespace, name string) (string, error)
	Prune(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, name string) error
	RenewToken(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, round int64) error
	DropToken(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) error
}

// Loops are the poll loops, one for each group.
type Loops interface {
	// Ensure starts the loop of a group if none runs. It may be called often.
	Ensure(key types.NamespacedName)
	// Forget ends the loop of a group that is gone or going. It may be called often.
	Forget(key types.NamespacedName)
	// Ended is true once nothing of a forgotten loop runs any more.
	Ended(key types.NamespacedName) bool
}

// LongWork is what the poll loop must know of work that runs beside it. *Work implements it. A busy site is
// no candidate, is not attached, and is shown as Cloning.
type LongWork interface {
	// Busy says whether long work holds a site, and which.
	Busy(namespace, group, site string) (purpose string, busy bool)
	// Windows are the windows to put into the group's statement.
	Windows(namespace, group string) []wire.Window
	// Leaving says whether the role of the active site should be moved away from a site, and why.
	Leaving(namespace, group, site string) (reason string, wanted bool)
}
