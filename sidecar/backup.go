// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/agent"
	"github.com/mysql-mfg/mfg/sidecar/backup"
)

// configVariable has the configuration of a backup as JSON. It holds no secret.
const configVariable = "MFG_BACKUP_CONFIG"

// exitError has the program end with a code of its own.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("ends with code %d", int(e)) }

// backupCommand makes, loads, verifies, lists, removes or sweeps backups.
func backupCommand(ctx context.Context, args []string, stdout io.Writer, log *slog.Logger) error {
	if len(args) != 1 {
		return errUsage
	}
	config, err := backup.ParseConfig([]byte(os.Getenv(configVariable)))
	if err != nil {
		log.Error("the configuration in "+configVariable+" cannot be used", "error", err)
		return exitError(backup.ExitConfig)
	}
	p := &backup.Program{Config: config, Out: stdout, Log: log}
	if args[0] == "load" {
		return loadSite(ctx, p, log)
	}
	return exit(p.Run(ctx, args[0]))
}

func exit(code int) error {
	if code == 0 {
		return nil
	}
	return exitError(code)
}

// errNotRestored keeps an empty database from being made where a backup was to be loaded: never an open empty database.
var errNotRestored = errors.New("a backup was being loaded onto this volume and is not complete: it is loaded again by the restore; " +
	"to give the restore up, delete the volume claim of this site")

// loadSite makes the data directory of this site from a backup, as bootstrap makes an empty one: under another name until it is whole.
// A site that has its data already is left as it is.
func loadSite(ctx context.Context, p *backup.Program, log *slog.Logger) error {
	s, err := parseSettings("backup load", nil, os.Getenv)
	if err != nil {
		return err
	}
	unlock, err := agent.Lock(ctx, s.stateDir, log)
	if err != nil {
		return err
	}
	defer unlock()
	marker := filepath.Join(s.stateDir, markerFile)
	initialised, err := exists(marker)
	if err != nil {
		return fmt.Errorf("look for marker: %w", err)
	}
	if initialised {
		return checkData(s, log)
	}
	if s.keyring.file != "" {
		if _, err := prepareKeyring(s, initialised, log); err != nil {
			return err
		}
	}
	if err := mayLoad(s); err != nil {
		return err
	}
	if err := nameVolume(s); err != nil {
		return err
	}
	accounts, err := readAccounts(s.accountsDir)
	if err != nil {
		return err
	}
	p.Config.Server.Dir, p.Config.Server.DefaultsFile, p.Config.Server.KeyringFile = s.datadir+initSuffix, s.defaultsFile, s.keyring.file
	p.Restore.Statements = mysql.ReplaceAccountStatements(accounts, s.requireTLS)
	if code := p.Run(ctx, "load"); code != 0 {
		return exitError(code)
	}
	if err := markInitialised(s); err != nil {
		return err
	}
	return takeInitialised(s, log)
}

// mayLoad refuses where data might be lost. What an earlier load left is under the other name.
func mayLoad(s settings) error {
	err := mayInitialise(s)
	if errors.Is(err, errNotRestored) {
		return nil
	}
	return err
}

// loadBegan is true if a backup was being loaded onto this volume.
func loadBegan(s settings) (bool, error) {
	return exists(s.datadir + initSuffix + backup.PartialSuffix)
}
