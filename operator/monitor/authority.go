// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/authority"
)

// Answer implements the server's Authority: it returns the valid statement, signed with the asker's nonce. It notes the
// time of the answer before it gives it, so that no lease can be renewed unseen (I4).
func (m *Monitor) Answer(q wire.Ask) (wire.Signed, error) {
	m.mu.Lock()
	leading := m.running != nil && m.running.Err() == nil
	l := m.loops[types.NamespacedName{Namespace: q.Namespace, Name: q.Group}]
	m.mu.Unlock()
	switch {
	case !leading:
		return "", wire.ErrNotLeading
	case l == nil:
		return "", wire.ErrUnknownGroup
	case !m.Steady():
		return "", wire.ErrNotLeading
	}
	if l.foreign.Load() {
		return "", wire.ErrUnknownGroup // another release answers, and would not know what this one answers (I4)
	}
	return l.authority.Answer(q, time.Now())
}

// Steady is false after this process was stopped for a while: another may lead by now.
func (m *Monitor) Steady() bool { return m.pulse.Steady(time.Now()) }

// beats tells the pulse that this process runs, until ctx ends.
func (m *Monitor) beats(ctx context.Context) {
	ticker := time.NewTicker(authority.BeatEvery)
	defer ticker.Stop()
	for {
		m.pulse.Beat(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
