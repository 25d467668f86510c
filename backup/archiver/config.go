// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Bounds of the configuration.
const (
	configMax   = 1 << 20
	intervalMin = 5 * time.Second
	intervalMax = 10 * time.Minute
	secretMax   = 64 << 10
)

// Config is what the program is told, checked.
type Config struct {
	wire.ArchiverConfig
	place      bucket.Config
	recipients archive.Recipients
	anchor     ed25519.PublicKey
}

var siteForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ParseConfig reads the configuration strictly.
func ParseConfig(raw []byte) (Config, error) {
	var c Config
	if len(raw) == 0 || len(raw) > configMax {
		return c, errors.New("it is empty or too long")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c.ArchiverConfig); err != nil {
		return c, fmt.Errorf("it is not the JSON of a configuration: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return c, errors.New("there is something behind its end")
	}
	c.place = bucketConfig(c.Bucket)
	var err error
	if c.recipients, err = archive.ParseRecipients(c.Recipients); err != nil {
		return c, err
	}
	if c.anchor, err = wire.ParseKey(c.AuthorityKey); err != nil {
		return c, fmt.Errorf("authorityKey: %w", err)
	}
	return c, c.check()
}

func (c Config) check() error {
	switch {
	case c.GroupUID == "":
		return errors.New("groupUID is missing")
	case !siteForm.MatchString(c.Site):
		return errors.New("site is not the name of a site")
	case c.Interval() < intervalMin || c.Interval() > intervalMax:
		return fmt.Errorf("intervalMillis is %d: it must be from %d to %d", c.IntervalMillis, intervalMin.Milliseconds(), intervalMax.Milliseconds())
	case !web(c.OperatorURL) || !web(c.SidecarURL):
		return errors.New("operatorURL and sidecarURL must be URLs of http or https")
	case c.Server.User == "":
		return errors.New("server.user is missing")
	case c.MemoryBytes < 0:
		return errors.New("memoryBytes is negative")
	}
	for name, path := range map[string]string{"statusFile": c.StatusFile, "server.socket": c.Server.Socket, "server.passwordFile": c.Server.PasswordFile,
		"server.binlogIndex": c.Server.BinlogIndex} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%s must be an absolute path", name)
		}
	}
	return nil
}

func web(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// bucketConfig is the same as internal/bucket has it: a test keeps both alike.
func bucketConfig(b wire.BackupBucket) bucket.Config {
	c := bucket.Config{Folder: b.Folder, Prefix: b.Prefix, Namespace: b.Namespace, Group: b.Group, CredentialsDir: b.CredentialsDir, CAFile: b.CAFile}
	if b.S3 != nil {
		c.S3 = &bucket.S3{Bucket: b.S3.Bucket, Region: b.S3.Region, Endpoint: b.S3.Endpoint, ForcePathStyle: b.S3.ForcePathStyle}
	}
	if b.GCS != nil {
		c.GCS = &bucket.GCS{Bucket: b.GCS.Bucket}
	}
	if b.Azure != nil {
		c.Azure = &bucket.Azure{Container: b.Azure.Container}
	}
	return c
}

// password reads the account's password: for each connection, since it is replaced while the program runs.
func (c Config) password() (string, error) {
	info, err := os.Stat(c.Server.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read the password of %s: %w", c.Server.User, err)
	}
	if info.Size() > secretMax {
		return "", fmt.Errorf("the file with the password of %s holds something else", c.Server.User)
	}
	raw, err := os.ReadFile(filepath.Clean(c.Server.PasswordFile))
	if err != nil {
		return "", fmt.Errorf("read the password of %s: %w", c.Server.User, err)
	}
	text := strings.TrimRight(string(raw), "\n")
	if text == "" {
		return "", fmt.Errorf("the file with the password of %s is empty", c.Server.User)
	}
	return text, nil
}
