// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"log/slog"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/authority"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// keyAge is how often the loop reads the Secret with the group's key; with very many groups less often, keysPerSecond in all.
const (
	keyAge        = 30 * time.Second
	keysPerSecond = 15
)

func (m *Monitor) keyAge() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(keyAge, time.Duration(len(m.loops))*time.Second/keysPerSecond)
}

// signer is what the loop knows of the group's key. A key that replaced it in the Secret waits until every site is
// known to accept it: a site that did not would accept no statement, and fence itself when its lease ends.
type signer struct {
	m         *Monitor
	authority *authority.Authority
	log       *slog.Logger
	// inUse signs; next is what the Secret holds, nil while it is the same.
	inUse signing.Key
	next  *signing.Key
	// read is when the loop last asked for the Secret. The answer comes through found, so that a missing API server delays
	// no poll.
	read  time.Time
	found chan signing.Key
	// waits is the key that waits to sign and the site that it waits for, as last logged.
	waits string
}

// use makes a key sign from now on.
func (s *signer) use(key signing.Key) {
	s.authority.SetSigner(func(statement wire.Statement) (signed wire.Signed, err error) {
		// As many at once as there are processors: after a stall thousands ask at the same moment.
		s.m.signing <- struct{}{}
		defer func() { <-s.m.signing }()
		s.m.workers.Wait(func() { signed, err = key.Sign(statement) })
		return signed, err
	})
	s.inUse, s.next, s.read = key, nil, time.Now()
}

// look finds out beside the loop whether the Secret holds another key. Without an answer the key in use keeps signing:
// the sites trust it.
func (s *signer) look(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) {
	select {
	case key := <-s.found:
		if s.next = &key; key.Private.Equal(s.inUse.Private) {
			s.next = nil
		}
	default:
	}
	if time.Since(s.read) < s.m.keyAge() {
		return
	}
	s.read = time.Now()
	found := make(chan signing.Key, 1)
	s.found = found
	go func() {
		ctx, cancel := context.WithTimeout(ctx, apiTimeout)
		defer cancel()
		if key, err := s.m.Keys.Read(ctx, group); err == nil {
			found <- key
		}
	}()
}

// take signs with the key of the Secret as soon as every site has said that it trusts a key which leads to it, and not while the
// role moves. It waits for sites that cannot be asked: the key in use is still good.
func (s *signer) take(seen failover.Snapshot) {
	if s.next == nil || seen.Status.Transition != nil {
		return
	}
	next := *s.next
	id := wire.KeyID(next.Public())
	for _, site := range seen.Sites {
		if site.Removed && !site.Pod.Exists {
			continue
		}
		// A silent site names no key.
		anchor, err := wire.ParseKey(site.Sidecar.Report.Anchor)
		if err != nil || !next.Chain.Has(anchor) {
			if waits := id + " " + site.Name; s.waits != waits {
				s.waits = waits
				s.log.Info("the key in the Secret does not sign yet: nothing leads a site to it, or the site cannot be asked", "key", id, "site", site.Name)
			}
			return
		}
	}
	s.log.Info("statements are signed with the key that is in the Secret now", "key", id, "former", wire.KeyID(s.inUse.Public()))
	s.use(next)
}
