// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/agent"
	"github.com/mysql-mfg/mfg/sidecar/escrow"
)

// wipingFile, in the state directory, says that bootstrap is giving up the data directory, because its keyring is lost, and
// makes a fresh one in its place. The file stays until that is done, through crashes.
const wipingFile = "wiping"

// The kinds of work that write a keyring.
const (
	workBootstrap = "Bootstrap"
	workClone     = "Clone"
	workRotation  = "Rotation"
)

// These errors of the keyring end the pod's start. They go into the pod's termination message; none holds anything of a
// keyring's content.
var (
	errSealedAbsent = errors.New("the keyring is sealed, and it is not a whole keyring: look at the escrow Secret that is projected into this pod")
	errSealedEmpty  = errors.New("the keyring is sealed, and " + wire.MarkNoData + ": to make a data directory the site must be unsealed; " +
		"order a reclone of the site")
	errSeedMissing = errors.New(wire.MarkNoSeed + " is missing: look at the escrow Secret of this site; mysqld is not started without it")
	errSeedDigest  = errors.New(wire.MarkNoSeed + " has another digest than it should: look at the escrow Secret of this site; mysqld is not started with it")
	errSeedBroken  = errors.New(wire.MarkNoSeed + " is not a whole keyring: look at the escrow Secret of this site")
	errKeyringLost = errors.New(wire.MarkKeyringLost + " is lost: it was in memory only; order a reclone of the site")
	errStored      = errors.New(wire.MarkKeyringLost + " is in escrow, and this pod does not start from it: the operator has it start from there; " +
		"if that escrow Secret is gone too, order a reclone of the site that gives its data up (SITE:confirm)")
	errMayHold = errors.New(wire.MarkKeyringLost + " is lost, and the data may hold what was acknowledged: nothing is removed without a person's word; " +
		"order a reclone of the site that gives its data up (SITE:confirm)")
	errPlainData = errors.New(wire.MarkPlainData + ", and no person has accepted that it is encrypted in part: nothing was changed; accept it with the annotation " +
		"encryption-adopt=confirm of the group, or have it on another volume")
	errNoKeyring = errors.New("mysqld made a data directory without a keyring: is mysqldDir and pluginDir of spec.encryptionAtRest.keyring where the image has them?")
)

// prepareKeyring makes sure that mysqld starts with the keyring that the data needs, or not at all. It may give up a data
// directory whose keyring is lost. initialised is true if there is a data directory.
func prepareKeyring(s settings, initialised bool, log *slog.Logger) (wiping bool, err error) {
	wiping, err = exists(filepath.Join(s.stateDir, wipingFile))
	if err != nil {
		return false, fmt.Errorf("look for mark of a wipe: %w", err)
	}
	if s.keyring.sealed {
		return false, checkSealed(s, initialised && !wiping)
	}
	if wiping || !initialised {
		// No data needs a keyring that an earlier try left there.
		if err := freshKeyring(s); err != nil {
			return false, err
		}
		return wiping, wipeIf(s, wiping, log)
	}
	lost, err := takeKeyring(s, log)
	if err != nil || !lost {
		return false, err
	}
	if err := mayWipe(s); err != nil {
		return false, err
	}
	log.Warn("the keyring that the data needs is lost, and the data may go: giving up the data directory",
		"work", s.keyring.work, "round", s.keyring.round)
	if err := writeDurable(filepath.Join(s.stateDir, wipingFile)); err != nil {
		return false, fmt.Errorf("mark the wipe: %w", err)
	}
	if err := freshKeyring(s); err != nil {
		return false, err
	}
	return true, wipeIf(s, true, log)
}

// checkSealed refuses to start mysqld without a keyring, and to make data: in the sealed state MySQL can make no keys.
func checkSealed(s settings, initialised bool) error {
	if !initialised {
		return errSealedEmpty
	}
	look, err := escrow.LookAt(s.keyring.file)
	if err != nil {
		return err
	}
	if !look.Whole() {
		return errSealedAbsent
	}
	// A digest other than the one last seen with the data is a roll-back, which a person decides: if that keyring does not
	// open the data, mysqld does not start, and nothing is lost.
	return nil
}

// freshKeyring removes the keyring file and its copy, and puts the seed in their place if there is one.
func freshKeyring(s settings) error {
	for _, path := range []string{s.keyring.file, s.keyring.file + ".backup"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove what is left of a keyring: %w", err)
		}
	}
	if s.keyring.seed == "" {
		return nil
	}
	return plant(s)
}

// plant copies the seed. mysqld never sees a part of it.
func plant(s settings) error {
	look, err := escrow.LookAt(s.keyring.seed)
	switch {
	case err != nil:
		return err
	case !look.Exists():
		return errSeedMissing
	case look.Digest != s.keyring.seedDigest:
		return errSeedDigest
	case !look.Whole():
		return errSeedBroken
	}
	content, err := os.ReadFile(s.keyring.seed)
	if err != nil {
		return fmt.Errorf("read keyring to start from: %w", err)
	}
	if wire.KeyringDigest(content) != s.keyring.seedDigest {
		return errSeedDigest
	}
	partial := s.keyring.file + ".seed"
	if err := os.WriteFile(partial, content, 0o600); err != nil {
		return fmt.Errorf("write keyring: %w", err)
	}
	if err := os.Rename(partial, s.keyring.file); err != nil {
		return fmt.Errorf("write keyring: %w", err)
	}
	return nil
}

// takeKeyring puts the keyring that the data needs in its place, or says that it is lost; then it has changed nothing. A
// keyring that is already there is newer than any seed: the containers of this pod have started again.
func takeKeyring(s settings, log *slog.Logger) (lost bool, err error) {
	record, err := escrow.Store{Dir: s.stateDir}.Load()
	if err != nil {
		return false, err
	}
	look, err := escrow.LookAt(s.keyring.file)
	if err != nil {
		return false, err
	}
	if look.Whole() || errors.Is(look.Flaw, escrow.ErrBackup) {
		// If mysqld died while it was writing the keyring, it uses the copy at its next start.
		log.Info("the keyring is there", "digest", look.Digest)
		return false, nil
	}
	if look.Exists() {
		log.Warn("what lies in the keyring's place is none; it is not used", "flaw", look.Flaw.Error())
	}
	if record.Needs == "" && s.keyring.work == workBootstrap && !s.keyring.acceptPlain {
		// The operator takes this volume for a new one. Part of its data would be encrypted, and the key to that part lost with the pod.
		return false, errPlainData
	}
	// Data that was never seen with a keyring needs none: encryption is being switched on now.
	if record.Needs != "" && (s.keyring.seed == "" || record.Needs != s.keyring.seedDigest && !isOvertaken(s, record)) {
		return true, nil
	}
	log.Info("the keyring is taken from escrow, if it is there", "digest", s.keyring.seedDigest)
	if err := beginRound(s, record); err != nil {
		return false, err
	}
	return false, freshKeyring(s)
}

// isOvertaken is true if the seed of a rotation went into escrow after all that the record tells of, and the record tells of no keyring
// that was in memory only: a full volume takes no more notes. Then mysqld decides. Without the keys that the data needs it does not
// start, and the operator gives such a site up, which it does for a rotation alone. An earlier version is not tried: by the record it is
// the wrong one, and the record would be written over with it.
func isOvertaken(s settings, record escrow.Record) bool {
	return s.keyring.work == workRotation && record.Needs == record.Escrowed && s.keyring.seedVersion > record.Version
}

// beginRound notes, before there is a fresh keyring, that data older than its encryption gets one: the data that a clone brings in
// this round must not pass for the data that was there when the round was ordered.
func beginRound(s settings, record escrow.Record) error {
	if s.keyring.seed != "" || s.keyring.round == record.Round {
		return nil
	}
	record.Round = s.keyring.round
	return escrow.Store{Dir: s.stateDir}.Save(record)
}

// ordered is true if the operator gave up the data that was there when this round of work began: it has no keyring that opens it, and
// either a person ordered new data, or the keys were lost in a rotation. The order does not cover data made in this round: it stays
// in the pod until the site is sealed, and by then that data may be the last copy. A pod that does not know its round has no such
// order.
func ordered(s settings, record escrow.Record) bool {
	return s.keyring.work == workClone && s.keyring.seed == "" && s.keyring.round != "" && s.keyring.round != record.Round
}

// mayWipe says whether bootstrap may give up a data directory without its keyring. Only work that fills it again may do so, and
// only by order (I14), or if nothing in it was ever acknowledged, which I16 ensures for every keyring that was not in escrow.
func mayWipe(s settings) error {
	record, err := escrow.Store{Dir: s.stateDir}.Load()
	if err != nil {
		return err
	}
	switch {
	case s.keyring.work != workBootstrap && s.keyring.work != workClone:
		// A rotation: the site has to be cloned again, which a reclone order does and not this start.
		return errKeyringLost
	case ordered(s, record):
		return nil
	case record.Needs == record.Escrowed:
		// It is not lost: the operator has it, and will make the pod start from it.
		return fmt.Errorf("%w: it has the digest %s", errStored, record.Escrowed)
	case s.keyring.work == workBootstrap && !record.Made:
		// The data is older than its encryption: it served clients before.
		return errMayHold
	case record.Made && record.Escrowed == "":
		// No keyring of this data was ever in escrow, so it was never open.
		return nil
	}
	// Earlier keyrings were in escrow, so the site may have been open. If the newest statement names it, it may have data that
	// no other site has. A statement that cannot be read may be such a one.
	kept, _, err := agent.Store{Dir: s.stateDir}.Load(func(wire.Signed) (wire.Statement, error) {
		return wire.Statement{}, errors.New("not verified here")
	})
	if err != nil {
		return err
	}
	if kept.Statement.ActiveSite == s.site {
		return errMayHold
	}
	return nil
}

// wipeIf removes the data directory if it is marked. The statement stays, so the site keeps its epoch (I5); the volume
// gets a new name, so the operator sees that what it knew about the site's data no longer holds.
func wipeIf(s settings, wiping bool, log *slog.Logger) error {
	if !wiping {
		return nil
	}
	log.Warn("removing the data directory", "datadir", s.datadir)
	if err := (agent.Store{Dir: s.stateDir}).ForgetVolumeID(); err != nil {
		return err
	}
	if err := (escrow.Store{Dir: s.stateDir}).Remove(); err != nil {
		return err
	}
	for _, path := range []string{filepath.Join(s.stateDir, markerFile), s.datadir + initSuffix, s.datadir} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove data directory: %w", err)
		}
	}
	return errors.Join(syncDir(s.stateDir), syncDir(filepath.Dir(s.datadir)))
}

// keyringMade notes which keyring the new data directory needs; without a keyring, nothing in it is encrypted. It comes
// before the marker, so that existing data always has its record.
func keyringMade(s settings) error {
	if s.keyring.file == "" {
		return nil
	}
	look, err := escrow.LookAt(s.keyring.file)
	if err != nil {
		return err
	}
	if !look.Whole() {
		return errors.Join(errNoKeyring, look.Flaw)
	}
	return escrow.Store{Dir: s.stateDir}.Save(escrow.Record{Needs: look.Digest, Made: true, Round: s.keyring.round})
}

// endWipe removes the mark once the new data directory is there.
func endWipe(s settings) error {
	if err := os.Remove(filepath.Join(s.stateDir, wipingFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove mark of the wipe: %w", err)
	}
	return syncDir(s.stateDir)
}

// initStatements are the statements that mysqld runs while it makes the data directory.
func initStatements(s settings, accounts mysql.Accounts) []string {
	statements := mysql.AccountStatements(accounts, s.requireTLS)
	if s.keyring.file != "" && s.keyring.coverSystem {
		// Here they make no transaction, and no part of the data dictionary was ever unencrypted.
		statements = append(statements, mysql.EncryptionStatements()...)
	}
	return statements
}

// terminationLog is where the kubelet reads why a container ended.
const terminationLog = "/dev/termination-log"

// tellKubelet writes why an encrypted site's bootstrap failed to where `kubectl describe` shows it. Best effort.
func tellKubelet(path string, s settings, err error) {
	if err == nil || s.keyring.file == "" {
		return
	}
	f, _ := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	_, _ = f.WriteString(err.Error()) // does nothing if there is no such file
	_ = f.Close()
}

// watchKeyring makes the agent of an encrypted site's keyring; nil without one. It has connections of its own: a question
// about a thousand tables must not hold up a look or a fence. The caller sets its Open.
func watchKeyring(s settings, procs agent.Procfs, log *slog.Logger) (*escrow.Agent, func(), error) {
	if s.keyring.file == "" {
		return nil, func() {}, nil
	}
	db, err := openMySQL(s, "mfg sidecar (keyring)")
	if err != nil {
		return nil, nil, err
	}
	config := keyringConfig(s, procs)
	config.MySQL, config.Log = db, log
	return escrow.New(config), func() { _ = db.Close() }, nil
}

// keyringConfig is the configuration of the keyring's agent, without its connection and its log. A sealed pod pushes nothing (I18).
func keyringConfig(s settings, procs agent.Procfs) escrow.Config {
	config := escrow.Config{
		Namespace: s.namespace, Group: s.group, Site: s.site, PodUID: s.podUID,
		File: s.keyring.file, Sealed: s.keyring.sealed, Round: s.keyring.round, Datadir: s.datadir, CoverSystem: s.keyring.coverSystem,
		Record: escrow.Store{Dir: s.stateDir}, Mounts: escrow.Mounts{Root: "/proc"},
		Mysqld: func() (string, []int) {
			m, _ := procs.Look() // empty if the look fails
			return m.ID, m.PIDs()
		},
		RightMissing: func() { forgetRights(s) },
	}
	if !s.keyring.sealed && s.keyring.escrowURL != "" {
		config.Push = client.Escrow{
			URL: s.keyring.escrowURL, CAFile: s.keyring.escrowCA, TokenFile: s.keyring.escrowToken, Dial: (&agent.Dialer{}).DialContext,
		}.Push
	}
	return config
}

// keyringOf prevents a nil agent from becoming an interface that is not nil.
func keyringOf(a *escrow.Agent) agent.Keyring {
	if a == nil {
		return nil
	}
	return a
}

// runKeyring runs the agent of the keyring, if there is one, until ctx ends.
func runKeyring(ctx context.Context, k *escrow.Agent) (wait func()) {
	if k == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx)
	}()
	return func() { <-done }
}
