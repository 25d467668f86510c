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
	// MysqldRunning is false only if no mysqld process exists in the pod.
	MysqldRunning bool `json:"mysqldRunning"`
	// Answered is true if MySQL answered SQL just now; the fields up to ServerUUID are known only then.
	Answered      bool   `json:"answered"`
	Writable      bool   `json:"writable"`
	SuperReadOnly bool   `json:"superReadOnly"`
	OfflineMode   bool   `json:"offlineMode,omitempty"`
	GTIDExecuted  string `json:"gtidExecuted,omitempty"`
	ServerUUID    string `json:"serverUUID,omitempty"`

	FenceStage FenceStage `json:"fenceStage,omitempty"`
	FenceCause FenceCause `json:"fenceCause,omitempty"`
	// Message says why the site could not do what the statement asked, if so.
	Message string `json:"message,omitempty"`

	// Vouched lists, for each peer that asked, how long ago this sidecar last answered it under an epoch below Epoch.
	// A sidecar cannot know whom its previous run answered, so UptimeMillis bounds the age for peers not listed.
	Vouched      []Vouch `json:"vouched,omitempty"`
	UptimeMillis int64   `json:"uptimeMillis"`

	ObservedAt time.Time `json:"observedAt"`
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
// or later: the sidecar has adopted the epoch durably, and MySQL does not run (it starts read-only) or is read-only.
func (r Report) FencedUnder(epoch int64) bool {
	if r.Epoch < epoch {
		return false
	}
	return !r.MysqldRunning || (r.Answered && r.SuperReadOnly && !r.Writable)
}
