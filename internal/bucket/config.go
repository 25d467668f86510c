// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Config says where the backups are, and which group they belong to. Exactly one of S3, GCS, Azure and Folder is set. It holds no secret:
// credentials are files, so that it can be passed on in an argument.
type Config struct {
	S3     *S3    `json:"s3,omitempty"`
	GCS    *GCS   `json:"gcs,omitempty"`
	Azure  *Azure `json:"azure,omitempty"`
	Folder string `json:"folder,omitempty"`
	// Prefix comes before all keys; it neither begins nor ends with a slash.
	Prefix string `json:"prefix,omitempty"`

	Namespace string `json:"namespace"`
	Group     string `json:"group"`

	// CredentialsDir is where the Secret with the credentials is mounted, with the keys of api/v1alpha1/names_backup.go.
	CredentialsDir string `json:"credentialsDir,omitempty"`
	// CAFile has the certificate authorities to check the server's certificate with. Empty: those of the system.
	CAFile string `json:"caFile,omitempty"`
}

// S3 is a bucket that speaks the protocol of Amazon S3.
type S3 struct {
	Bucket   string `json:"bucket"`
	Region   string `json:"region"`
	Endpoint string `json:"endpoint,omitempty"`
	// ForcePathStyle puts the bucket into the path. Unset: with an endpoint alone.
	ForcePathStyle *bool `json:"forcePathStyle,omitempty"`
}

// GCS is a bucket of Google Cloud Storage.
type GCS struct {
	Bucket string `json:"bucket"`
}

// Azure is a container of Azure Blob Storage.
type Azure struct {
	Container string `json:"container"`
}

// Location names the place for people: kind, bucket and folder of the group.
func (c Config) Location() string {
	place := ""
	switch {
	case c.S3 != nil:
		place = "s3://" + c.S3.Bucket
	case c.GCS != nil:
		place = "gs://" + c.GCS.Bucket
	case c.Azure != nil:
		place = "azure://" + c.Azure.Container
	default:
		place = "volume:"
	}
	return place + "/" + c.root()
}

// root is the prefix of all keys of the group, without a slash at its end.
func (c Config) root() string {
	return strings.TrimPrefix(strings.Trim(c.Prefix, "/")+"/"+c.Namespace+"/"+c.Group, "/")
}

var (
	nameForm   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	prefixForm = regexp.MustCompile(`^([A-Za-z0-9_=-][A-Za-z0-9_.=-]*(/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*)?$`)
)

func (c Config) check() error {
	places := 0
	for _, is := range []bool{c.S3 != nil, c.GCS != nil, c.Azure != nil, c.Folder != ""} {
		if is {
			places++
		}
	}
	switch {
	case places != 1:
		return fmt.Errorf("%d places for backups are configured: set exactly one of s3, gcs, azure and folder", places)
	case !nameForm.MatchString(c.Namespace) || !nameForm.MatchString(c.Group):
		return fmt.Errorf("namespace %q and group %q: both must be names as Kubernetes has them", c.Namespace, c.Group)
	case len(c.Prefix) > 256 || !prefixForm.MatchString(c.Prefix):
		return fmt.Errorf("prefix %q: use letters, digits, '_', '=', '-', '.' and '/', with nothing hidden and no slash at the ends", c.Prefix)
	}
	return nil
}

// credentialMax is far above any key; a file that is larger is something else.
const credentialMax = 64 << 10

// credential reads one key of the Secret; absent is empty.
func (c Config) credential(key string) (string, error) {
	path := filepath.Join(c.CredentialsDir, key)
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the credentials: %w", err)
	case info.Size() > credentialMax:
		return "", fmt.Errorf("the key %s of the Secret with the credentials has %d bytes: it holds something else", key, info.Size())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the credentials: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// credentials reads keys that must all be there.
func (c Config) credentials(keys ...string) ([]string, error) {
	var values []string
	for _, key := range keys {
		value, err := c.credential(key)
		if err != nil {
			return nil, err
		}
		if value == "" {
			return nil, &Error{Kind: AccessDenied, Op: "open", Detail: "the Secret with the credentials has no key " + key + ", or it is empty"}
		}
		values = append(values, value)
	}
	return values, nil
}
