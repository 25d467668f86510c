// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/volumelock"
	"github.com/mysql-mfg/mfg/sidecar/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// volume is an empty data volume, accounts, and a mysqld that initialises as the real one would.
func volume(t *testing.T, script string) settings {
	t.Helper()
	dir := t.TempDir()
	accounts := filepath.Join(dir, "accounts")
	if err := os.Mkdir(accounts, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"operator", "replication", "clone", "sidecar", "root"} {
		write(t, filepath.Join(accounts, name), "secret-of-"+name+"\n", 0o600)
	}
	mysqld := filepath.Join(dir, "mysqld")
	write(t, mysqld, "#!/bin/sh\nset -e\ndir="+dir+"\n"+script, 0o700)
	return settings{
		stateDir: filepath.Join(dir, "mfg"), datadir: filepath.Join(dir, "data"), runDir: filepath.Join(dir, "run"),
		accountsDir: accounts, defaultsFile: "/etc/mfg/my.cnf", mysqld: mysqld,
	}
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// initialises is what the real mysqld does, as far as bootstrap can see it.
const initialises = `
echo "$@" > $dir/arguments
cat /proc/self/fd/3 > $dir/statements
for a in "$@"; do case $a in --datadir=*) data=${a#--datadir=};; esac; done
mkdir $data
echo uuid > $data/auto.cnf
echo "[ERROR] [MY-000061] near 'secret-of-root'" >&2
`

func boot(t *testing.T, s settings) (string, error) {
	t.Helper()
	var log bytes.Buffer
	err := bootstrap(t.Context(), s, slog.New(slog.NewTextHandler(&log, nil)))
	return log.String(), err
}

func TestBootstrapInitialisesOnce(t *testing.T) {
	s := volume(t, initialises)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	log, err := boot(t, s)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Dir(s.datadir)
	arguments, _ := os.ReadFile(filepath.Join(base, "arguments"))
	arguments = regexp.MustCompile(`(mysqld-initialize-)\d+`).ReplaceAll(arguments, []byte("${1}N"))
	want := "--defaults-file=/etc/mfg/my.cnf --initialize-insecure --datadir=" + s.datadir + ".init --init-file=/proc/self/fd/3" +
		" --innodb-temp-tablespaces-dir=" + tmp + "/mysqld-initialize-N --innodb-temp-data-file-path=" + tmp + "/mysqld-initialize-N/ibtmp1:12M:autoextend\n"
	if diff := cmp.Diff(want, string(arguments)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", tmp, left, err)
	}
	statements, _ := os.ReadFile(filepath.Join(base, "statements"))
	if !bytes.HasPrefix(statements, []byte("SET SESSION sql_log_bin = 0;\n")) || !bytes.Contains(statements, []byte("'secret-of-sidecar'")) ||
		bytes.Contains(statements, []byte("REQUIRE SSL")) {
		t.Errorf("statements:\n%s", statements)
	}
	if strings.Contains(log, "secret-of") {
		t.Errorf("a password is in the log:\n%s", log)
	}
	// The second boot finds everything in place, and so does one after a clone.
	write(t, s.mysqld, "#!/bin/sh\nexit 1\n", 0o700)
	if _, err := boot(t, s); err != nil {
		t.Error(err)
	}
}

// The name tells the operator that a volume was replaced, so it is there before mysqld is and never changes. Volumes that
// an older sidecar initialised get one too.
func TestBootstrapNamesTheVolumeOnce(t *testing.T) {
	s := volume(t, initialises)
	name := filepath.Join(s.stateDir, "volume-id")
	names := map[string]bool{}
	for range 2 {
		if _, err := boot(t, s); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(name)
		if err != nil || len(raw) < 20 {
			t.Fatalf("%q, %v", raw, err)
		}
		names[string(raw)] = true
	}
	if len(names) != 1 {
		t.Errorf("one volume, names %v", names)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(name); err != nil || names[string(raw)] {
		t.Errorf("a volume of an older sidecar got the name %q, %v", raw, err)
	}
}

// After a power loss the run directory is still there, and the number in the lock may belong to another process.
func TestBootstrapRemovesTheSocketOfAnEarlierLife(t *testing.T) {
	s := volume(t, initialises)
	lock := filepath.Join(s.runDir, "mysqld.sock.lock")
	write(t, lock, "83\n", 0o600)
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock is still there: %v", err)
	}
}

func TestBootstrapMakesAccountsThatRequireTLS(t *testing.T) {
	s := volume(t, initialises)
	s.requireTLS = true
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	statements, _ := os.ReadFile(filepath.Join(filepath.Dir(s.datadir), "statements"))
	if !bytes.Contains(statements, []byte("REQUIRE SSL")) {
		t.Errorf("statements:\n%s", statements)
	}
}

func TestBootstrapRefusesWhatCouldLoseData(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*testing.T, settings)
		want    error
	}{
		"data of somebody else": {
			"nothing is removed that was not made here",
			func(t *testing.T, s settings) { t.Helper(); write(t, filepath.Join(s.datadir, "ibdata1"), "x", 0o600) },
			errForeignData,
		},
		"an epoch without a marker": {
			"the site had data, and it is gone",
			func(t *testing.T, s settings) {
				t.Helper()
				write(t, filepath.Join(s.stateDir, agent.StatementFile), "x", 0o600)
			},
			errStateWithoutData,
		},
		"a marker without data": {
			"an empty server would look like a healthy one",
			func(t *testing.T, s settings) { t.Helper(); write(t, filepath.Join(s.stateDir, markerFile), "", 0o600) },
			errDataLost,
		},
		"a marker and an empty directory": {
			"an empty server would look like a healthy one",
			func(t *testing.T, s settings) {
				t.Helper()
				write(t, filepath.Join(s.stateDir, markerFile), "", 0o600)
				if err := os.Mkdir(s.datadir, 0o700); err != nil {
					t.Fatal(err)
				}
			},
			errDataLost,
		},
		"data without an identity": {
			"the keyring and the history belong to the old one",
			func(t *testing.T, s settings) {
				t.Helper()
				write(t, filepath.Join(s.stateDir, markerFile), "", 0o600)
				write(t, filepath.Join(s.datadir, "ibdata1"), "x", 0o600)
			},
			errNoIdentity,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := volume(t, initialises)
			tc.prepare(t, s)
			before := tree(t, filepath.Dir(s.datadir))
			if _, err := boot(t, s); !errors.Is(err, tc.want) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			after := slices.DeleteFunc(tree(t, filepath.Dir(s.datadir)), func(p string) bool { return strings.HasSuffix(p, "sidecar.lock") })
			before = slices.DeleteFunc(before, func(p string) bool { return p == s.stateDir })
			after = slices.DeleteFunc(after, func(p string) bool { return p == s.stateDir })
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the volume was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func tree(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Wherever a first boot is cut off, the next one finishes it.
func TestBootstrapGoesOnAfterACrash(t *testing.T) {
	t.Run("during the initialisation", func(t *testing.T) {
		s := volume(t, initialises)
		write(t, filepath.Join(s.datadir+initSuffix, "half"), "x", 0o600)
		if _, err := boot(t, s); err != nil {
			t.Fatal(err)
		}
		if found, _ := exists(filepath.Join(s.datadir, "half")); found {
			t.Error("half an initialisation was taken for a whole one")
		}
	})
	t.Run("before the rename", func(t *testing.T) {
		s := volume(t, "exit 1")
		write(t, filepath.Join(s.datadir+initSuffix, "auto.cnf"), "uuid", 0o600)
		write(t, filepath.Join(s.stateDir, markerFile), "", 0o600)
		if _, err := boot(t, s); err != nil {
			t.Fatal(err)
		}
		if found, _ := exists(filepath.Join(s.datadir, "auto.cnf")); !found {
			t.Error("the initialised directory was not taken")
		}
	})
	t.Run("mysqld fails, and the next try works", func(t *testing.T) {
		s := volume(t, "exit 1")
		if _, err := boot(t, s); err == nil {
			t.Error("a failed initialisation was accepted")
		}
		if found, _ := exists(filepath.Join(s.stateDir, markerFile)); found {
			t.Error("a failed initialisation was marked as complete")
		}
		s2 := volume(t, initialises)
		s.mysqld = s2.mysqld
		if _, err := boot(t, s); err != nil {
			t.Error(err)
		}
	})
}

func TestBootstrapWaitsForTheSidecarOfAnOlderPod(t *testing.T) {
	s := volume(t, initialises)
	unlock, err := volumelock.Take(t.Context(), s.stateDir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := bootstrap(ctx, s, slog.New(slog.DiscardHandler)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if found, _ := exists(s.datadir); found {
		t.Error("the volume was touched")
	}
}

func TestBootstrapNeedsEveryPassword(t *testing.T) {
	for _, account := range []string{"clone", "root"} {
		s := volume(t, initialises)
		write(t, filepath.Join(s.accountsDir, account), "\n", 0o600)
		if _, err := boot(t, s); err == nil {
			t.Errorf("an account %s without a password", account)
		}
		if err := os.Remove(filepath.Join(s.accountsDir, account)); err != nil {
			t.Fatal(err)
		}
		if _, err := boot(t, s); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the password of %s is nowhere: %v", account, err)
		}
	}
}

// A deleted Secret of root keeps no site from starting. Only a new data directory needs its password.
func TestASiteWithDataNeedsNoPasswordOfRoot(t *testing.T) {
	s, started := grown(t, givesRights)
	if err := os.Remove(filepath.Join(s.accountsDir, "root")); err != nil {
		t.Fatal(err)
	}
	if _, err := boot(t, s); err != nil || len(started()) != 1 {
		t.Errorf("%v, rights were given %d times", err, len(started()))
	}
	if _, err := os.Stat(filepath.Join(s.stateDir, rightsFile)); err != nil {
		t.Errorf("the rights were not given: %v", err)
	}
}

func TestSettingsComeFromTheEnvironmentAndFlagsWin(t *testing.T) {
	env := map[string]string{
		"MFG_NAMESPACE": "shop", "MFG_GROUP": "orders", "MFG_SITE": "paris", "POD_IP": "10.0.0.7",
		"MFG_PEERS": "b:8090, c:8090,", "MFG_LEASE_TIMEOUT": "30s", "MFG_REQUIRE_TLS": "true",
	}
	s, err := parseSettings("run", []string{"--site", "rome", "--fence-timeout=3s"}, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if s.namespace != "shop" || s.site != "rome" || s.podIP != "10.0.0.7" || s.leaseTimeout != 30*time.Second ||
		s.fenceTimeout != 3*time.Second || s.peerCheckInterval != 2*time.Second || !s.requireTLS || s.listen != ":8090" {
		t.Errorf("got %+v", s)
	}
	if diff := cmp.Diff([]string{"b:8090", "c:8090"}, s.peers); diff != "" {
		t.Error(diff)
	}
	for text, fine := range map[string]bool{"": true, wire.EncodeKey(make([]byte, 32)): true, "key": false, "Zm9v": false} {
		s, err := parseSettings("run", []string{"--authority-key", text}, func(string) string { return "" })
		if (err == nil) != fine || fine && (len(s.authority) == 32) != (text != "") {
			t.Errorf("--authority-key %q: %v, %v", text, s.authority, err)
		}
	}
	for text, version := range map[string]int64{"": 0, "7": 7, "seven": 0} {
		s, err := parseSettings("bootstrap", nil, func(name string) string { return map[string]string{"MFG_KEYRING_SEED_VERSION": text}[name] })
		if err != nil || s.keyring.seedVersion != version {
			t.Errorf("version %q of a seed is %d: %v", text, s.keyring.seedVersion, err)
		}
	}
	if _, err := parseSettings("run", []string{"now"}, func(string) string { return "" }); err == nil {
		t.Error("an unexpected argument was accepted")
	}
	if _, err := parseSettings("run", nil, func(name string) string { return map[string]string{"MFG_LEASE_TIMEOUT": "soon"}[name] }); err == nil {
		t.Error("a duration that is none was accepted")
	}
}

func TestCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		fails  bool
		stdout string
		stderr string
	}{
		"nothing":            {nil, true, "", "usage:"},
		"something else":     {[]string{"open"}, true, "", "usage:"},
		"install nowhere":    {[]string{"install"}, true, "", "usage:"},
		"version":            {[]string{"version"}, false, "sidecar", ""},
		"run without a site": {[]string{"run", "--state-dir", t.TempDir(), "--accounts-dir", "/nowhere"}, true, "", "password"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := command(t.Context(), tc.args, &stdout, &stderr)
			if (err != nil) != tc.fails || !strings.Contains(stdout.String(), tc.stdout) || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("%v\nstdout %s\nstderr %s", err, &stdout, &stderr)
			}
		})
	}
}
