// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

func good(t *testing.T) wire.ArchiverConfig {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	path := true
	return wire.ArchiverConfig{
		Bucket: wire.BackupBucket{S3: &wire.BackupS3{Bucket: "b", Region: "r", Endpoint: "https://s3", ForcePathStyle: &path}, Prefix: "p/q", Namespace: "shop",
			Group: "orders", CredentialsDir: "/c", CAFile: "/ca"},
		GroupUID: "uid", Site: "a", IntervalMillis: 30000, OperatorURL: "http://operator:8082", AuthorityKey: base64.StdEncoding.EncodeToString(public),
		SidecarURL: "http://127.0.0.1:8090", Server: wire.ArchiverServer{Socket: "/s", User: "u", PasswordFile: "/p", BinlogIndex: "/i"}, StatusFile: "/f",
	}
}

// Every place that the operator can name is the same to internal/bucket.
func TestThePlaceIsTheSame(t *testing.T) {
	c := good(t)
	for name, b := range map[string]wire.BackupBucket{
		"s3": c.Bucket, "gcs": {GCS: &wire.BackupGCS{Bucket: "b"}, Namespace: "n", Group: "g"}, "azure": {Azure: &wire.BackupAzure{Container: "c"}, Namespace: "n", Group: "g"},
		"folder": {Folder: "/f", Namespace: "n", Group: "g"},
	} {
		theirs, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := json.Marshal(bucketConfig(b))
		if err != nil || string(ours) != string(theirs) {
			t.Errorf("%s: %s became %s: %v", name, theirs, ours, err)
		}
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	if _, err := ParseConfig([]byte(good(t).Text())); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*wire.ArchiverConfig){
		"no group": func(c *wire.ArchiverConfig) { c.GroupUID = "" }, "no site": func(c *wire.ArchiverConfig) { c.Site = "A b" },
		"too often": func(c *wire.ArchiverConfig) { c.IntervalMillis = 4999 }, "too seldom": func(c *wire.ArchiverConfig) { c.IntervalMillis = 600001 },
		"a file for the operator": func(c *wire.ArchiverConfig) { c.OperatorURL = "file:///etc/passwd" }, "no sidecar": func(c *wire.ArchiverConfig) { c.SidecarURL = "" },
		"no key": func(c *wire.ArchiverConfig) { c.AuthorityKey = "" }, "no user": func(c *wire.ArchiverConfig) { c.Server.User = "" },
		"a relative socket": func(c *wire.ArchiverConfig) { c.Server.Socket = "s" }, "no status": func(c *wire.ArchiverConfig) { c.StatusFile = "" },
		"a recipient that is none": func(c *wire.ArchiverConfig) { c.Recipients = []string{"age1x"} }, "memory": func(c *wire.ArchiverConfig) { c.MemoryBytes = -1 },
	} {
		c := good(t)
		change(&c)
		if _, err := ParseConfig([]byte(c.Text())); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "x", "unknown fields": `{"x":1}`, "two": good(t).Text() + "{}", "very much": strings.Repeat(" ", configMax+1),
	} {
		if _, err := ParseConfig([]byte(text)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
