// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/datadir"
	"github.com/mysql-mfg/mfg/internal/volumelock"
	"github.com/mysql-mfg/mfg/sidecar/agent"
)

const (
	// markerFile, in the state directory, says that the datadir was initialised completely. From then on bootstrap
	// initialises or removes a datadir only in a wipe (keyring.go).
	markerFile = "initialized"
	// initSuffix is the ending of a datadir while it is made: under its own name a datadir is whole, or it does not exist.
	initSuffix = ".init"
)

// These errors of bootstrap ask for a person.
var (
	errDataLost = errors.New("the data volume lost its data: it was initialised once, and the data directory is empty now; " +
		"to get the data from the other sites, delete the volume claim of this site and let it be cloned again")
	errNoIdentity = errors.New("the data directory holds no auto.cnf: the server would take a new identity; " +
		"restore the file, or delete the volume claim of this site and let it be cloned again")
	errForeignData = errors.New("the data directory is not empty, and was not initialised by this program: " +
		"nothing is removed; move the data away, or use another volume")
	errStateWithoutData = errors.New("the volume remembers an epoch, but not that it was ever initialised: files were removed by hand; " +
		"delete the volume claim of this site and let it be cloned again")
)

// bootstrap makes the data directory once. It holds the lock of the volume meanwhile, so no sidecar and no bootstrap of
// an older pod works on it.
func bootstrap(ctx context.Context, s settings, log *slog.Logger) error {
	unlock, err := volumelock.Take(ctx, s.stateDir, log)
	if err != nil {
		return err
	}
	defer unlock()
	if err := removeSocket(s.runDir); err != nil {
		return err
	}
	initialised, err := isInitialised(s)
	if err != nil {
		return err
	}
	var wiping bool
	if s.keyring.file != "" {
		if wiping, err = prepareKeyring(s, initialised, log); err != nil {
			return err
		}
	}
	if initialised && !wiping {
		if err := checkData(s, log); err != nil {
			return err
		}
		ensureRights(ctx, s, log)
		return nameVolume(s)
	}
	if err := mayMake(s, wiping); err != nil {
		return err
	}
	return makeData(ctx, s, wiping, log)
}

// makeData makes an empty data directory, in place of one that is wiped if wiping.
func makeData(ctx context.Context, s settings, wiping bool, log *slog.Logger) error {
	// The name comes before the data, so that data is always on a volume with a name.
	if err := nameVolume(s); err != nil {
		return err
	}
	log.Info("initialising the data directory", "datadir", s.datadir)
	if err := os.RemoveAll(s.datadir + initSuffix); err != nil {
		return fmt.Errorf("remove what is left of an earlier try: %w", err)
	}
	if err := initialise(ctx, s, log); err != nil {
		return fmt.Errorf("initialise data directory: %w", err)
	}
	if err := markInitialised(s); err != nil {
		return err
	}
	if err := takeInitialised(s, log); err != nil || !wiping {
		return err
	}
	return endWipe(s)
}

// isInitialised is true if the volume has its data, also if a restore has just put it there.
func isInitialised(s settings) (bool, error) {
	initialised, err := exists(filepath.Join(s.stateDir, markerFile))
	if err != nil {
		return false, fmt.Errorf("look for marker: %w", err)
	}
	if initialised {
		return true, nil
	}
	return takeRestored(s)
}

// markInitialised notes what is known about a whole data directory. The marker comes before the directory gets its name: a marker
// without a datadir means that only the rename is missing.
func markInitialised(s settings) error {
	if err := errors.Join(keyringMade(s), noteRights(s)); err != nil {
		return err
	}
	if err := writeDurable(filepath.Join(s.stateDir, markerFile)); err != nil {
		return fmt.Errorf("write marker: %w", err)
	}
	return nil
}

// nameVolume makes sure that the volume has a name, so that the operator notices when the volume is replaced.
func nameVolume(s settings) error {
	_, err := agent.Store{Dir: s.stateDir}.VolumeID()
	return err
}

// removeSocket removes what an earlier mysqld of this pod left behind. After a power loss the pod keeps its volumes and
// gets new process numbers: mysqld refuses to start if the number in the lock file happens to be that of another process
// now. No mysqld of this pod runs yet.
func removeSocket(runDir string) error {
	for _, name := range []string{"mysqld.sock", "mysqld.sock.lock", "mysqld.pid"} {
		if err := os.Remove(filepath.Join(runDir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove what an earlier mysqld left: %w", err)
		}
	}
	return nil
}

// mayInitialise returns an error if an initialisation could lose data.
func mayInitialise(s settings) error {
	empty, err := emptyOrMissing(s.datadir)
	if err != nil {
		return fmt.Errorf("look at data directory: %w", err)
	}
	if !empty {
		return errForeignData
	}
	if kept, err := exists(filepath.Join(s.stateDir, agent.StatementFile)); err != nil || kept {
		return errors.Join(err, errStateWithoutData)
	}
	return nil
}

// checkData refuses to start mysqld on a volume that does not match its marker.
func checkData(s settings, log *slog.Logger) error {
	if whole, err := restoredWhole(s); err != nil || whole {
		return errors.Join(err, takeDirectory(s, restoredSuffix, log))
	}
	if whole, err := exists(filepath.Join(s.datadir+initSuffix, "auto.cnf")); err != nil || whole {
		return errors.Join(err, takeInitialised(s, log))
	}
	empty, err := emptyOrMissing(s.datadir)
	if err != nil {
		return fmt.Errorf("look at data directory: %w", err)
	}
	if empty {
		return errDataLost
	}
	if found, err := exists(filepath.Join(s.datadir, "auto.cnf")); err != nil || !found {
		return errors.Join(err, errNoIdentity)
	}
	log.Info("the data directory is initialised", "datadir", s.datadir)
	return nil
}

// takeInitialised gives the whole datadir its name. The rename replaces an empty directory of that name, and no other one.
func takeInitialised(s settings, log *slog.Logger) error { return takeDirectory(s, initSuffix, log) }

func takeDirectory(s settings, suffix string, log *slog.Logger) error {
	if err := os.Rename(s.datadir+suffix, s.datadir); err != nil {
		return fmt.Errorf("take the initialised data directory: %w", err)
	}
	if err := syncDir(filepath.Dir(s.datadir)); err != nil {
		return fmt.Errorf("take the initialised data directory: %w", err)
	}
	log.Info("the data directory was initialised", "datadir", s.datadir)
	return nil
}

// initialise runs mysqld --initialize with the statements that make the accounts. Status 0 proves that all of it
// happened.
func initialise(ctx context.Context, s settings, log *slog.Logger) error {
	accounts, err := readAccounts(s.accountsDir)
	if err != nil {
		return err
	}
	// Nothing else needs it: a site that has its data starts without.
	if accounts.Root, err = readPassword(s.accountsDir, "root"); err != nil {
		return fmt.Errorf("%w: is Secret mysql-%s-root there, and not empty?", err, s.group)
	}
	statements, err := secretFile(strings.Join(append(initStatements(s, accounts), applicationStatements(s.accountsDir, log)...), ";\n") + ";\n")
	if err != nil {
		return fmt.Errorf("hold account statements: %w", err)
	}
	defer func() { _ = statements.Close() }()
	tablespaces, remove, err := datadir.ForInitialize(os.TempDir())
	if err != nil {
		return err
	}
	defer func() { _ = remove() }() // if that fails, the next try removes it
	cmd := exec.CommandContext(ctx, s.mysqld, append([]string{"--defaults-file=" + s.defaultsFile, "--initialize-insecure",
		"--datadir=" + s.datadir + initSuffix, "--init-file=/proc/self/fd/3"}, tablespaces...)...)
	cmd.ExtraFiles = []*os.File{statements}
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	forward(output, log, nil)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s --initialize-insecure: %w; the lines of mysqld above say why", s.mysqld, err)
	}
	return syncTree(s.datadir + initSuffix)
}

// forward logs what mysqld says, and passes each line to seen if that is not nil. It withholds mysqld's line about a statement of
// the init file that failed, because the line quotes it with its passwords.
func forward(from io.Reader, log *slog.Logger, seen func(line string)) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.Contains(line, "MY-000061") {
			line = "MY-000061: a statement that makes the accounts failed (text withheld)"
		}
		log.Info("mysqld says", "line", line)
		if seen != nil {
			seen(line)
		}
	}
	// Output that is left unread must not block mysqld.
	_, _ = io.Copy(io.Discard, from)
}

// secretFile holds text in memory only, for a child that opens /proc/self/fd/3.
func secretFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("statements", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "statements")
	if _, err := f.WriteString(text); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readAccounts reads the passwords of our accounts, of which root is none.
func readAccounts(dir string) (a mysql.Accounts, err error) {
	for name, into := range map[string]*string{"operator": &a.Operator, "replication": &a.Replication, "clone": &a.Clone, "sidecar": &a.Sidecar} {
		if *into, err = readPassword(dir, name); err != nil {
			return mysql.Accounts{}, err
		}
	}
	return a, nil
}

func readPassword(dir, name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("read password of %s: %w", name, err)
	}
	password := strings.TrimRight(string(raw), "\n")
	if password == "" {
		return "", fmt.Errorf("read password of %s: it is empty", name)
	}
	return password, nil
}
