// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// EnvBackupConfig has the configuration of the program `backup`, as the JSON of BackupConfig. It holds no secret.
const EnvBackupConfig = "MFG_BACKUP_CONFIG"

// BackupConfig is what the program `backup` is told. backup/job/terms.Config reads it, and says what each field means; it is written down here
// a second time so that the operator does not take in the libraries of object storage. A test in backup/job/terms keeps both alike.
type BackupConfig struct {
	// IdleTimeoutSeconds is left to the program by the operator.
	IdleTimeoutSeconds int64 `json:"idleTimeoutSeconds,omitempty"`

	Bucket           BackupBucket `json:"bucket"`
	StorageDigest    string       `json:"storageDigest,omitempty"`
	Backup           string       `json:"backup,omitempty"`
	GroupUID         string       `json:"groupUID,omitempty"`
	NotBefore        *time.Time   `json:"notBefore,omitempty"`
	Profile          string       `json:"profile,omitempty"`
	Site             string       `json:"site,omitempty"`
	Epoch            int64        `json:"epoch,omitempty"`
	Method           string       `json:"method,omitempty"`
	Recipients       []string     `json:"recipients,omitempty"`
	IdentityFile     string       `json:"identityFile,omitempty"`
	Source           BackupSource `json:"source,omitzero"`
	Server           BackupServer `json:"server,omitzero"`
	AccountsDir      string       `json:"accountsDir,omitempty"`
	RequireTLS       bool         `json:"requireTLS,omitempty"`
	Query            string       `json:"query,omitempty"`
	TimeoutSeconds   int64        `json:"timeoutSeconds,omitempty"`
	SkipCounts       bool         `json:"skipCounts,omitempty"`
	OlderThanSeconds int64        `json:"olderThanSeconds,omitempty"`
	ProgressFile     string       `json:"progressFile,omitempty"`
	ResultFile       string       `json:"resultFile,omitempty"`
	YieldFile        string       `json:"yieldFile,omitempty"`

	PointInTime *BackupPointInTime `json:"pointInTime,omitempty"`
	Replay      bool               `json:"replay,omitempty"`
}

// BackupPointInTime is where in the history of a group a load stops, beyond the backup: exactly one of its fields.
type BackupPointInTime struct {
	Time           *time.Time `json:"time,omitempty"`
	GTID           string     `json:"gtid,omitempty"`
	BeforeGTID     string     `json:"beforeGTID,omitempty"`
	BeforeFailover int64      `json:"beforeFailover,omitempty"`
	Latest         bool       `json:"latest,omitempty"`
}

// BackupBucket is where the backups of one group are: internal/bucket.Config.
type BackupBucket struct {
	S3             *BackupS3    `json:"s3,omitempty"`
	GCS            *BackupGCS   `json:"gcs,omitempty"`
	Azure          *BackupAzure `json:"azure,omitempty"`
	Folder         string       `json:"folder,omitempty"`
	Prefix         string       `json:"prefix,omitempty"`
	Namespace      string       `json:"namespace"`
	Group          string       `json:"group"`
	CredentialsDir string       `json:"credentialsDir,omitempty"`
	CAFile         string       `json:"caFile,omitempty"`
}

// BackupS3 is a bucket that is reached by the protocol of Amazon S3.
type BackupS3 struct {
	Bucket         string `json:"bucket"`
	Region         string `json:"region"`
	Endpoint       string `json:"endpoint,omitempty"`
	ForcePathStyle *bool  `json:"forcePathStyle,omitempty"`
}

// BackupGCS is a bucket of Google Cloud Storage.
type BackupGCS struct {
	Bucket string `json:"bucket"`
}

// BackupAzure is a container of Azure Blob Storage.
type BackupAzure struct {
	Container string `json:"container"`
}

// BackupSource is the site that is copied.
type BackupSource struct {
	Host            string `json:"host"`
	Port            int    `json:"port"`
	User            string `json:"user"`
	PasswordFile    string `json:"passwordFile"`
	CAFile          string `json:"caFile,omitempty"`
	LockWaitSeconds int    `json:"lockWaitSeconds,omitempty"`
	ActiveHost      string `json:"activeHost,omitempty"`
	ActivePort      int    `json:"activePort,omitempty"`
}

// BackupServer is the mysqld that the program runs.
type BackupServer struct {
	Dir             string `json:"dir"`
	RunDir          string `json:"runDir"`
	TmpDir          string `json:"tmpDir,omitempty"`
	DefaultsFile    string `json:"defaultsFile,omitempty"`
	KeyringFile     string `json:"keyringFile,omitempty"`
	BufferPoolBytes int64  `json:"bufferPoolBytes,omitempty"`
	PluginDir       string `json:"pluginDir,omitempty"`
	StateDir        string `json:"stateDir,omitempty"`
}

// Text is the configuration as the program reads it.
func (c BackupConfig) Text() string {
	raw, err := json.Marshal(c)
	if err != nil {
		panic("impossible: strings, numbers and booleans always encode: " + err.Error())
	}
	return string(raw)
}

// BackupResult is the outcome in the termination message of the program's container: backup/job/terms.Result.
type BackupResult struct {
	Reason         string   `json:"reason"`
	Message        string   `json:"message,omitempty"`
	Backup         string   `json:"backup,omitempty"`
	Method         string   `json:"method,omitempty"`
	GTIDExecuted   string   `json:"gtidExecuted,omitempty"`
	MySQLVersion   string   `json:"mysqlVersion,omitempty"`
	Encrypted      bool     `json:"encrypted,omitempty"`
	Bytes          int64    `json:"bytes,omitempty"`
	StoredBytes    int64    `json:"storedBytes,omitempty"`
	Tables         int      `json:"tables,omitempty"`
	Rows           int64    `json:"rows,omitempty"`
	Seconds        float64  `json:"seconds"`
	RestoreSeconds float64  `json:"restoreSeconds,omitempty"`
	Warnings       []string `json:"warnings,omitempty"`
	ManifestRead   bool     `json:"manifestRead,omitempty"`
	Removed        int      `json:"removed,omitempty"`

	ReplayedTo    *time.Time `json:"replayedTo,omitempty"`
	Replayed      int64      `json:"replayed,omitempty"`
	ReplaySeconds float64    `json:"replaySeconds,omitempty"`
}

// BackupSucceeded is the reason of a result that is no failure.
const BackupSucceeded = "Succeeded"

// BackupProgress is one line of the program's output: backup/job/terms.Progress.
type BackupProgress struct {
	Time    time.Time     `json:"time"`
	Phase   string        `json:"phase"`
	Bytes   int64         `json:"bytes,omitempty"`
	Total   int64         `json:"total,omitempty"`
	Stored  int64         `json:"stored,omitempty"`
	Percent int           `json:"percent"`
	Result  *BackupResult `json:"result,omitempty"`
}

const (
	backupResultMax  = 4096 // that of a termination message
	backupReasonMax  = 64
	backupMessageMax = 1100
	backupNameMax    = 63
)

var errNoBackupResult = errors.New("what the container left is not the outcome of a backup")

// ParseBackupResult reads a termination message. Anybody who can run a program in the pod may have written it: what comes back is bounded,
// printable text on one line.
func ParseBackupResult(text string) (BackupResult, error) {
	var r BackupResult
	if len(text) > backupResultMax || json.Unmarshal([]byte(text), &r) != nil || !word(r.Reason) || r.Seconds < 0 || r.RestoreSeconds < 0 ||
		len(r.Backup) > backupNameMax || r.Bytes < 0 || r.StoredBytes < 0 || r.Tables < 0 || r.Rows < 0 || r.Removed < 0 || r.Replayed < 0 || r.ReplaySeconds < 0 {
		return BackupResult{}, errNoBackupResult
	}
	r.Message, r.GTIDExecuted, r.MySQLVersion = line(r.Message, backupMessageMax), line(r.GTIDExecuted, backupResultMax), line(r.MySQLVersion, backupReasonMax)
	r.Backup, r.Method = line(r.Backup, backupNameMax), line(r.Method, backupReasonMax)
	for i, warning := range r.Warnings {
		r.Warnings[i] = line(warning, backupMessageMax)
	}
	return r, nil
}

// word is true for one CamelCase word, as a reason of a condition must be.
func word(s string) bool {
	if s == "" || len(s) > backupReasonMax || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	for _, c := range s {
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// line is text on one line, of at most so many bytes, without control characters.
func line(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
