// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ManifestVersion is the version that this program writes; it reads this one and all earlier ones.
const ManifestVersion = 1

// Bounds of a manifest. We never write anything beyond them.
const (
	manifestMax = 8 << 20
	partsMax    = 16
	objectsMax  = 20000
	objectMax   = 64 << 30
	dataMax     = 1 << 50
	textMax     = 64 << 10
	gtidMax     = 1 << 20
)

// Methods of a backup.
const (
	Logical  = "Logical"
	Physical = "Physical"
)

// Manifest says what a backup is and which objects it consists of. It is not encrypted, and holds nothing of the data.
type Manifest struct {
	Version   int    `json:"version"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Group     string `json:"group"`
	// GroupUID is the UID of the MysqlFailoverGroup.
	GroupUID string `json:"groupUID,omitempty"`
	Profile  string `json:"profile,omitempty"`
	Method   string `json:"method"`
	Site     string `json:"site"`
	Epoch    int64  `json:"epoch"`

	ServerUUID   string `json:"serverUUID,omitempty"`
	MySQLVersion string `json:"mysqlVersion"`
	// Tool is the program that made the copy with its version, and Operator the version of ours.
	Tool     string `json:"tool,omitempty"`
	Operator string `json:"operator,omitempty"`
	// GTIDExecuted is the set of the transactions that the backup holds.
	GTIDExecuted string `json:"gtidExecuted"`
	// DataEncrypted is true if the site's data was encrypted at rest.
	DataEncrypted bool `json:"dataEncrypted,omitempty"`
	// VolumeBytes is how much room the restored data needs, as far as that is known.
	VolumeBytes int64 `json:"volumeBytes,omitempty"`

	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`

	// Encrypted is true if every part is; Recipients are the fingerprints of the keys, any of which opens it.
	Encrypted  bool     `json:"encrypted"`
	Recipients []string `json:"recipients,omitempty"`
	Parts      []Part   `json:"parts"`
}

// Part is one stream of a backup.
type Part struct {
	Name string `json:"name"`
	// Bytes is the length of the plaintext.
	Bytes   int64    `json:"bytes"`
	Objects []Object `json:"objects"`
}

// Object is one object of a part, with its key below the folder of the backup.
type Object struct {
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// StoredBytes is how much room the backup takes in the storage.
func (m *Manifest) StoredBytes() int64 {
	var sum int64
	for _, p := range m.Parts {
		for _, o := range p.Objects {
			sum += o.Bytes
		}
	}
	return sum
}

// Part is the part of a name.
func (m *Manifest) Part(name string) (Part, bool) {
	i := slices.IndexFunc(m.Parts, func(p Part) bool { return p.Name == name })
	if i < 0 {
		return Part{}, false
	}
	return m.Parts[i], true
}

var (
	partForm        = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	attemptForm     = regexp.MustCompile(`^[0-9a-f]{16}$`)
	sumForm         = regexp.MustCompile(`^[0-9a-f]{64}$`)
	fingerprintForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// errTooNew is the error for a manifest of a later version.
var errTooNew = errors.New("the manifest is of a later version")

// ParseManifest reads a manifest strictly: unknown fields, bounds, and keys that lead elsewhere are errors.
func ParseManifest(r io.Reader) (*Manifest, error) {
	raw, err := io.ReadAll(io.LimitReader(r, manifestMax+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > manifestMax {
		return nil, fmt.Errorf("the manifest has more than %d bytes", manifestMax)
	}
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(raw, &version); err != nil {
		return nil, errors.New("the manifest is not JSON")
	}
	if version.Version > ManifestVersion {
		return nil, errTooNew
	}
	m := &Manifest{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, errors.New("the manifest has unknown fields or values of the wrong type")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the manifest")
	}
	return m, m.check()
}

func (m *Manifest) check() error {
	for _, text := range []string{m.GroupUID, m.Profile, m.Site, m.ServerUUID, m.MySQLVersion, m.Tool, m.Operator} {
		if len(text) > textMax {
			return errors.New("a text is longer than any that we write")
		}
	}
	switch {
	case m.Version < 1:
		return fmt.Errorf("version %d: there is none below 1", m.Version)
	case !nameForm.MatchString(m.Name) || !nameForm.MatchString(m.Namespace) || !nameForm.MatchString(m.Group):
		return errors.New("name, namespace or group is not a name")
	case m.Method != Logical && m.Method != Physical:
		return errors.New("the method is neither Logical nor Physical")
	case m.Epoch < 0 || m.VolumeBytes < 0 || m.VolumeBytes > dataMax:
		return errors.New("epoch or volumeBytes is out of bounds")
	case len(m.GTIDExecuted) > gtidMax:
		return errors.New("the GTID set is longer than any that we write")
	case m.StartedAt.IsZero() || m.FinishedAt.Before(m.StartedAt):
		return errors.New("it ends before it starts")
	case len(m.Parts) == 0 || len(m.Parts) > partsMax:
		return fmt.Errorf("it has %d parts, not 1 to %d", len(m.Parts), partsMax)
	case m.Encrypted != (len(m.Recipients) > 0) || len(m.Recipients) > recipientsMax:
		return errors.New("recipients do not fit encrypted")
	}
	for _, f := range m.Recipients {
		if !fingerprintForm.MatchString(f) {
			return errors.New("a recipient is not a fingerprint")
		}
	}
	return m.checkParts()
}

func (m *Manifest) checkParts() error {
	seen, attempt, objects := map[string]bool{}, "", 0
	for _, p := range m.Parts {
		if !partForm.MatchString(p.Name) || seen[p.Name] {
			return fmt.Errorf("part %.40q is no name, or is there twice", p.Name)
		}
		seen[p.Name] = true
		if objects += len(p.Objects); len(p.Objects) == 0 || objects > objectsMax {
			return errors.New("a part has no objects, or all have too many")
		}
		if p.Bytes < 0 || p.Bytes > dataMax {
			return errors.New("the length of a part is out of bounds")
		}
		for i, o := range p.Objects {
			folder, _, _ := strings.Cut(o.Key, "/")
			if attempt == "" {
				attempt = folder
			}
			switch {
			case folder != attempt || !attemptForm.MatchString(folder) || o.Key != objectKey(folder, p.Name, i):
				return fmt.Errorf("object %d of part %s has the key of another", i, p.Name)
			case o.Bytes < 0 || o.Bytes > objectMax:
				return fmt.Errorf("object %d of part %s has a length out of bounds", i, p.Name)
			case !sumForm.MatchString(o.SHA256):
				return fmt.Errorf("object %d of part %s has no digest", i, p.Name)
			}
		}
	}
	return nil
}

// objectKey is the key of the i-th object of a part, below the folder of the backup.
func objectKey(attempt, part string, i int) string {
	return fmt.Sprintf("%s/%s.%05d", attempt, part, i)
}
