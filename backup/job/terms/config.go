// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Config is what a Job is told, as JSON. It holds no secret: those are files, whose paths are here.
type Config struct {
	// Bucket is where the backup is, or will be.
	Bucket bucket.Config `json:"bucket"`
	// StorageDigest tells the place of the backup from every other, also where Bucket has the same folder for two volumes. Of load alone.
	StorageDigest string `json:"storageDigest,omitempty"`
	// Backup is the name of the MysqlBackup. Load onto a site takes the newest if it is empty.
	Backup string `json:"backup,omitempty"`
	// GroupUID is the UID of the MysqlFailoverGroup; it owns the place in the bucket. Delete and sweep touch no place of another, unless it is empty.
	GroupUID string `json:"groupUID,omitempty"`
	// NotBefore is when the MysqlBackup came to be: what was stored under its name before is none of its own. Of make and delete; nil knows none.
	NotBefore *time.Time `json:"notBefore,omitempty"`
	// Profile, Site and Epoch are noted in the manifest.
	Profile string `json:"profile,omitempty"`
	Site    string `json:"site,omitempty"`
	Epoch   int64  `json:"epoch,omitempty"`
	// Method is Logical or Physical; of make alone.
	Method string `json:"method,omitempty"`
	// Recipients are the age recipients; none leaves the backup in the clear.
	Recipients []string `json:"recipients,omitempty"`
	// IdentityFile has the age identities that open the backup; of load and verify.
	IdentityFile string `json:"identityFile,omitempty"`
	// Source is the site that is copied; of make.
	Source Source `json:"source,omitzero"`
	// Server is the mysqld that is run here.
	Server Server `json:"server,omitzero"`
	// Site files of load: AccountsDir has a password file for each account of the group, as pods of MySQL have them; empty leaves the
	// accounts of the backup. RequireTLS makes accounts that have to use TLS.
	AccountsDir string `json:"accountsDir,omitempty"`
	RequireTLS  bool   `json:"requireTLS,omitempty"`
	// Query is run on the restored data, and must return a row whose first column is neither NULL, 0 nor empty; of verify.
	Query string `json:"query,omitempty"`
	// TimeoutSeconds bounds all of it; 0 means 2 h.
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
	// IdleTimeoutSeconds is for how long not a byte may go on, and the mysqld that is run here may do nothing, while a dump is read or data is
	// loaded; 0 means 30 min. Preparations, a check of what was loaded and a replay have four times as long.
	IdleTimeoutSeconds int64 `json:"idleTimeoutSeconds,omitempty"`
	// SkipCounts leaves out the row counts of a Physical backup, which read every row once.
	SkipCounts bool `json:"skipCounts,omitempty"`
	// OlderThanSeconds is how old must be what sweep removes; at least an hour.
	OlderThanSeconds int64 `json:"olderThanSeconds,omitempty"`
	// ProgressFile gets a line of JSON now and then, and ResultFile the outcome; both are optional. Lines go to the output too.
	ProgressFile string `json:"progressFile,omitempty"`
	ResultFile   string `json:"resultFile,omitempty"`
	// YieldFile, once it exists, tells the program to give way, as SIGTERM does.
	YieldFile string `json:"yieldFile,omitempty"`
	// PointInTime is where in the history of the group a load or a verification stops, beyond the backup, by the archive of binary logs.
	// Nil stops at the backup.
	PointInTime *PointInTime `json:"pointInTime,omitempty"`
	// Replay has a verification go on to the end of the archive.
	Replay bool `json:"replay,omitempty"`
}

// PointInTime is one point in the history of a group: exactly one of its fields.
type PointInTime struct {
	// Time takes all that was committed until then, to the microsecond, as the site that was open then tells the time.
	Time *time.Time `json:"time,omitempty"`
	// GTID takes all up to and with this transaction; BeforeGTID all before it.
	GTID       string `json:"gtid,omitempty"`
	BeforeGTID string `json:"beforeGTID,omitempty"`
	// BeforeFailover takes what this epoch began with; at least 2.
	BeforeFailover int64 `json:"beforeFailover,omitempty"`
	// Latest takes all that was archived.
	Latest bool `json:"latest,omitempty"`
}

// Source is the site that is copied.
type Source struct {
	Host string `json:"host"`
	Port int    `json:"port"`
	User string `json:"user"`
	// PasswordFile has the password; a newline at its end is no part of it.
	PasswordFile string `json:"passwordFile"`
	// CAFile has the certificates that the site's is checked against. Empty means without TLS, for groups that have none.
	CAFile string `json:"caFile,omitempty"`
	// LockWaitSeconds is how long the beginning of a dump may wait for statements that run on the site; 0 means 10 s.
	LockWaitSeconds int `json:"lockWaitSeconds,omitempty"`
	// ActiveHost is the site that takes writes, which is asked once for the status of its events; empty: nobody is. ActivePort 0: Port.
	ActiveHost string `json:"activeHost,omitempty"`
	ActivePort int    `json:"activePort,omitempty"`
}

// Server is how mysqld is run here: without a network.
type Server struct {
	// Dir is where its data is made: a scratch volume, or the volume of the site that is restored. It must be missing or empty, or what
	// an earlier try of this program left.
	Dir string `json:"dir"`
	// RunDir is in memory. It has the socket and what must not be on a disk.
	RunDir string `json:"runDir"`
	// TmpDir is mysqld's for large sorts; empty means RunDir.
	TmpDir string `json:"tmpDir,omitempty"`
	// DefaultsFile is the my.cnf of the site, for load; empty means mysqld's own defaults.
	DefaultsFile string `json:"defaultsFile,omitempty"`
	// KeyringFile is where the component that the pod configures has its keyring, in memory; empty without data-at-rest encryption.
	KeyringFile string `json:"keyringFile,omitempty"`
	// BufferPoolBytes is the size of InnoDB's buffer pool; 0 leaves mysqld's default of 128 MiB.
	BufferPoolBytes int64 `json:"bufferPoolBytes,omitempty"`
	// PluginDir is where mysqld's plugins are; empty means its own default.
	PluginDir string `json:"pluginDir,omitempty"`
	// StateDir is where the volume of a site has its lock, which load holds to its end; empty takes no lock.
	StateDir string `json:"stateDir,omitempty"`
}

const (
	configMax      = 256 << 10
	defaultTimeout = 2 * time.Hour
	// defaultIdleTimeout is far above what a storage that works takes for the next piece.
	defaultIdleTimeout = 30 * time.Minute
	secretMax          = 64 << 10
)

// ParseConfig reads a configuration strictly.
func ParseConfig(text []byte) (Config, error) {
	var c Config
	if len(text) > configMax {
		return c, fmt.Errorf("the configuration has %d bytes, more than %d", len(text), configMax)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("read the configuration of the backup: %w", err)
	}
	return c, nil
}

// Timeout bounds all of it.
func (c Config) Timeout() time.Duration {
	if c.TimeoutSeconds <= 0 {
		return defaultTimeout
	}
	return time.Duration(c.TimeoutSeconds) * time.Second
}

// clockSlack is by how much the clocks of two machines may differ: no storage in the network takes more.
const clockSlack = 15 * time.Minute

// IsOlder is true for a backup that was made before the MysqlBackup came to be.
func (c Config) IsOlder(m *bucket.Manifest) bool {
	return c.NotBefore != nil && m.StartedAt.Before(c.NotBefore.Add(-clockSlack))
}

// IdleTimeout is for how long nothing may go on.
func (c Config) IdleTimeout() time.Duration {
	if c.IdleTimeoutSeconds <= 0 {
		return defaultIdleTimeout
	}
	return time.Duration(c.IdleTimeoutSeconds) * time.Second
}

// Secret reads a file with a secret. Errors name the file.
func Secret(path string) (string, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, secretMax+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(raw), "\n")
	if text == "" || len(raw) > secretMax {
		return "", fmt.Errorf("%s is empty, or holds something else than a secret", path)
	}
	return text, nil
}
