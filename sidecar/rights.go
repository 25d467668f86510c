// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/escrow"
)

// rightsFile, in the state directory, says which rights our accounts on this volume last got. A volume of an earlier version
// has no such file.
const rightsFile = "rights"

// ready is what mysqld says once it has run its init file and takes connections.
const ready = "ready for connections"

var errNotReady = errors.New("mysqld ended before it was ready; its lines above say why")

// ensureRights gives the accounts the rights that they need, and makes the account of the write probe, if an earlier version made them
// with fewer rights or without it. It starts mysqld once without a network, fenced as ever, and ends it again: only the server itself may
// give rights to our accounts, and it does so without a transaction, so that no replica gets one of its own.
//
// An error prevents no start: the site serves as it did before, and says what it lacks.
func ensureRights(ctx context.Context, s settings, log *slog.Logger) {
	given, err := os.ReadFile(filepath.Join(s.stateDir, rightsFile))
	if err == nil && strings.TrimSpace(string(given)) == rightsDigest() {
		return
	}
	log.Info("giving the accounts of an earlier version what this one needs")
	if err := giveRights(ctx, s, log); err != nil {
		log.Error("the accounts may lack rights that encryption or the write probe needs; tried again at the next start", "error", err)
		return
	}
	if err := noteRights(s); err != nil {
		log.Error("rights were given, and given again at the next start", "error", err)
	}
}

// giveRights runs mysqld until it has run its init file.
func giveRights(ctx context.Context, s settings, log *slog.Logger) error {
	accounts, err := readAccounts(s.accountsDir)
	if err != nil {
		return err
	}
	statements, err := secretFile(strings.Join(mysql.RightsStatements(accounts, s.requireTLS), ";\n") + ";\n")
	if err != nil {
		return fmt.Errorf("hold statements: %w", err)
	}
	defer func() { _ = statements.Close() }()
	cmd := exec.CommandContext(ctx, s.mysqld, rightsArgs(s)...)
	cmd.ExtraFiles = []*os.File{statements}
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := false
	forward(output, log, func(line string) {
		if !done && strings.Contains(line, ready) {
			done = true
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	})
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("give rights: %w", err)
	}
	if !done {
		return errNotReady
	}
	return nil
}

// rightsArgs start a mysqld that no client can reach and that changes only the rights. It does not encrypt data that was never
// encrypted: no sidecar would remember the new keyring, so the data would be lost with the pod.
func rightsArgs(s settings) []string {
	args := []string{
		"--defaults-file=" + s.defaultsFile, "--init-file=/proc/self/fd/3", "--skip-networking", "--super-read-only=ON",
		"--skip-replica-start=ON", "--event-scheduler=OFF", "--innodb-buffer-pool-load-at-startup=OFF", "--innodb-buffer-pool-dump-at-shutdown=OFF",
		// Only mysqld's own line shows that it is ready, so spec.mysqlConf must not send that elsewhere or suppress it.
		"--log-error-services=log_filter_internal; log_sink_internal", "--log-error-suppression-list=", "--log-error-verbosity=2",
	}
	if s.keyring.file == "" {
		return args
	}
	if record, err := (escrow.Store{Dir: s.stateDir}).Load(); err == nil && record.Needs == "" {
		args = append(args, "--innodb-redo-log-encrypt=OFF", "--innodb-undo-log-encrypt=OFF", "--binlog-encryption=OFF")
	}
	return args
}

// rightsDigest names the rights that are given. The passwords are not part of it.
func rightsDigest() string {
	sum := sha256.Sum256([]byte(strings.Join(mysql.RightsStatements(mysql.Accounts{}, false), "\n")))
	return hex.EncodeToString(sum[:])
}

// noteRights notes on the volume that the accounts have all rights.
func noteRights(s settings) error {
	path := filepath.Join(s.stateDir, rightsFile)
	if err := os.WriteFile(path+".tmp", []byte(rightsDigest()+"\n"), 0o600); err != nil {
		return fmt.Errorf("note rights: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("note rights: %w", err)
	}
	return syncDir(s.stateDir)
}

// forgetRights makes the next start give the rights again: a clone brought the accounts of a donor that lacks them.
func forgetRights(s settings) {
	// If it cannot be removed, the next refusal tries again.
	_ = os.Remove(filepath.Join(s.stateDir, rightsFile))
}
