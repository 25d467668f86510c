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

// backupPassword keeps the password of the account for backups in the accounts Secret of a group that has profiles, whence the pods of
// backups have it. It follows from that of the account for clones, which the servers took when they started: nothing is told to them.
func backupPassword(c client.Client) func(context.Context, *scope.Scope) error {
	return func(ctx context.Context, s *scope.Scope) error {
		backups := s.Group.Spec.Backup
		// The operator's own copy is what the servers take; the other may be what a person wishes.
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
			s.Again = min(s.Again, scope.WhenOvertaken) // somebody wrote the Secret: look at what stands
			return nil
		}
		return fmt.Errorf("write the password of backups: %w", err)
	}
}
