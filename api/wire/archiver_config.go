// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"time"
)

// EnvArchiverConfig has the configuration of `backup archive`, as the JSON of ArchiverConfig. It holds no secret.
const EnvArchiverConfig = "MFG_ARCHIVER_CONFIG"

// EnvArchiverStatus tells the sidecar in which file it finds the status of the archiver, ArchiverConfig.StatusFile; not set in a pod
// without one.
const EnvArchiverStatus = "MFG_ARCHIVER_STATUS"

// ArchiverConfig is what the program `backup archive` is told.
type ArchiverConfig struct {
	// Bucket is where the archive is, Profile the profile of backups whose storage that is.
	Bucket  BackupBucket `json:"bucket"`
	Profile string       `json:"profile"`
	// GroupUID is the group's in Kubernetes, for the owner object of the folder; Site the site of this pod.
	GroupUID string `json:"groupUID"`
	Site     string `json:"site"`
	// Recipients are age public keys; empty leaves the archive in the clear.
	Recipients []string `json:"recipients,omitempty"`
	// IntervalMillis is how often what was written is uploaded, in milliseconds, from 5,000 to 600,000.
	IntervalMillis int64 `json:"intervalMillis"`
	// OperatorURL is where GET /pitr-cutoff is asked. AuthorityKey is the public key that its answers lead back to, as ParseKey reads it.
	OperatorURL  string `json:"operatorURL"`
	AuthorityKey string `json:"authorityKey"`
	// SidecarURL is the sidecar of the same pod, on the pod's loopback address.
	SidecarURL string `json:"sidecarURL"`
	// Server is the site's own mysqld.
	Server ArchiverServer `json:"server"`
	// StatusFile takes the ArchiverStatus: it is written beside, and put in its place by rename. Its directory is in memory, of a few MiB, and
	// of the archiver alone; the sidecar can only read it. It is not the run directory, where the deadline of the fence is.
	StatusFile string `json:"statusFile"`
	// MemoryBytes is the memory limit of the container; the program stays well below it.
	MemoryBytes int64 `json:"memoryBytes"`
}

// ArchiverServer is how the archiver reaches the mysqld of its own pod.
type ArchiverServer struct {
	// Socket is a Unix socket, User the account, and PasswordFile has its password. The file is replaced when the password is: it is read
	// again for each connection.
	Socket       string `json:"socket"`
	User         string `json:"user"`
	PasswordFile string `json:"passwordFile"`
	// BinlogIndex is the index file of the binary logs, to be watched; the directory can only be read, and may hold encrypted files.
	BinlogIndex string `json:"binlogIndex"`
}

// Interval is how often what was written is uploaded.
func (c ArchiverConfig) Interval() time.Duration {
	return time.Duration(c.IntervalMillis) * time.Millisecond
}

// Text is the configuration as the program reads it.
func (c ArchiverConfig) Text() string {
	raw, err := json.Marshal(c)
	if err != nil {
		panic("impossible: strings, numbers and booleans always encode: " + err.Error())
	}
	return string(raw)
}
