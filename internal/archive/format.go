// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// FormatVersion is the version that this program writes; it reads this one and all earlier ones.
const FormatVersion = 1

// Folders and names below that of the group.
const (
	epochsFolder  = "archive/epochs"
	binlogsFolder = "archive/binlogs"
	heartbeatKey  = "archive/heartbeat.json"
	prunedKey     = "archive/pruned.json"
	manifestEnd   = ".json"
)

// Bounds of what is read. We never write anything beyond them.
const (
	// ManifestMax bounds every small object: the longest are sets of GTIDs.
	ManifestMax = 8 << 20
	gtidMax     = 2 << 20
	epochMax    = 9999999999
	logMax      = 64 << 30
	objectMax   = 72 << 30 // for data that does not compress
	textMax     = 255
	// commitMax is the end of the year 9999, in microseconds: later times cannot be written as text.
	commitMax  = 253402300799999999
	fingersMax = 16
)

// Kinds of the beginning of an epoch, as the operator gives them. Others are kept unchanged.
const (
	KindInitial   = "Initial"
	KindPlanned   = "Planned"
	KindEmergency = "Emergency"
	KindRestored  = "Restored"
)

// Epoch says how an epoch began.
type Epoch struct {
	Version int   `json:"version"`
	Epoch   int64 `json:"epoch"`
	// Site and ServerUUID are those of the site that became the active one. ServerUUID may be empty.
	Site       string    `json:"site"`
	ServerUUID string    `json:"serverUUID,omitempty"`
	PromotedAt time.Time `json:"promotedAt"`
	// Kind is what began it: Initial, Planned, Emergency and so on.
	Kind string `json:"kind,omitempty"`
	// GTIDExecuted is the set that the site had when it was opened. Unknown is true if that is not known: then the set is empty, and
	// says nothing.
	GTIDExecuted string `json:"gtidExecuted"`
	Unknown      bool   `json:"unknown,omitempty"`
}

// LogManifest is one file of the archive: a sealed log, or a segment of an open one.
type LogManifest struct {
	Version int `json:"version"`
	// Epoch, Site and ServerUUID name the folder.
	Epoch      int64  `json:"epoch"`
	Site       string `json:"site"`
	ServerUUID string `json:"serverUUID"`
	// Log is the name of the server's log. From and To are positions in it, in bytes: the file is [From, To). From is 0 if it is Sealed or
	// the first segment; then the file begins with the magic.
	Log    string `json:"log"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Sealed bool   `json:"sealed"`

	// Checksums is true if each event ends with a CRC32, as the log's format description says.
	Checksums bool `json:"checksums"`
	// GTIDs are the transactions in the file, PreviousGTIDs all that the server had executed before its first byte.
	GTIDs         string `json:"gtids"`
	PreviousGTIDs string `json:"previousGTIDs"`
	// Transactions counts them, those without a GTID too.
	Transactions int64 `json:"transactions"`
	// FirstCommit and LastCommit are the earliest and the latest original commit, in microseconds since 1970; 0 if there is none.
	FirstCommit int64 `json:"firstCommit,omitempty"`
	LastCommit  int64 `json:"lastCommit,omitempty"`
	// SeenAt is the time until which this file archives the server: every earlier commit of it is in this file or in an earlier one. It is
	// when the server was asked, or the last commit of a log that is Sealed.
	SeenAt time.Time `json:"seenAt"`

	// Object is the data as it is stored; Key is relative to the folder.
	Object bucket.Object `json:"object"`
	// Encrypted is true if the data is encrypted; Recipients are the fingerprints of the keys, any of which opens it.
	Encrypted  bool     `json:"encrypted"`
	Recipients []string `json:"recipients,omitempty"`
}

// Heartbeat says that until At nothing was written beyond what is archived.
type Heartbeat struct {
	Version    int       `json:"version"`
	Epoch      int64     `json:"epoch"`
	Site       string    `json:"site"`
	ServerUUID string    `json:"serverUUID"`
	At         time.Time `json:"at"`
	// GTIDExecuted is all that the server had executed until At, and so a subset of what is archived or was before the archive.
	GTIDExecuted string `json:"gtidExecuted"`
}

// Pruned says what was removed because a retained backup holds it. It only grows, and is written before anything is removed.
type Pruned struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	// Epoch is the epoch of the removal.
	Epoch int64 `json:"epoch"`
	// Backup is the oldest one that was retained then, Cutoff when it was made, and GTIDExecuted its set together with the earlier ones,
	// as far as they belong to the history.
	Backup       string    `json:"backup,omitempty"`
	Cutoff       time.Time `json:"cutoff"`
	GTIDExecuted string    `json:"gtidExecuted"`
}

// Log is a file of the archive with its sets read.
type Log struct {
	LogManifest
	Set      gtid.Set
	Previous gtid.Set
	// Gone is true if only the manifest is left: see Listing.Missing.
	Gone bool
}

// First and Last are the times of FirstCommit and LastCommit; zero if there are none.
func (l Log) First() time.Time { return micro(l.FirstCommit) }

// Last is the time of LastCommit.
func (l Log) Last() time.Time { return micro(l.LastCommit) }

func micro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// Name names the file for people: epoch, site, log, and where it begins if it is a segment.
func (l LogManifest) Name() string {
	return fmt.Sprintf("%s of site %s in epoch %d", l.file(), l.Site, l.Epoch)
}

// file is the name of the file in its folder, without an ending.
func (l LogManifest) file() string {
	if l.Sealed {
		return l.Log
	}
	return fmt.Sprintf("%s.%012d", l.Log, l.From)
}

func (l LogManifest) folder() string {
	return fmt.Sprintf("%s/%010d-%s-%s", binlogsFolder, l.Epoch, l.Site, l.ServerUUID)
}

// whole names the log that a file is all or a part of.
func (l LogManifest) whole() string { return l.folder() + "/" + l.Log }

func (l LogManifest) key() string { return l.folder() + "/" + l.file() + manifestEnd }

func (e Epoch) key() string { return fmt.Sprintf("%s/%010d%s", epochsFolder, e.Epoch, manifestEnd) }

var (
	siteForm   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	uuidForm   = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	logForm    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}\.[0-9]{6,10}$`)
	objectForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,240}-[0-9a-f]{16}$`)
	sumForm    = regexp.MustCompile(`^[0-9a-f]{64}$`)
	fingerForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// Number is the number of a log, which orders the logs of one server; 0 if the name has none.
func Number(log string) int64 {
	n, err := strconv.ParseInt(log[strings.LastIndexByte(log, '.')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// decode reads a small object strictly.
func decode(raw []byte, into any) error {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(raw, &version); err != nil {
		return errors.New("it is not JSON")
	}
	if version.Version > FormatVersion {
		return bucket.ErrTooNew
	}
	if version.Version < 1 {
		return errors.New("it has no version")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return errors.New("it has unknown fields or values of the wrong type")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind its end")
	}
	return nil
}

// set reads a set of GTIDs from an object.
func set(text string) (gtid.Set, error) {
	if len(text) > gtidMax {
		return gtid.Set{}, errors.New("a set of GTIDs is longer than any that we write")
	}
	return gtid.Parse(text)
}

func parseLog(raw []byte) (Log, error) {
	var l Log
	if err := decode(raw, &l.LogManifest); err != nil {
		return Log{}, err
	}
	if err := l.check(); err != nil {
		return Log{}, err
	}
	var err error
	if l.Set, err = set(l.GTIDs); err != nil {
		return Log{}, err
	}
	l.Previous, err = set(l.PreviousGTIDs)
	return l, err
}

func (l LogManifest) check() error {
	switch {
	case l.Epoch < 0 || l.Epoch > epochMax || !siteForm.MatchString(l.Site) || !uuidForm.MatchString(l.ServerUUID):
		return errors.New("epoch, site or server is none")
	case !logForm.MatchString(l.Log):
		return errors.New("the log has no name of a binary log")
	case l.From < 0 || l.To <= l.From || l.To > logMax || l.Sealed && l.From != 0:
		return errors.New("the positions are out of bounds")
	case l.Transactions < 0 || l.FirstCommit < 0 || l.LastCommit < l.FirstCommit || l.LastCommit > commitMax:
		return errors.New("the transactions or their times are out of bounds")
	case l.SeenAt.IsZero():
		return errors.New("it does not say when it was read")
	case !objectForm.MatchString(l.Object.Key) || !strings.HasPrefix(l.Object.Key, l.file()+"-"):
		return errors.New("its data has the key of another")
	case l.Object.Bytes <= 0 || l.Object.Bytes > objectMax || !sumForm.MatchString(l.Object.SHA256):
		return errors.New("the length or the digest of its data is none")
	case l.Encrypted != (len(l.Recipients) > 0) || len(l.Recipients) > fingersMax:
		return errors.New("recipients do not fit encrypted")
	}
	for _, f := range l.Recipients {
		if !fingerForm.MatchString(f) {
			return errors.New("a recipient is not a fingerprint")
		}
	}
	return nil
}

func parseEpoch(raw []byte) (Epoch, error) {
	var e Epoch
	if err := decode(raw, &e); err != nil {
		return Epoch{}, err
	}
	return e, e.check()
}

func (e Epoch) check() error {
	switch {
	case e.Epoch < 0 || e.Epoch > epochMax || !siteForm.MatchString(e.Site):
		return errors.New("epoch or site is none")
	case e.ServerUUID != "" && !uuidForm.MatchString(e.ServerUUID):
		return errors.New("the server is none")
	case len(e.Kind) > textMax:
		return errors.New("the kind is longer than any that we write")
	case e.Unknown && e.GTIDExecuted != "":
		return errors.New("a set is unknown and told")
	}
	_, err := set(e.GTIDExecuted)
	return err
}

func parseHeartbeat(raw []byte) (Heartbeat, error) {
	var h Heartbeat
	if err := decode(raw, &h); err != nil {
		return Heartbeat{}, err
	}
	return h, h.check()
}

func (h Heartbeat) check() error {
	if h.Epoch < 0 || h.Epoch > epochMax || !siteForm.MatchString(h.Site) || !uuidForm.MatchString(h.ServerUUID) || h.At.IsZero() {
		return errors.New("epoch, site, server or time is none")
	}
	_, err := set(h.GTIDExecuted)
	return err
}

func parsePruned(raw []byte) (Pruned, error) {
	var p Pruned
	if err := decode(raw, &p); err != nil {
		return Pruned{}, err
	}
	return p, p.check()
}

func (p Pruned) check() error {
	if len(p.Backup) > textMax || p.Cutoff.IsZero() || p.Epoch < 0 || p.Epoch > epochMax {
		return errors.New("epoch, backup or cutoff is none")
	}
	_, err := set(p.GTIDExecuted)
	return err
}
