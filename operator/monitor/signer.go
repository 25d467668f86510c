// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// keyAge is how often the Secret with the group's key is looked at; with very many groups more seldom, keysPerSecond in all.
const (
	keyAge        = 30 * time.Second
	keysPerSecond = 15
)

func (m *Monitor) keyAge() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(keyAge, time.Duration(len(m.loops))*time.Second/keysPerSecond)
}

// signer is what the loop knows of the group's key. A key that replaced it in the Secret waits until every site trusts it:
// a site that did not would take no statement, and be fenced when its lease ends.
type signer struct {
	// inUse signs; next is what the Secret holds, nil while it is the same.
	inUse ed25519.PublicKey
	next  ed25519.PrivateKey
	// read is when the Secret was last asked for. The answer comes through found, so that an API server that is away holds
	// no poll up.
	read  time.Time
	found chan ed25519.PrivateKey
}

// signWith makes a key the one that signs.
func (l *loop) signWith(key ed25519.PrivateKey) {
	l.authority.SetSigner(func(s wire.Statement) (signed wire.Signed, err error) {
		// As many at once as there are processors: after a stall thousands ask at the same moment.
		l.m.signing <- struct{}{}
		defer func() { <-l.m.signing }()
		l.m.crew.wait(func() { signed, err = wire.Sign(key, s) })
		return signed, err
	})
	l.signer.inUse, l.signer.next, l.signer.read = publicOf(key), nil, time.Now()
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey {
	public, _ := key.Public().(ed25519.PublicKey)
	return public
}

// lookForKey finds out beside the loop whether the Secret holds another key. Without an answer the one in use signs on:
// the sites trust it.
func (l *loop) lookForKey(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) {
	select {
	case key := <-l.signer.found:
		if l.signer.next = key; publicOf(key).Equal(l.signer.inUse) {
			l.signer.next = nil
		}
	default:
	}
	if time.Since(l.signer.read) < l.m.keyAge() {
		return
	}
	l.signer.read = time.Now()
	found := make(chan ed25519.PrivateKey, 1)
	l.signer.found = found
	go func() {
		ctx, cancel := context.WithTimeout(ctx, apiTimeout)
		defer cancel()
		if key, err := l.privateKey(ctx, group); err == nil {
			found <- key
		}
	}()
}

// takeKey signs with the key of the Secret as soon as every site trusts it, and not while the role moves. Sites that
// cannot be asked are waited for: the key in use is as good as it was.
func (l *loop) takeKey(s failover.Snapshot) {
	if l.signer.next == nil || s.Status.Transition != nil {
		return
	}
	id := wire.KeyID(publicOf(l.signer.next))
	for _, site := range s.Sites {
		if site.Removed && !site.Pod.Exists {
			continue
		}
		if !site.Sidecar.Answered || !slices.Contains(site.Sidecar.Report.Trusts, id) {
			if waits := id + " " + site.Name; l.said.key != waits {
				l.said.key = waits
				l.log.Info("the key in the Secret does not sign yet: a site does not trust it, or cannot be asked", "key", id, "site", site.Name)
			}
			return
		}
	}
	l.log.Info("statements are signed with the key that is in the Secret now", "key", id, "former", wire.KeyID(l.signer.inUse))
	l.signWith(l.signer.next)
}

func (l *loop) privateKey(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (ed25519.PrivateKey, error) {
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.AuthoritySecret(group.Name)}
	if err := l.m.Live.Get(ctx, name, secret); err != nil {
		return nil, fmt.Errorf("read authority secret: %w", err)
	}
	block, _ := pem.Decode(secret.Data[v1alpha1.AuthorityPrivateKey])
	if block == nil {
		return nil, fmt.Errorf("secret %s has no PEM in %s", name, v1alpha1.AuthorityPrivateKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse authority key: %w", err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("authority key is %T, not Ed25519", parsed)
	}
	return key, nil
}
