// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// FenceStage is the rung of the fencing ladder that was needed.
type FenceStage string

// The rungs, in order.
const (
	// FenceNone: nothing had to be done, MySQL was read-only already or did not run.
	FenceNone FenceStage = ""
	// FenceReadOnly: offline_mode and super_read_only were enough.
	FenceReadOnly FenceStage = "ReadOnly"
	// FenceKillSessions: client sessions had to be killed.
	FenceKillSessions FenceStage = "KillSessions"
	// FenceKillServer: mysqld was ended with SIGKILL; it restarts fenced.
	FenceKillServer FenceStage = "KillServer"
)

// FenceCause is why a site fenced itself last.
type FenceCause string

// The causes.
const (
	FenceStartup   FenceCause = "Startup"
	FenceMismatch  FenceCause = "Mismatch"
	FenceIsolation FenceCause = "Isolation"
	FenceWindowEnd FenceCause = "WindowEnd"
	// FenceUnproven: MySQL was or may have been writable, and the sidecar did not open it, or could not prove that it did.
	FenceUnproven FenceCause = "Unproven"
	// FenceShutdown: the sidecar was told to end.
	FenceShutdown FenceCause = "Shutdown"
)

// ReportPatience is how long the operator waits for a report. A sidecar answers before, also beside a mysqld that hangs: a
// sidecar that is silent may vouch for another site, and a failover would wait for it.
const ReportPatience = time.Second

// GTIDTooLong stands for a set of transactions that a report has no room for. It is no set, so that nobody takes it for an empty one.
const GTIDTooLong = "too long for a report"

// Report is what a sidecar says of its site: the answer to PUT /active-site. With an epoch not below the one that
// was pushed, and MySQL seen not running or read-only, it is fence proof.
type Report struct {
	Site string `json:"site"`
	// BootID is a random name of this run of the sidecar.
	BootID string `json:"bootID"`
	PodUID string `json:"podUID,omitempty"`
	// VolumeID is the random name of the data volume, also given while MySQL is down. It differs from the one that was
	// known if the volume was replaced: then the epochs and the data that the old one held are gone.
	VolumeID string `json:"volumeID,omitempty"`
	// Epoch is the highest epoch this site has ever adopted; it is on the data volume before this report is sent.
	Epoch int64 `json:"epoch"`
	// ActiveSite is the site that Epoch names; empty if no epoch was adopted, or from a sidecar of an older version.
	ActiveSite string `json:"activeSite,omitempty"`
	// MysqldRunning is false only if no mysqld process exists in the pod.
	MysqldRunning bool `json:"mysqldRunning"`
	// Answered is true if MySQL answered SQL just now; the fields up to ServerUUID are known only then.
	Answered      bool   `json:"answered"`
	Writable      bool   `json:"writable"`
	SuperReadOnly bool   `json:"superReadOnly"`
	OfflineMode   bool   `json:"offlineMode,omitempty"`
	GTIDExecuted  string `json:"gtidExecuted,omitempty"`
	ServerUUID    string `json:"serverUUID,omitempty"`
	// PreparedXA is how many prepared XA transactions were seen last on a site that is not open. While there are any, and for a
	// while after, the site keeps its readers out.
	PreparedXA int `json:"preparedXA,omitempty"`
	// Fenced is true if MySQL was seen not to run and has not answered since. A mysqld that comes and goes in a crash loop
	// runs at times; it starts read-only every time.
	Fenced bool `json:"fenced,omitempty"`
	// SilentMillis is for how long MySQL has not answered SQL; 0 if it does.
	SilentMillis int64 `json:"silentMillis,omitempty"`

	FenceStage FenceStage `json:"fenceStage,omitempty"`
	FenceCause FenceCause `json:"fenceCause,omitempty"`
	// Message says why the site could not do what the statement asked, if so.
	Message string `json:"message,omitempty"`

	// Vouched lists, for each peer that asked, how long ago this sidecar last answered it under an epoch below Epoch.
	// A sidecar cannot know whom its previous run answered, so UptimeMillis bounds the age for peers not listed.
	Vouched      []Vouch `json:"vouched,omitempty"`
	UptimeMillis int64   `json:"uptimeMillis"`
	// LeaseMillis is for how long the site may stay open without another good exchange; a sidecar of an older version says nothing.
	LeaseMillis *int64 `json:"leaseMillis,omitempty"`

	// Keyring is set on sites with data-at-rest encryption.
	Keyring *KeyringReport `json:"keyring,omitempty"`
	// Anchor is the key that this sidecar trusts, as EncodeKey writes it: it takes what is signed with that one, or with one that a
	// chain leads to. A sidecar of an older version says nothing.
	Anchor string `json:"anchor,omitempty"`
	// Certificate is set on sites with TLS.
	Certificate *CertificateReport `json:"certificate,omitempty"`
	// WriteProbe is what comes of writing as a client does; nil while the site is not open, before the first probe, and from a
	// sidecar of an older version: then nothing is known of it.
	WriteProbe *WriteProbe `json:"writeProbe,omitempty"`
	// VolumeProbe is what came of the last write to the data volume itself; nil while the site is open, before the first one, and from a
	// sidecar of an older version.
	VolumeProbe *VolumeProbe `json:"volumeProbe,omitempty"`
	// Engines counts tables whose rows a clone does not copy; nil before they were looked for, and from a sidecar of an older version.
	Engines *EngineReport `json:"engines,omitempty"`
	// Volume is how full the data volume is; nil before it was looked at, and from a sidecar of an older version.
	Volume *VolumeUse `json:"volume,omitempty"`
	// OpenChange is how many rows the largest open transaction had changed when mysqld was last measured, within the last minute; nil if that
	// is not known, and from a sidecar of an older version.
	OpenChange *int64 `json:"openChange,omitempty"`
	// Accounts tells with which passwords the sidecar logs in; nil before it has, and from a sidecar of an older version.
	Accounts *AccountReport `json:"accounts,omitempty"`

	ObservedAt time.Time `json:"observedAt"`
}

// AccountReport tells which password the sidecar uses, and holds none.
type AccountReport struct {
	// Serial is that of the accounts Secret in the pod with whose password the sidecar has logged in.
	Serial int64 `json:"serial"`
}

// CertificateReport is what a sidecar knows of the certificate that its MySQL shows.
type CertificateReport struct {
	// NotBefore and NotAfter are those of the certificate that MySQL shows now; nil while that is not known.
	NotBefore *time.Time `json:"notBefore,omitempty"`
	NotAfter  *time.Time `json:"notAfter,omitempty"`
	// Problem says why MySQL does not show the certificate that lies in its pod; empty if it does.
	Problem string `json:"problem,omitempty"`
	// Bundle and Current are fingerprints (hexadecimal SHA-256) of ca.crt and tls.crt as MySQL took them last; empty before, and from
	// sidecars of an earlier version.
	Bundle  string `json:"bundle,omitempty"`
	Current string `json:"current,omitempty"`
	// Plain counts clients without TLS; nil before they were counted, while that fails, and from a sidecar of an older version.
	Plain *PlainReport `json:"plain,omitempty"`
}

// EngineReport counts the tables of users whose rows are outside InnoDB (MyISAM, CSV, ARCHIVE): a clone makes them empty. It
// names none, because anybody may read it.
type EngineReport struct {
	Tables int `json:"tables"`
	// WithRows are those that have rows, or of which that cannot be told.
	WithRows int `json:"withRows"`
}

// WriteOutcome is what came of the write probe.
type WriteOutcome string

// The outcomes of the write probe.
const (
	// WriteDone: the last probe committed.
	WriteDone WriteOutcome = "Done"
	// WriteFails: the last probe met what keeps clients from committing.
	WriteFails WriteOutcome = "Fails"
	// WriteUnknown: the probe itself is not able to write; it says nothing of clients.
	WriteUnknown WriteOutcome = "Unknown"
)

// Reasons of a write probe that did not commit.
const (
	WriteNoAnswer           = "NoAnswer"
	WriteOffline            = "Offline"
	WriteReadOnly           = "ReadOnly"
	WriteTooManyConnections = "TooManyConnections"
	WriteSecureTransport    = "SecureTransportRequired"
	WriteDiskFull           = "DiskFull"
	WriteDiskStalled        = "DiskStalled"
	WriteDiskFailed         = "DiskFailed"
	WriteLocked             = "Locked"
	WriteRefused            = "WriteRefused"
	WriteProbeUnable        = "ProbeUnable"
)

// Stalled says that the data volume of an open site took no write when a client's was tried last, and why: it does not answer, or returns
// errors. A full one is none of these: it answers, and clients are told.
func (p *WriteProbe) Stalled() bool {
	return p != nil && p.Outcome == WriteFails && (p.Reason == WriteDiskStalled || p.Reason == WriteDiskFailed)
}

// WriteProbe is what a site's sidecar found when it wrote as a client does: through the port of the clients, with an account
// that has no right to pass what keeps clients out.
type WriteProbe struct {
	Outcome WriteOutcome `json:"outcome"`
	// Reason says why it did not commit, one CamelCase word; Errno is the server's number of the error, if it gave one.
	Reason string `json:"reason,omitempty"`
	Errno  int    `json:"errno,omitempty"`
	// ForMillis is since when every probe has had this outcome, for whatever reason.
	ForMillis int64 `json:"forMillis"`
	// TookMillis is how long the last probe took, AgeMillis how long ago it ended.
	TookMillis int64 `json:"tookMillis"`
	AgeMillis  int64 `json:"ageMillis"`
}

// VolumeProbe is what a site's sidecar found when it wrote a little to the data volume of a site that is not open: the outcome, and the
// same reasons as of a WriteProbe.
type VolumeProbe struct {
	Outcome WriteOutcome `json:"outcome"`
	Reason  string       `json:"reason,omitempty"`
	// AgeMillis is how long ago that was.
	AgeMillis int64 `json:"ageMillis"`
	// ForMillis is since when the tries fail in an unbroken row; 0 if the last one did not, and from a sidecar of an older version.
	ForMillis int64 `json:"forMillis,omitempty"`
}

// Vouch is when a sidecar last told a peer that an older epoch stands.
type Vouch struct {
	Site      string `json:"site"`
	AgeMillis int64  `json:"ageMillis"`
}

// VouchAge is how long ago at least this sidecar last kept a site's lease alive with an epoch below its present one.
func (r Report) VouchAge(site string) time.Duration {
	age := time.Duration(r.UptimeMillis) * time.Millisecond
	for _, v := range r.Vouched {
		if v.Site == site || v.Site == "" {
			age = min(age, time.Duration(v.AgeMillis)*time.Millisecond)
		}
	}
	return age
}

// FencedUnder is true if this report proves that its site accepts no commit under any epoch below the given one, now
// or later: the sidecar has adopted the epoch durably, and MySQL does not run (it starts read-only), has not answered since
// it did not run, or is read-only.
func (r Report) FencedUnder(epoch int64) bool {
	if r.Epoch < epoch {
		return false
	}
	return !r.MysqldRunning || r.Fenced && !r.Writable || (r.Answered && r.SuperReadOnly && !r.Writable)
}
