// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// backupPassword keeps the backup account's password in the accounts Secret of a group that has profiles; backup pods take it from
// there. It is derived from the password of the clone account, which the servers took when they started, so they need no message.
func backupPassword(c client.Client) func(context.Context, *scope.Scope) error {
	return func(ctx context.Context, s *scope.Scope) error {
		backups := s.Group.Spec.Backup
		// The servers accept the operator's own copy; the other one may be what a person wants.
		clone := string(s.Accounts.Data[v1alpha1.AccountClone+v1alpha1.PasswordKnown])
		if backups == nil || len(backups.Profiles) == 0 || clone == "" {
			return nil
		}
		want := mysql.BackupPassword(clone)
		if string(s.Accounts.Data[v1alpha1.AccountBackup]) == want {
			return nil
		}
		before := s.Accounts.DeepCopy()
		s.Accounts.Data[v1alpha1.AccountBackup] = []byte(want)
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		err := c.Patch(ctx, s.Accounts, patch, client.FieldOwner(v1alpha1.ManagerController))
		if err == nil {
			return nil
		}
		s.Accounts = before
		if apierrors.IsConflict(err) {
			s.Again = min(s.Again, scope.WhenOvertaken) // the Secret was written meanwhile: read it again
			return nil
		}
		return fmt.Errorf("write the password of backups: %w", err)
	}
}
