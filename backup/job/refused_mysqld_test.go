// SPDX-License-Identifier: Apache-2.0

//go:build mysqld && long

package job_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// object finds an object of a backup in the storage.
func (j *job) object(name, part string) (path string) {
	j.t.Helper()
	_ = filepath.WalkDir(filepath.Join(j.dir, "bucket"), func(at string, d fs.DirEntry, _ error) error {
		if strings.HasPrefix(d.Name(), part) && strings.Contains(at, "/"+name+"/") {
			path = at
		}
		return nil
	})
	if path == "" {
		j.t.Fatalf("backup %s has no %s", name, part)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func write(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

// edit changes the manifest of a backup, and returns what puts it back.
func (j *job) edit(name string, change func(m map[string]any)) (undo func()) {
	j.t.Helper()
	path := j.object(name, "manifest.json")
	whole, m := read(j.t, path), map[string]any{}
	if err := json.Unmarshal(whole, &m); err != nil {
		j.t.Fatal(err)
	}
	change(m)
	raw, err := json.Marshal(m)
	if err != nil {
		j.t.Fatal(err)
	}
	write(j.t, path, raw)
	return func() { write(j.t, path, whole) }
}

// Backups that are not good, or not for here, each with the word for it. What can be known before is found before anything is touched; what
// shows only in the stream leaves a directory with its mark, which nobody takes for data. Each time the right one loads afterwards.
func TestBadBackups(t *testing.T) {
	s := origin(t, mysqltest.Options{})
	s.Exec(t, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, v CHAR(8))", "INSERT INTO app.t VALUES (1, 'one')")
	j := newJob(t, false).from(s)
	j.must("make")
	s.Exec(t, "UPDATE app.t SET v = 'two'")
	j.config.Backup = "nightly-2"
	j.must("make")
	j.config.Method, j.config.Backup = bucket.Physical, "copy-1"
	j.must("make")
	j.site(false)
	target := filepath.Join(j.dir, "volume", "data.restored")
	set := func(key string, value any) func() func() {
		return func() func() { return j.edit("nightly-1", func(m map[string]any) { m[key] = value }) }
	}
	cases := map[string]struct {
		backup string
		spoil  func() (undo func())
		reason terms.Reason
		code   int
		begun  bool
	}{
		"an object of another backup": {spoil: func() func() {
			a, b := j.object("nightly-1", "dump."), j.object("nightly-2", "dump.")
			whole := read(t, a)
			other := read(t, b)
			// As long as the one that it stands for, so that only its digest tells.
			other = append(other, make([]byte, max(0, len(whole)-len(other)))...)[:len(whole)]
			write(t, a, other)
			return func() { write(t, a, whole) }
		}, reason: terms.Reason(bucket.Damaged), code: terms.ExitDamaged, begun: true},
		"two objects changed places": {spoil: func() func() {
			a, b := j.object("nightly-1", "dump."), j.object("nightly-1", "facts.")
			x, y := read(t, a), read(t, b)
			write(t, a, y)
			write(t, b, x)
			return func() { write(t, a, x); write(t, b, y) }
		}, reason: terms.Reason(bucket.Damaged), code: terms.ExitDamaged},
		"an object is missing": {spoil: func() func() {
			a := j.object("nightly-1", "dump.")
			whole := read(t, a)
			if err := os.Remove(a); err != nil {
				t.Fatal(err)
			}
			return func() { write(t, a, whole) }
		}, reason: terms.Reason(bucket.Damaged), code: terms.ExitDamaged},
		"the manifest of another group": {spoil: set("group", "carts"), reason: terms.Reason(bucket.Damaged), code: terms.ExitDamaged},
		"the manifest of another backup": {spoil: func() func() {
			a := j.object("nightly-1", "manifest.json")
			whole := read(t, a)
			write(t, a, read(t, j.object("nightly-2", "manifest.json")))
			return func() { write(t, a, whole) }
		}, reason: terms.Reason(bucket.Damaged), code: terms.ExitDamaged},
		"a manifest with a field of nobody": {spoil: set("open", true), reason: terms.Reason(bucket.Damaged), code: terms.ExitDamaged},
		"another GTID set than the dump's":  {spoil: set("gtidExecuted", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"), reason: terms.Differs, code: terms.ExitDamaged, begun: true},
		"of a newer mfg":                    {spoil: set("version", 99), reason: terms.Reason(bucket.TooNew), code: terms.ExitRefused},
		"of a later MySQL":                  {spoil: set("mysqlVersion", "99.1.0"), reason: terms.VersionTooOld, code: terms.ExitRefused},
		"of a MySQL without a version":      {spoil: set("mysqlVersion", "?"), reason: terms.VersionTooOld, code: terms.ExitRefused},
		"more data than the volume holds":   {spoil: set("volumeBytes", int64(1)<<46), reason: terms.VolumeTooSmall, code: terms.ExitRefused},
		"a copy of a group that is encrypted": {backup: "copy-1", spoil: func() func() { return j.edit("copy-1", func(m map[string]any) { m["dataEncrypted"] = true }) },
			reason: terms.EncryptionMismatch, code: terms.ExitRefused},
		"names of tables are folded here": {spoil: func() func() {
			conf := filepath.Join(j.dir, "my.cnf")
			whole := read(t, conf)
			write(t, conf, append(bytes.Clone(whole), "lower_case_table_names=1\n"...))
			return func() { write(t, conf, whole) }
		}, reason: terms.SettingsMismatch, code: terms.ExitRefused},
		"no such backup": {backup: "gone", spoil: func() func() { return func() {} }, reason: terms.Reason(bucket.NotFound), code: terms.ExitStorage},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j.t = t
			for _, path := range []string{target, target + mysqld.PartialSuffix, target + ".backup"} {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
			if j.config.Backup = tc.backup; tc.backup == "" {
				j.config.Backup = "nightly-1"
			}
			undo := tc.spoil()
			j.fails("load", tc.reason, tc.code)
			undo()
			_, there := os.Stat(target)
			_, mark := os.Stat(target + mysqld.PartialSuffix)
			if tc.begun && mark != nil || !tc.begun && there == nil {
				t.Errorf("begun: %t, and the directory is there: %t, with its mark: %t", tc.begun, there == nil, mark == nil)
			}
			if tc.begun {
				j.must("load")
			}
		})
	}
}

// answers is an S3 server that has one answer to everything.
func answers(t *testing.T, status int, code string) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>it says so</Message></Error>`, code)
	}))
	t.Cleanup(s.Close)
	return s
}

// A storage that does not let anybody in is told as what it is, by a backup and by a restore. The site is not troubled for a dump that can be put
// nowhere, and no directory is made that could open empty.
func TestBadStorage(t *testing.T) {
	s := origin(t, mysqltest.Options{})
	j := newJob(t, false).from(s)
	j.site(false)
	credentials := filepath.Join(j.dir, "s3")
	if err := os.Mkdir(credentials, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"accessKeyID": "AKIATEST", "secretAccessKey": password} {
		write(t, filepath.Join(credentials, name), []byte(text))
	}
	var dial net.Dialer
	root := s.Root(t)
	for name, tc := range map[string]struct {
		status int
		code   string
		ca     bool
		want   bucket.Kind
	}{
		"wrong CA":           {status: 200, want: bucket.UntrustedTLS},
		"wrong credentials":  {status: 403, code: "SignatureDoesNotMatch", ca: true, want: bucket.AccessDenied},
		"no such bucket":     {status: 404, code: "NoSuchBucket", ca: true, want: bucket.NoSuchBucket},
		"clock skew":         {status: 403, code: "RequestTimeTooSkewed", ca: true, want: bucket.ClockSkew},
		"full, or its quota": {status: 507, code: "XMinioStorageFull", ca: true, want: bucket.Full},
	} {
		t.Run(name, func(t *testing.T) {
			j.t = t
			server := answers(t, tc.status, tc.code)
			j.config.Bucket = bucket.Config{
				S3: &bucket.S3{Bucket: "backups", Region: "us-east-1", Endpoint: server.URL}, Namespace: "shop", Group: "orders", CredentialsDir: "/srv/s3", CAFile: "/srv/ca.crt",
			}
			if tc.ca {
				write(t, filepath.Join(j.dir, "s3.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
				j.config.Bucket.CAFile = "/srv/s3.crt"
			}
			conn, err := dial.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			var before, after int
			const connections = "SELECT SUM(total_connections) FROM performance_schema.accounts WHERE user = 'mfg_backup'"
			_ = root.QueryRowContext(t.Context(), connections).Scan(&before)
			j.fails("make", terms.Reason(tc.want), terms.ExitStorage)
			_ = root.QueryRowContext(t.Context(), connections).Scan(&after)
			if before != after {
				t.Errorf("the site was asked %d times for a dump that can be put nowhere", after-before)
			}
			j.fails("load", terms.Reason(tc.want), terms.ExitStorage)
			for _, name := range []string{"data", "data.restored"} {
				if _, err := os.Stat(filepath.Join(j.dir, "volume", name)); err == nil {
					t.Errorf("%s is there", name)
				}
			}
		})
	}
}
