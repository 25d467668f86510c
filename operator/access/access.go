// SPDX-License-Identifier: Apache-2.0

// Package access says how the operator reaches the MySQL of a site, and how sites reach each other: addresses, accounts
// and certificates, read from the group's Secrets. It connects to nothing and decides nothing.
package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

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

// caFile is where mysqld finds the authority's certificate in its pod.
const caFile = "/etc/mfg-tls/ca.crt"

// program names the operator in the process list of a server.
const program = "mfg-operator"

// tlsAge is how long the user's TLS Secret is believed: it is not in the cache, and a failover must not read it anew
// for every connection. A renewed certificate is signed by the same authority as a rule.
const tlsAge = 15 * time.Second

// ErrSecretIncomplete means that a Secret lacks a key without which nobody can connect.
var ErrSecretIncomplete = errors.New("secret is incomplete")

// Access answers for every group.
type Access struct {
	cached, live client.Reader

	mu    sync.Mutex
	pools map[types.NamespacedName]pool
}

type pool struct {
	roots *x509.CertPool
	until time.Time
}

// New makes an Access that reads generated Secrets from the cache and the user's from the API server.
func New(cached, live client.Reader) *Access {
	return &Access{cached: cached, live: live, pools: map[types.NamespacedName]pool{}}
}

// Site returns how to reach the admin interface of the MySQL in a site's pod.
func (a *Access) Site(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, podIP string) (mysql.Target, error) {
	password, err := a.password(ctx, group, keyOperator)
	if err != nil {
		return mysql.Target{}, err
	}
	config, err := a.clientTLS(ctx, group, site)
	if err != nil {
		return mysql.Target{}, err
	}
	return mysql.Target{
		Addr: net.JoinHostPort(podIP, strconv.Itoa(wire.PortMySQLAdmin)),
		User: mysql.AccountOperator, Password: password, TLS: config, Program: program,
	}, nil
}

// Replication returns how the other sites follow a site.
func (a *Access) Replication(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, source string) (mysql.Source, error) {
	password, err := a.password(ctx, group, keyReplication)
	if err != nil {
		return mysql.Source{}, err
	}
	s := mysql.Source{
		Host: hostOf(group, source), Port: wire.PortMySQL, User: mysql.AccountReplication, Password: password,
	}
	if group.Spec.TLS != nil {
		s.TLS, s.CA = true, caFile
	}
	return s, nil
}

// Donor returns how a site clones from another.
func (a *Access) Donor(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, source string) (mysql.Donor, error) {
	password, err := a.password(ctx, group, keyClone)
	if err != nil {
		return mysql.Donor{}, err
	}
	return mysql.Donor{
		Host: hostOf(group, source), Port: wire.PortMySQL, User: mysql.AccountClone, Password: password,
		RequireTLS: group.Spec.TLS != nil,
	}, nil
}

func hostOf(group *v1alpha1.MysqlFailoverGroup, site string) string {
	return v1alpha1.SiteName(group.Name, site) + "." + group.Namespace + ".svc"
}

func (a *Access) password(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, key string) (string, error) {
	name := client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.AccountsSecret(group.Name)}
	secret := &corev1.Secret{}
	if err := a.cached.Get(ctx, name, secret); err != nil {
		return "", fmt.Errorf("read accounts: %w", err)
	}
	if len(secret.Data[key]) == 0 {
		return "", fmt.Errorf("%w: %s has no key %q", ErrSecretIncomplete, name, key)
	}
	return string(secret.Data[key]), nil
}

// clientTLS is nil without spec.tls.
func (a *Access) clientTLS(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) (*tls.Config, error) {
	if group.Spec.TLS == nil {
		return nil, nil
	}
	name := types.NamespacedName{Namespace: group.Namespace, Name: group.Spec.TLS.SecretName}
	roots, err := a.roots(ctx, name)
	if err != nil {
		return nil, err
	}
	return verified(roots, hostOf(group, site)), nil
}

func (a *Access) roots(ctx context.Context, name types.NamespacedName) (*x509.CertPool, error) {
	now := time.Now()
	a.mu.Lock()
	p, ok := a.pools[name]
	a.mu.Unlock()
	if ok && now.Before(p.until) {
		return p.roots, nil
	}
	secret := &corev1.Secret{}
	err := a.live.Get(ctx, name, secret)
	var roots *x509.CertPool
	if err == nil {
		roots, err = rootsOf(secret)
	}
	if err != nil {
		if ok {
			// A certificate that was good a moment ago is better than no connection: with a wrong one the handshake fails.
			return p.roots, nil
		}
		return nil, fmt.Errorf("read certificate of the group: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pools[name] = pool{roots: roots, until: now.Add(tlsAge)}
	return roots, nil
}
