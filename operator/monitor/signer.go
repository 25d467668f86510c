// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/signing"
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

// signer is what the loop knows of the group's key. A key that replaced it in the Secret waits until it is known
// that every site takes it: one that did not would take no statement, and be fenced when its lease ends.
type signer struct {
	// inUse signs; next is what the Secret holds, nil while it is the same.
	inUse signing.Key
	next  *signing.Key
	// read is when the Secret was last asked for. The answer comes through found, so that an API server that is away holds
	// no poll up.
	read  time.Time
	found chan signing.Key
}

// signWith makes a key the one that signs.
func (l *loop) signWith(key signing.Key) {
	l.authority.SetSigner(func(s wire.Statement) (signed wire.Signed, err error) {
		// As many at once as there are processors: after a stall thousands ask at the same moment.
		l.m.signing <- struct{}{}
		defer func() { <-l.m.signing }()
		l.m.crew.wait(func() { signed, err = key.Sign(s) })
		return signed, err
	})
	l.signer.inUse, l.signer.next, l.signer.read = key, nil, time.Now()
}

// lookForKey finds out beside the loop whether the Secret holds another key. Without an answer the one in use signs on:
// the sites trust it.
func (l *loop) lookForKey(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) {
	select {
	case key := <-l.signer.found:
		if l.signer.next = &key; key.Private.Equal(l.signer.inUse.Private) {
			l.signer.next = nil
		}
	default:
	}
	if time.Since(l.signer.read) < l.m.keyAge() {
		return
	}
	l.signer.read = time.Now()
	found := make(chan signing.Key, 1)
	l.signer.found = found
	go func() {
		ctx, cancel := context.WithTimeout(ctx, apiTimeout)
		defer cancel()
		if key, err := l.m.Keys.Read(ctx, group); err == nil {
			found <- key
		}
	}()
}

// takeKey signs with the key of the Secret as soon as every site has said that it trusts a key which leads to it, and not while the
// role moves. Sites that cannot be asked are waited for: the key in use is as good as it was.
func (l *loop) takeKey(s failover.Snapshot) {
	if l.signer.next == nil || s.Status.Transition != nil {
		return
	}
	next := *l.signer.next
	id := wire.KeyID(next.Public())
	for _, site := range s.Sites {
		if site.Removed && !site.Pod.Exists {
			continue
		}
		// One that is silent names none.
		anchor, err := wire.ParseKey(site.Sidecar.Report.Anchor)
		if err != nil || !next.Chain.Has(anchor) {
			if waits := id + " " + site.Name; l.said.key != waits {
				l.said.key = waits
				l.log.Info("the key in the Secret does not sign yet: nothing leads a site to it, or the site cannot be asked", "key", id, "site", site.Name)
			}
			return
		}
	}
	l.log.Info("statements are signed with the key that is in the Secret now", "key", id, "former", wire.KeyID(l.signer.inUse.Public()))
	l.signWith(next)
}
