// SPDX-License-Identifier: Apache-2.0

// Package access says how the operator reaches the MySQL of a site, and how sites reach each other: addresses, accounts
// and certificates, read from the group's Secrets. It connects to nothing and decides nothing.
package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// Keys of the accounts Secret.
const (
	keyOperator    = "operator"
	keyReplication = "replication"
	keyClone       = "clone"
)

// Where mysqld finds the files of the group's certificate in its pod.
const (
	caFile   = "/etc/mfg-tls/" + keyCA
	certFile = "/etc/mfg-tls/" + keyCert
	keyFile  = "/etc/mfg-tls/" + keyKey
)

// program is the operator's name in the process list of a server.
const program = "mfg-operator"

// SecretAge is how long the content of a Secret is used without reading it again. Secrets are not in the manager's cache,
// and a failover must neither read them for every connection nor fail because the API server is away for a moment. A
// replaced password stays valid for longer than that.
const SecretAge = 15 * time.Second

const (
	// rereadPatience is how long a caller waits for a Secret to be read again whose content is known. An API server that hangs must not
	// take the time of a look at a server, or of a step of a failover.
	rereadPatience = 300 * time.Millisecond
	// rereadPause is how long nobody waits for such a read again.
	rereadPause = time.Second
	// readTimeout bounds one read. It goes on when its caller has gone on with what is known.
	readTimeout = 3 * time.Second
)

// refreshTimeout bounds a look for other passwords after a server has refused the known ones.
const refreshTimeout = time.Second

// formerAge is how long a replaced authority is still trusted. The kubelet and the sidecar take a minute or two to give the
// new certificate to mysqld, which serves the former one until then.
const formerAge = 10 * time.Minute

// wholeSecret stands for all keys of a Secret that is gone.
const wholeSecret = "*"

// ErrSecretIncomplete means that a Secret lacks a key without which no connection is possible.
var ErrSecretIncomplete = errors.New("secret is incomplete")

// Access answers for every group.
type Access struct {
	generated, given client.Reader

	mu   sync.Mutex
	read map[place]known
	// reading shares one read of a Secret among all that wait for it.
	reading singleflight.Group
}

// place is a Secret of a living group. It has the UID, since what was read for an earlier group of the same name says nothing of this one.
type place struct {
	group types.NamespacedName
	uid   types.UID
	name  types.NamespacedName
}

// known is a Secret that was read.
type known struct {
	data map[string][]byte
	// version is the resource version of what was read; empty once the Secret was found gone.
	version string
	until   time.Time
	// missing is what the log says is gone: the Secret, or keys of it; empty while it is whole.
	missing string
	// former is the authority before the one in data; it is trusted until formerUntil.
	former      []byte
	formerUntil time.Time
}

// after returns what is known once a new content was read after k.
func (k known) after(read *corev1.Secret, now time.Time) known {
	data, lost := k.kept(read.Data)
	next := known{data: data, version: read.ResourceVersion, missing: lost, until: now.Add(SecretAge), former: k.former, formerUntil: k.formerUntil}
	if before := k.data[keyCA]; len(before) > 0 && !bytes.Equal(before, data[keyCA]) {
		next.former, next.formerUntil = before, now.Add(formerAge)
	}
	return next
}

// trusted returns the content, with the former authority beside the new one while it is still trusted.
func (k known) trusted(now time.Time) map[string][]byte {
	if len(k.former) == 0 || len(k.data[keyCA]) == 0 || now.After(k.formerUntil) {
		return k.data
	}
	out := maps.Clone(k.data)
	out[keyCA] = slices.Concat(k.data[keyCA], []byte("\n"), k.former)
	return out
}

// New makes an Access. A cache may serve generated Secrets; the Secret of the user's certificate has no label by which
// a cache could select it.
func New(generated, given client.Reader) *Access {
	return &Access{generated: generated, given: given, read: map[place]known{}}
}

// Forget drops what was read for a group that is gone.
func (a *Access) Forget(group types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.read, func(p place, _ known) bool { return p.group == group })
}

// Site returns how to reach the admin interface of the MySQL in a site's pod.
func (a *Access) Site(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, podIP string) (mysql.Target, error) {
	known, err := a.accounts(ctx, group)
	if err != nil {
		return mysql.Target{}, err
	}
	own, err := known.of(keyOperator)
	if err != nil {
		return mysql.Target{}, err
	}
	var config *tls.Config
	if group.TLSVerified() {
		if config, err = a.clientTLS(ctx, group, site); err != nil {
			return mysql.Target{}, err
		}
	}
	return mysql.Target{
		Addr: net.JoinHostPort(podIP, strconv.Itoa(wire.PortMySQLAdmin)),
		User: mysql.AccountOperator, Password: own.valid, TLS: config, Program: program,
		Passwords: func(ctx context.Context, again bool) []string {
			if again {
				return a.anew(ctx, group, own)
			}
			return own.all
		},
	}, nil
}

// Replication returns how other sites replicate from a site.
func (a *Access) Replication(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, source string) (mysql.Source, error) {
	known, err := a.accounts(ctx, group)
	if err != nil {
		return mysql.Source{}, err
	}
	own, err := known.of(keyReplication)
	if err != nil {
		return mysql.Source{}, err
	}
	s := mysql.Source{
		Host: hostOf(group, source), Port: wire.PortMySQL, User: mysql.AccountReplication, Password: own.valid, Serial: known.serial(),
	}
	if group.TLSVerified() {
		s.TLS, s.CA = true, caFile
	}
	return s, nil
}

// Donor returns how other sites clone from a site.
func (a *Access) Donor(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, source string) (mysql.Donor, error) {
	known, err := a.accounts(ctx, group)
	if err != nil {
		return mysql.Donor{}, err
	}
	own, err := known.of(keyClone)
	if err != nil {
		return mysql.Donor{}, err
	}
	return mysql.Donor{
		Host: hostOf(group, source), Port: wire.PortMySQL, User: mysql.AccountClone, Password: own.valid,
		RequireTLS: group.TLSVerified(), Files: cloneFiles(group),
	}, nil
}

// cloneFiles returns the files with which a recipient verifies a donor; nil if it has none. While the sites get their certificate a
// donor may have none: then it could not be verified, and would refuse the recipient's.
func cloneFiles(group *v1alpha1.MysqlFailoverGroup) *mysql.CloneFiles {
	switch {
	case group.TLSVerified():
		return &mysql.CloneFiles{CA: caFile, Cert: certFile, Key: keyFile}
	case group.TLSMounted():
		return &mysql.CloneFiles{}
	}
	return nil
}

// ReportKey returns the key with which a site authenticates its reports.
func (a *Access) ReportKey(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) ([]byte, error) {
	name := types.NamespacedName{Namespace: group.Namespace, Name: v1alpha1.ReportSecret(group.Name, site)}
	secret, err := a.secret(ctx, a.generated, group, name)
	if err != nil {
		return nil, fmt.Errorf("read key for reports: %w", err)
	}
	if len(secret.Data[v1alpha1.ReportKey]) != wire.ReportKeyBytes {
		return nil, fmt.Errorf("%w: %s has no key of %d bytes", ErrSecretIncomplete, name, wire.ReportKeyBytes)
	}
	return secret.Data[v1alpha1.ReportKey], nil
}

func hostOf(group *v1alpha1.MysqlFailoverGroup, site string) string {
	return v1alpha1.SiteName(group.Name, site) + "." + group.Namespace + ".svc"
}

// accountsSecret is the content of the accounts Secret.
type accountsSecret struct {
	name types.NamespacedName
	data map[string][]byte
}

// passwords are the passwords of one account.
type passwords struct {
	key string
	// valid is the one that every server accepts; all are those that a server may accept, in the order in which to try them.
	valid string
	all   []string
}

// String never shows a password.
func (p passwords) String() string { return "passwords of " + p.key + " (redacted)" }

// GoString never shows a password.
func (p passwords) GoString() string { return p.String() }

func (a *Access) accounts(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (accountsSecret, error) {
	name := types.NamespacedName{Namespace: group.Namespace, Name: v1alpha1.AccountsSecret(group.Name)}
	secret, err := a.secret(ctx, a.generated, group, name)
	if err != nil {
		return accountsSecret{}, fmt.Errorf("read accounts: %w", err)
	}
	return accountsSecret{name, secret.Data}, nil
}

// of returns the passwords of an account. The operator's copy comes first: the other one may be a person's wish that no server knows yet.
func (s accountsSecret) of(key string) (passwords, error) {
	out := passwords{key: key}
	for _, k := range []string{key + v1alpha1.PasswordKnown, key, key + v1alpha1.PasswordNext, key + v1alpha1.PasswordPrevious} {
		if password := string(s.data[k]); password != "" && !slices.Contains(out.all, password) {
			out.all = append(out.all, password)
		}
	}
	if len(out.all) == 0 {
		return passwords{}, fmt.Errorf("%w: %s has no key %q", ErrSecretIncomplete, s.name, key)
	}
	out.valid = out.all[0]
	return out, nil
}

// serial counts the changes of passwords; 0 in a Secret of an earlier version.
func (s accountsSecret) serial() int64 {
	n, err := strconv.ParseInt(string(s.data[v1alpha1.PasswordSerial]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// anew reads the passwords of an account again after a server has refused the known ones, and returns those that are new.
func (a *Access) anew(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, refused passwords) []string {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	name := types.NamespacedName{Namespace: group.Namespace, Name: v1alpha1.AccountsSecret(group.Name)}
	if err := a.generated.Get(ctx, name, secret); err != nil {
		return nil
	}
	now, err := accountsSecret{name, secret.Data}.of(refused.key)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(now.all, func(password string) bool { return slices.Contains(refused.all, password) })
}

// clientTLS returns the settings that verify the server of a site.
func (a *Access) clientTLS(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) (*tls.Config, error) {
	secret, err := a.secret(ctx, a.given, group, types.NamespacedName{Namespace: group.Namespace, Name: group.Spec.TLS.Secret(group.Name)})
	if err != nil {
		return nil, fmt.Errorf("read certificate of the group: %w", err)
	}
	return ClientTLS(secret, hostOf(group, site))
}
