// SPDX-License-Identifier: Apache-2.0

package archiving

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/pitr"
)

// openLog is the log that a server writes.
type openLog struct {
	server, name string
	// since is when it was first seen here, and from how far it was archived at that time.
	since time.Time
	from  int64
}

// rotate makes the active site begin another binary log once one was open for long. Under little load a log stays open for months, and the archive has a
// file of it for each interval. Every look at the archive reads them all, until the log is sealed and they become one.
func (a *Archiving) rotate(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, l pitr.Look, m *memory) {
	h := l.Heard
	if h == nil || h.State != wire.ArchiverArchiving || h.Log == "" {
		return // the safe answer: do nothing on a site about which nothing is known
	}
	if m.open.server != h.ServerUUID || m.open.name != h.Log {
		m.open = openLog{server: h.ServerUUID, name: h.Log, since: l.Now, from: h.Position}
	}
	if l.Now.Sub(m.open.since) < pitr.OpenFor(l.Interval) || h.Position == m.open.from {
		return
	}
	seen, _ := a.Facts.Sites(group.Namespace, group.Name)
	db, err := a.open(ctx, group, l.Active, seen.Sites[l.Active])
	if err == nil {
		err = db.RotateBinlog(ctx)
		_ = db.Close() // the rotation is done, or is not
	}
	if err != nil {
		a.Log.Warn("have the active site begin another binary log", "namespace", group.Namespace, "group", group.Name, "site", l.Active, "error", err)
		return
	}
	// The archiver says the name of the new one soon.
	m.open.since, m.open.from = l.Now, h.Position
}
