// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"cmp"
	"context"
	"slices"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/receivers"
)

// given is a password that a receiver got, and where: another pod may have another volume, another source another channel.
type given struct {
	podUID, source string
	serial         int64
}

// has returns the serial of the password that the site's receiver has for a source; 0 if unknown.
func (k *siteLink) has(source string) int64 {
	if k.given.podUID != k.pod() || k.given.source != source {
		return 0
	}
	return k.given.serial
}

// gave notes which password a receiver got.
func (l *loop) gave(site, from string, source mysql.Source) {
	if link := l.sites[site]; link != nil {
		link.given = given{podUID: link.pod(), source: from, serial: source.Serial}
	}
}

// givePasswords makes the receivers of replicas connect with the new password while it replaces the former one, one per pass. It
// runs here, between two decisions of this loop, so that it never starts a receiver that a drain has stopped, and only while the
// loop has nothing else to do, since it stops the receiver for a moment.
func (l *loop) givePasswords(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision) {
	p := group.Status.Passwords
	if p == nil || p.Phase != v1alpha1.PasswordsSwitching || !slices.Contains(p.Accounts, v1alpha1.AccountReplication) {
		return
	}
	if !receivers.Calm(d) {
		return
	}
	active := d.Status.ActiveSite
	source, err := l.m.Access.Replication(ctx, group, active)
	if err != nil {
		l.log.Debug("read the password of replication", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sqlTimeout) // for all sites together: the next pass must not wait for servers that hang
	defer cancel()
	l.giveOne(ctx, l.lacking(s, active, source.Serial), func(site string) error {
		err := l.onSite(ctx, group, site, func(ctx context.Context, db *mysql.DB) error { return db.GivePassword(ctx, source) })
		if err == nil {
			l.gave(site, active, source)
		}
		l.log.Debug("give the receiver its new password", "site", site, "serial", source.Serial, "error", err)
		return err
	})
}

// lacking returns the sites whose receiver runs with a former password. Sites with fewer tries come first, so that one that
// refuses or hangs does not keep the others waiting.
func (l *loop) lacking(s failover.Snapshot, active string, serial int64) []string {
	var out []string
	for _, site := range s.Sites {
		link := l.sites[site.Name]
		if site.Name == active || link == nil || link.has(active) == serial || !site.MySQL.Direct || site.MySQL.Cloning ||
			site.MySQL.ReplicaOf != active || !site.MySQL.IORunning {
			continue
		}
		out = append(out, site.Name)
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(l.sites[a].tried, l.sites[b].tried) })
	return out
}

// giveOne tries the sites until one has taken the password: each pass changes one receiver.
func (l *loop) giveOne(ctx context.Context, sites []string, give func(site string) error) {
	for _, site := range sites {
		if ctx.Err() != nil {
			return
		}
		l.sites[site].tried++
		if give(site) == nil {
			return
		}
	}
}

// sources knows which server the receivers of a group follow.
type sources struct {
	*loop
	group *v1alpha1.MysqlFailoverGroup
}

// verify makes receivers verify the active site, one per pass, once every site has the group's certificate.
func (r sources) verify(ctx context.Context, s failover.Snapshot, d failover.Decision) {
	if r.group.Status.TLS == nil || r.group.Status.TLS.Phase != v1alpha1.TLSChannels {
		return
	}
	r.verifying.Step(ctx, receivers.Pass{
		Snapshot: s, Decision: d, Log: r.log,
		Source: func(ctx context.Context, active string) (mysql.Source, error) {
			return r.m.Access.Replication(ctx, r.group, active)
		},
		On: func(site string) receivers.Doer { return receivers.Doer(r.at(r.group, site)) },
	})
}
