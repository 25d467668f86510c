// SPDX-License-Identifier: Apache-2.0

package archiving

import (
	"context"
	"fmt"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/pitr"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// autoPurge is the MySQL setting that purges old logs.
const autoPurge = "binlog_expire_logs_auto_purge"

// defaultVolume is the size of a site's volume if the specification sets none.
var defaultVolume = resource.MustParse("10Gi")

// hold makes the sites keep binary logs while the archive is far behind, and purge them again once it has caught up, or once there is no
// room. It looks at a site only while the archive is behind, and until the site is known to purge. mysqld starts with purging on, so that a
// long absence of the operator fills no volume of a server that starts again.
func (a *Archiving) hold(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, l pitr.Look, s pitr.State) (holding, full bool) {
	if purgesByHand(group) || !l.Image {
		return false, false
	}
	m := a.of(keyOf(group))
	behind := s.LagKnown && pitr.IsBehind(s.Lag, l.Interval) || !s.LagKnown && !l.TroubledSince.IsZero() && l.Now.Sub(l.TroubledSince) > pitr.HoldLeast
	seen, known := a.Facts.Sites(group.Namespace, group.Name)
	if !known {
		return false, false
	}
	for i := range group.Spec.Sites {
		site := &group.Spec.Sites[i]
		facts := seen.Sites[site.Name]
		if !behind {
			m.released[site.Name] = false
		}
		if !facts.MysqlUp || facts.Cloning || !behind && m.purges[site.Name] {
			continue
		}
		held, noRoom, err := a.holdSite(ctx, group, site, facts, behind)
		if err != nil {
			a.Log.Debug("look at the binary logs of a site", "namespace", group.Namespace, "group", group.Name, "site", site.Name, "error", err)
		}
		holding, full = holding || held, full || noRoom
	}
	return holding, full
}

// letGo makes the sites purge again that kept logs for an archive which the group no longer has: after that hold does not look at them, and their logs
// would fill the volumes. It returns false while it could not reach a site. A site that is down purges when it starts.
func (a *Archiving) letGo(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (done bool) {
	st := group.Status.Backup
	if st == nil || st.PITR == nil || !st.PITR.Holding || group.DeletionTimestamp != nil || purgesByHand(group) {
		return true
	}
	seen, done := a.Facts.Sites(group.Namespace, group.Name)
	for i := range group.Spec.Sites {
		site := &group.Spec.Sites[i]
		facts := seen.Sites[site.Name]
		if !facts.MysqlUp || facts.Cloning {
			continue
		}
		if held, _, err := a.holdSite(ctx, group, site, facts, false); err != nil || held {
			a.Log.Warn("have a site purge binary logs again", "namespace", group.Namespace, "group", group.Name, "site", site.Name, "error", err)
			done = false
		}
	}
	return done
}

func (a *Archiving) holdSite(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site *v1alpha1.Site, facts scope.SiteFacts, behind bool) (held, full bool, err error) {
	m := a.of(keyOf(group))
	db, err := a.open(ctx, group, site.Name, facts)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = db.Close() }()
	logs, err := db.Binlogs(ctx)
	if err != nil {
		return false, false, err
	}
	size := site.Storage.Size
	if size.IsZero() {
		size = defaultVolume
	}
	action, full := pitr.HoldOf(pitr.Logs{Bytes: logs.Bytes, Volume: size.Value(), Purges: logs.Purges}, behind, m.released[site.Name])
	m.released[site.Name], m.purges[site.Name] = full, logs.Purges
	if action == pitr.HoldNothing {
		return !logs.Purges, full, nil
	}
	purge := action == pitr.ReleaseLogs
	if err := db.PurgeBinlogs(ctx, purge); err != nil {
		return !logs.Purges, full, err
	}
	m.purges[site.Name] = purge
	a.tellHold(group, site.Name, purge, full)
	return !purge, full, nil
}

func (a *Archiving) open(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, facts scope.SiteFacts) (Server, error) {
	host, _, err := net.SplitHostPort(facts.AdminAddr)
	if err != nil {
		return nil, fmt.Errorf("reach %s: it has no address", site)
	}
	target, err := a.Access.Site(ctx, group, site, host)
	if err != nil {
		return nil, err
	}
	return a.Dial(target)
}

// purgesByHand is true if the specification sets whether logs are purged by age: then the operator does not.
func purgesByHand(group *v1alpha1.MysqlFailoverGroup) bool {
	for key := range group.Spec.MysqlConf {
		name := strings.ReplaceAll(strings.ToLower(key), "-", "_")
		if strings.TrimPrefix(strings.TrimPrefix(name, "loose_"), "skip_") == autoPurge {
			return true
		}
	}
	return false
}
