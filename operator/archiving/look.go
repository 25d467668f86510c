// SPDX-License-Identifier: Apache-2.0

package archiving

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/pitr"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// look gathers, decides, persists and reports, for one group.
func (a *Archiving) look(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) error {
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	m := a.of(key)
	if !enabled(group) {
		a.hide(key, m)
		if !a.letGo(ctx, group) {
			return nil // status shows the archive until that is done
		}
		_, err := a.write(ctx, group, nil)
		return err
	}
	l, err := a.gather(ctx, group, m)
	if err != nil {
		return err
	}
	state := pitr.Decide(l)
	// It looks at the sites once it knows how far the archive is, and reports both together.
	if l.Holding, l.Full = a.hold(ctx, group, l, state); l.Holding || l.Full {
		state = pitr.Decide(l)
	}
	a.rotate(ctx, group, l, m)
	a.show(key, m, l, state)
	if !a.due(group, m, state) {
		return nil
	}
	written, err := a.write(ctx, group, &state)
	if !written {
		return err
	}
	m.written = l.Now
	a.tell(group, state)
	return nil
}

// gather finds out the input of the decision. A missing answer is part of it, and no error.
func (a *Archiving) gather(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, m *memory) (pitr.Look, error) {
	l := pitr.Look{Now: a.Now(), Group: group, Interval: render.ArchiveInterval(group.Spec.Backup.PITR), Image: a.Install.BackupImage != "", Place: placeOf(group)}
	all, err := a.backups(ctx, group)
	if err != nil {
		return l, err
	}
	l.Backups = all
	seen, known := a.Facts.Sites(group.Namespace, group.Name)
	if known && seen.Open {
		l.Active = seen.ActiveSite
		site := seen.Sites[seen.ActiveSite]
		l.Held.Executed = site.Executed
		for _, e := range group.Status.Epochs {
			if e.Epoch == seen.Epoch && e.Site == seen.ActiveSite {
				l.Held.ServerUUID = e.ServerUUID
			}
		}
		l.Heard = a.ask(ctx, site, m, l.Now)
	}
	l.QuietSince = since(m.quietSince, l.Heard == nil, l.Now)
	l.TroubledSince = since(m.troubledSince, pitr.IsTroubled(l.Active, l.Heard), l.Now)
	m.quietSince, m.troubledSince = l.QuietSince, l.TroubledSince
	return l, nil
}

// since returns since when something is true; zero while it is not.
func since(before time.Time, is bool, now time.Time) time.Time {
	switch {
	case !is:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// backups returns all MysqlBackups of a group. They belong to the cache, and must not be changed.
func (a *Archiving) backups(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) ([]v1alpha1.MysqlBackup, error) {
	var all v1alpha1.MysqlBackupList
	err := a.Client.List(ctx, &all, client.InNamespace(group.Namespace), client.MatchingFields{indexGroup: group.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	return all.Items, nil
}

// placeOf returns where the archive of a group is, in the form of the status of a MysqlBackup; nowhere without one.
func placeOf(group *v1alpha1.MysqlFailoverGroup) v1alpha1.StoragePlace {
	profile, ok := render.ArchiveProfile(&group.Spec)
	if !ok {
		return v1alpha1.StoragePlace{}
	}
	return v1alpha1.StoragePlace{Location: profile.Storage.Location(group.Namespace, group.Name), Digest: profile.Storage.Digest(group.Namespace, group.Name)}
}

// ask asks the sidecar of a site what its archiver says; nil if that is unknown, or older than SilentAfter. The age counts from when this
// process first saw it, by its own clock: clocks of nodes differ.
func (a *Archiving) ask(ctx context.Context, site scope.SiteFacts, m *memory, now time.Time) *wire.ArchiverStatus {
	host, _, err := net.SplitHostPort(site.AdminAddr)
	if err != nil {
		return nil // the site has no pod, or none with an address
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, err := a.Ask(ctx, net.JoinHostPort(host, strconv.Itoa(wire.PortSidecar)))
	if err != nil {
		a.Log.Debug("ask for the status of an archiver", "host", host, "error", err)
		return nil
	}
	if !status.At.Equal(m.heardAt) {
		m.heardAt, m.heardSince = status.At, now
	}
	if now.Sub(m.heardSince) > pitr.SilentAfter {
		return nil
	}
	return &status
}
