// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TakeGroup takes a group that somebody else made, as `kubectl mfg restore` does, with what writers need of it.
func (s *Stage) TakeGroup(ctx context.Context, namespace, name string) (*Group, error) {
	g := &Group{Stage: s, Namespace: namespace, Name: name}
	group, err := g.Get(ctx)
	if err != nil {
		return nil, err
	}
	if group.Spec.TLS != nil {
		if err := g.ensureTLS(ctx, group.Spec); err != nil {
			return nil, err
		}
	}
	return g, g.ensurePassword(ctx)
}

// OrderBackup makes a MysqlBackup, as `kubectl apply` does.
func (g *Group) OrderBackup(ctx context.Context, name, profile string) error {
	b := &v1alpha1.MysqlBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: name},
		Spec:       v1alpha1.MysqlBackupSpec{Group: g.Name, Profile: profile},
	}
	if err := g.Kube.Create(ctx, b); err != nil {
		return fmt.Errorf("order backup %s: %w", name, err)
	}
	return nil
}

// Backup reads a MysqlBackup.
func (g *Group) Backup(ctx context.Context, name string) (*v1alpha1.MysqlBackup, error) {
	b := &v1alpha1.MysqlBackup{}
	if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, b); err != nil {
		return nil, fmt.Errorf("read backup %s: %w", name, err)
	}
	return b, nil
}

// DescribeBackup says in one line how a backup is.
func DescribeBackup(b *v1alpha1.MysqlBackup) string {
	st := b.Status
	return fmt.Sprintf("backup %s: %s, attempt %d, site %q, %s: %s", b.Name, st.Phase, st.Attempts, st.Site, st.Reason, st.Message)
}

// AwaitBackup waits until a check of a backup says nothing against it, telling what changes meanwhile. A backup that has failed is not
// waited for, unless the check takes it.
func (g *Group) AwaitBackup(
	ctx context.Context, name string, limit time.Duration, check func(*v1alpha1.MysqlBackup) error,
) (*v1alpha1.MysqlBackup, error) {
	var last *v1alpha1.MysqlBackup
	var failed error
	said := ""
	err := Poll(ctx, limit, "backup "+name, func(ctx context.Context) error {
		b, err := g.Backup(ctx, name)
		if err != nil {
			return err
		}
		last = b
		line := DescribeBackup(b)
		if line != said {
			g.Say("  %s", line)
			said = line
		}
		err = check(b)
		if err != nil && b.Status.Phase == v1alpha1.BackupFailed {
			failed = err
			return nil
		}
		return err
	})
	return last, errors.Join(err, failed)
}

// BackupNotCompleted says why a backup is not there.
func BackupNotCompleted(b *v1alpha1.MysqlBackup) error {
	if b.Status.Phase != v1alpha1.BackupCompleted {
		return errors.New(DescribeBackup(b))
	}
	return nil
}

// MakeBackup orders a backup and waits until it is there.
func (g *Group) MakeBackup(ctx context.Context, name, profile string, limit time.Duration) (*v1alpha1.MysqlBackup, error) {
	if err := g.OrderBackup(ctx, name, profile); err != nil {
		return nil, err
	}
	return g.AwaitBackup(ctx, name, limit, BackupNotCompleted)
}

// BackupSessions is how many sessions backups have on a site.
func (g *Group) BackupSessions(ctx context.Context, site string) (string, error) {
	out, err := g.RootSQL(ctx, site, "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_USER = 'mfg_backup'")
	return strings.TrimSpace(out), err
}

// DescribeRestore says in one line how the restore of a group is.
func DescribeRestore(group *v1alpha1.MysqlFailoverGroup) string {
	r := group.Status.Restore
	if r == nil {
		return "status says nothing of a restore"
	}
	return fmt.Sprintf("restore of %s into %q: %s, %d %%, %s: %s", r.Backup, r.Site, r.Phase, r.Progress, r.Reason, r.Message)
}

// AwaitRestore waits until a check of the group's restore says nothing against it.
func (g *Group) AwaitRestore(
	ctx context.Context, limit time.Duration, what string, check func(*v1alpha1.MysqlFailoverGroup) error,
) (*v1alpha1.MysqlFailoverGroup, error) {
	said := ""
	return g.Await(ctx, limit, what, func(group *v1alpha1.MysqlFailoverGroup) error {
		if line := DescribeRestore(group); line != said {
			g.Say("  %s", line)
			said = line
		}
		return check(group)
	})
}

// RestoreNotDone says why the first site does not have its data from a backup.
func RestoreNotDone(group *v1alpha1.MysqlFailoverGroup) error {
	if r := group.Status.Restore; r == nil || r.Phase != v1alpha1.RestoreCompleted {
		return errors.New(DescribeRestore(group))
	}
	return nil
}
