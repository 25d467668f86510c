// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// settings are the flags of bootstrap and run.
type settings struct {
	namespace, group, site string

	operatorURL string
	peers       []string
	podIP       string
	podUID      string

	leaseTimeout      time.Duration
	peerCheckInterval time.Duration
	fenceTimeout      time.Duration
	leaveTimeout      time.Duration

	stateDir, datadir, runDir string
	authority                 ed25519.PublicKey
	reportKeyFile             string
	accountsDir, tlsDir       string
	listen                    string
	defaultsFile, mysqld      string
	requireTLS                bool
	// archiverStatus is the file with the status of this pod's archiver; empty without one.
	archiverStatus string
	// restore is true for the site of a new group that is loaded from a backup: it is never initialised empty.
	restore bool

	keyring keyringSettings
}

// keyringSettings are those of a site with data-at-rest encryption; an empty file means no encryption.
type keyringSettings struct {
	file   string
	sealed bool
	// work is why the keyring can be written: Bootstrap, Clone or Rotation. round names that very unseal, alike in all its pods.
	work, round string
	// acceptPlain lets a new site start from data that was never encrypted.
	acceptPlain bool
	// seed is the file to start from, seedDigest the digest that it must have; an empty seed means a fresh keyring. seedVersion is its
	// number in escrow; 0 if an earlier version of the operator made the pod.
	seed, seedDigest                 string
	seedVersion                      int64
	escrowURL, escrowCA, escrowToken string
	coverSystem                      bool
}

// keyringFlags adds the flags of the keyring.
func keyringFlags(fs *flag.FlagSet, k *keyringSettings, env func(string) string) {
	text := func(into *string, name, variable, help string) {
		fs.StringVar(into, name, env(variable), help+" ($"+variable+")")
	}
	text(&k.file, "keyring-file", "MFG_KEYRING_FILE", "keyring of mysqld; empty without data-at-rest encryption")
	fs.BoolVar(&k.sealed, "keyring-sealed", env("MFG_KEYRING_SEALED") == "true", "the keyring cannot be written ($MFG_KEYRING_SEALED)")
	text(&k.work, "keyring-work", "MFG_KEYRING_WORK", "why the keyring can be written: Bootstrap, Clone or Rotation")
	text(&k.round, "keyring-round", "MFG_KEYRING_ROUND", "which unseal this is; each has a name of its own")
	fs.BoolVar(&k.acceptPlain, "keyring-accept-plain", env("MFG_KEYRING_ACCEPT_PLAIN") == "true",
		"go on from data that was never encrypted ($MFG_KEYRING_ACCEPT_PLAIN)")
	text(&k.seed, "keyring-seed", "MFG_KEYRING_SEED", "keyring to start from; empty for a fresh one")
	text(&k.seedDigest, "keyring-seed-digest", "MFG_KEYRING_SEED_DIGEST", "digest that the seed must have")
	version, _ := strconv.ParseInt(env("MFG_KEYRING_SEED_VERSION"), 10, 64) // a text that is no number is 0
	fs.Int64Var(&k.seedVersion, "keyring-seed-version", version, "number of the seed in escrow; 0 if not known ($MFG_KEYRING_SEED_VERSION)")
	text(&k.escrowURL, "escrow-url", "MFG_ESCROW_URL", "base URL of the operator's escrow listener")
	text(&k.escrowCA, "escrow-ca", "MFG_ESCROW_CA", "certificates of the only authorities that are believed there, PEM")
	text(&k.escrowToken, "escrow-token-file", "MFG_ESCROW_TOKEN_FILE", "file with the site's bearer token")
	fs.BoolVar(&k.coverSystem, "cover-system-tablespace", env("MFG_COVERAGE_SYSTEM_TABLESPACE") == "true",
		"encrypt what MySQL itself makes in the clear ($MFG_COVERAGE_SYSTEM_TABLESPACE)")
}

// defaultRunDir is where the pod mounts the directory of the socket.
const defaultRunDir = "/run/mfg"

// runDirOf is the directory for the socket as the environment gives it.
func runDirOf(env func(string) string) string {
	if dir := env("MFG_RUN_DIR"); dir != "" {
		return dir
	}
	return defaultRunDir
}

// defaultDatadir is the data directory in my.cnf of the pod.
const defaultDatadir = "/var/lib/mysql/data"

// datadirOf is the data directory as the environment gives it.
func datadirOf(env func(string) string) string {
	if dir := env("MFG_DATADIR"); dir != "" {
		return dir
	}
	return defaultDatadir
}

// parseSettings reads the flags of a command; the default of each comes from the environment, as the pod sets it.
func parseSettings(command string, args []string, env func(string) string) (settings, error) {
	var s settings
	var peers, authority string
	fs := flag.NewFlagSet("sidecar "+command, flag.ContinueOnError)
	text := func(into *string, name, variable, otherwise, help string) {
		value := env(variable)
		if value == "" {
			value = otherwise
		}
		fs.StringVar(into, name, value, help+" ($"+variable+")")
	}
	var problems []error
	duration := func(into *time.Duration, name, variable string, otherwise time.Duration, help string) {
		value := otherwise
		if told := env(variable); told != "" {
			parsed, err := time.ParseDuration(told)
			if err != nil {
				problems = append(problems, fmt.Errorf("parse %s: %w", variable, err))
			}
			value = parsed
		}
		fs.DurationVar(into, name, value, help+" ($"+variable+")")
	}
	text(&s.namespace, "namespace", "MFG_NAMESPACE", "", "namespace of the group")
	text(&s.group, "group", "MFG_GROUP", "", "name of the group")
	text(&s.site, "site", "MFG_SITE", "", "name of this site")
	text(&s.operatorURL, "operator-url", "MFG_OPERATOR_URL", "", "base URL of the operator's auxiliary listener")
	text(&peers, "peers", "MFG_PEERS", "", "host:port of the other sites' sidecars, separated by commas")
	text(&s.podIP, "pod-ip", "POD_IP", "127.0.0.1", "address of MySQL's admin interface")
	text(&s.podUID, "pod-uid", "POD_UID", "", "UID of this pod, for reports")
	duration(&s.leaseTimeout, "lease-timeout", "MFG_LEASE_TIMEOUT", 20*time.Second, "how long the site may stay open without an exchange")
	duration(&s.peerCheckInterval, "peer-check-interval", "MFG_PEER_CHECK_INTERVAL", 2*time.Second, "how often operator and peers are asked")
	duration(&s.fenceTimeout, "fence-timeout", "MFG_FENCE_TIMEOUT", 2*time.Second, "how long a fence may take before mysqld is killed")
	duration(&s.leaveTimeout, "leave-timeout", "MFG_LEAVE_TIMEOUT", 10*time.Second, "how long the end of mysqld waits for the role to move away")
	text(&s.stateDir, "state-dir", "MFG_STATE_DIR", "/var/lib/mysql/mfg", "directory on the data volume for this program")
	text(&s.datadir, "datadir", "MFG_DATADIR", defaultDatadir, "data directory of mysqld")
	text(&s.runDir, "run-dir", "MFG_RUN_DIR", defaultRunDir, "directory for the socket")
	text(&authority, "authority-key", "MFG_AUTHORITY_KEY", "", "public key of the group's authority, base64; empty trusts nobody")
	text(&s.reportKeyFile, "report-key-file", "MFG_REPORT_KEY_FILE", "", "key that authenticates reports; empty for reports that are not")
	text(&s.accountsDir, "accounts-dir", "MFG_ACCOUNTS_DIR", "/etc/mfg-accounts", "directory with a password file per account")
	text(&s.tlsDir, "tls-dir", "MFG_TLS_DIR", "/etc/mfg-tls", "directory with ca.crt; TLS is used if it is there")
	text(&s.listen, "listen", "MFG_LISTEN", ":8090", "address to serve on")
	text(&s.defaultsFile, "defaults-file", "MFG_DEFAULTS_FILE", "/etc/mfg/my.cnf", "configuration of mysqld")
	text(&s.mysqld, "mysqld", "MFG_MYSQLD", "mysqld", "program that initialises the data directory")
	text(&s.archiverStatus, "archiver-status", wire.EnvArchiverStatus, "", "file with the status of the archiver of this pod; empty without one")
	fs.BoolVar(&s.requireTLS, "require-tls", env("MFG_REQUIRE_TLS") == "true", "create accounts that have to use TLS ($MFG_REQUIRE_TLS)")
	fs.BoolVar(&s.restore, "restore", env("MFG_RESTORE") == "true", "take the data directory that a backup was loaded into, and make no empty one ($MFG_RESTORE)")
	keyringFlags(fs, &s.keyring, env)
	if err := errors.Join(append(problems, fs.Parse(args))...); err != nil {
		return settings{}, err
	}
	if fs.NArg() > 0 {
		return settings{}, fmt.Errorf("parse flags: unexpected argument %q", fs.Arg(0))
	}
	if authority != "" {
		key, err := wire.ParseKey(authority)
		if err != nil {
			return settings{}, fmt.Errorf("parse flags: --authority-key: %w", err)
		}
		s.authority = key
	}
	for _, peer := range strings.Split(peers, ",") {
		if peer = strings.TrimSpace(peer); peer != "" {
			s.peers = append(s.peers, peer)
		}
	}
	return s, nil
}
