// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/sidecar/escrow"
)

// givesRights is what the real mysqld does with an init file on an ordinary start.
const givesRights = `#!/bin/sh
trap 'exit 0' TERM
echo "$@" >> DIR/started
cat /proc/self/fd/3 > DIR/given
echo "mysqld: ready for connections. Version: 9.7.4" >&2
while :; do sleep 0.01; done
`

// grown is a volume that an earlier version initialised, of a site that is encrypted now.
func grown(t *testing.T, mysqld string) (s settings, started func() []string) {
	t.Helper()
	s = volume(t, initialises)
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.stateDir, rightsFile)); err != nil {
		t.Fatalf("a new volume has all rights: %v", err)
	}
	dir := filepath.Dir(s.datadir)
	write(t, s.mysqld, strings.ReplaceAll(mysqld, "DIR", dir), 0o700)
	s.keyring = keyringSettings{file: filepath.Join(dir, "keyring"), work: "Rotation"}
	return s, func() []string {
		raw, _ := os.ReadFile(filepath.Join(dir, "started"))
		return strings.FieldsFunc(string(raw), func(r rune) bool { return r == '\n' })
	}
}

// The accounts of an earlier version get what encryption needs, once, by a mysqld that nobody can reach.
func TestRightsAreGivenOnce(t *testing.T) {
	s, started := grown(t, givesRights)
	for range 2 {
		if _, err := boot(t, s); err != nil {
			t.Fatal(err)
		}
	}
	runs := started()
	if len(runs) != 1 {
		t.Fatalf("started %d times: %v", len(runs), runs)
	}
	for _, flag := range []string{"--skip-networking", "--super-read-only=ON", "--skip-replica-start=ON", "--event-scheduler=OFF", "--innodb-redo-log-encrypt=OFF", "--binlog-encryption=OFF", "--log-error-suppression-list="} {
		if !strings.Contains(runs[0], flag) {
			t.Errorf("without %s: %s", flag, runs[0])
		}
	}
	given, err := os.ReadFile(filepath.Join(filepath.Dir(s.datadir), "given"))
	if err != nil || !bytes.HasPrefix(given, []byte("SET SESSION sql_log_bin = 0;\n")) || !bytes.Contains(given, []byte("ENCRYPTION_KEY_ADMIN")) {
		t.Errorf("given: %s, %v", given, err)
	}
	if bytes.Contains(given, []byte("secret-of")) {
		t.Error("a password is among the statements")
	}
	// A clone brought the accounts of a donor that lacks them.
	forgetRights(s)
	if _, err := boot(t, s); err != nil || len(started()) != 2 {
		t.Errorf("after they were found missing: started %d times, %v", len(started()), err)
	}
}

// Data that is encrypted needs its settings to be read.
func TestRightsOfEncryptedData(t *testing.T) {
	s, started := grown(t, givesRights)
	write(t, s.keyring.file, keyringText("a"), 0o600)
	if err := (escrow.Store{Dir: s.stateDir}).Save(escrow.Record{Needs: "sha256:x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	if runs := started(); len(runs) != 1 || strings.Contains(runs[0], "encrypt") {
		t.Errorf("started: %v", runs)
	}
}

// What goes wrong keeps nothing from starting, and is tried again.
func TestRightsThatCannotBeGiven(t *testing.T) {
	for name, mysqld := range map[string]string{
		"a statement fails": "#!/bin/sh\necho x >> DIR/started\nexit 1\n", "it ends by itself": "#!/bin/sh\necho x >> DIR/started\nexit 0\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, started := grown(t, mysqld)
			for want := 1; want < 3; want++ {
				log, err := boot(t, s)
				if err != nil || len(started()) != want || !strings.Contains(log, "may lack rights") {
					t.Errorf("started %d times, want %d: %v\n%s", len(started()), want, err, log)
				}
			}
		})
	}
}

// A site without encryption that an earlier version made gets the account of the write probe, once, with nothing else changed.
func TestRightsWithoutEncryption(t *testing.T) {
	s, started := grown(t, givesRights)
	s.keyring = keyringSettings{}
	for range 2 {
		if _, err := boot(t, s); err != nil {
			t.Fatal(err)
		}
	}
	if runs := started(); len(runs) != 1 || strings.Contains(runs[0], "encrypt") {
		t.Errorf("started %v", runs)
	}
	given, err := os.ReadFile(filepath.Join(filepath.Dir(s.datadir), "given"))
	if err != nil || !bytes.Contains(given, []byte("CREATE USER IF NOT EXISTS 'mfg_probe'@'%'")) {
		t.Errorf("given: %s, %v", given, err)
	}
}
