// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/passwords"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// entriesOf reads the accounts Secret.
func entriesOf(secret *corev1.Secret) map[string]passwords.Entry {
	out := map[string]passwords.Entry{}
	for _, name := range passwords.Accounts {
		get := func(suffix string) string { return string(secret.Data[name+suffix]) }
		out[name] = passwords.Entry{
			Current: get(""), Known: get(v1alpha1.PasswordKnown), Next: get(v1alpha1.PasswordNext), Previous: get(v1alpha1.PasswordPrevious),
		}
	}
	return out
}

func serialOf(secret *corev1.Secret) int64 {
	n, err := strconv.ParseInt(string(secret.Data[v1alpha1.PasswordSerial]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// orderOf is the ID of the order for which the passwords that come were made.
func orderOf(secret *corev1.Secret) string { return string(secret.Data[v1alpha1.PasswordOrder]) }

// Settling names the wait for nobody to go by an older content of the Secret any more.
func Settling(secret *corev1.Secret) string { return "passwords/" + contentOf(secret) }

// contentOf names a content of the Secret, in memory only.
func contentOf(secret *corev1.Secret) string {
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		fmt.Fprintf(sum, "%s %d ", key, len(secret.Data[key]))
		_, _ = sum.Write(secret.Data[key])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// content is what the Secret is to hold.
type content struct {
	entries map[string]passwords.Entry
	serial  int64
	order   string
}

// putPasswords writes the Secret, if it is still what was read.
func (r *Passwords) putPasswords(ctx context.Context, s *scope.Scope, c content) error {
	before := s.Accounts.DeepCopy()
	secret := s.Accounts
	put := func(key, value string) {
		if value == "" {
			delete(secret.Data, key)
			return
		}
		secret.Data[key] = []byte(value)
	}
	for name, e := range c.entries {
		put(name, e.Current)
		put(name+v1alpha1.PasswordKnown, e.Known)
		put(name+v1alpha1.PasswordNext, e.Next)
		put(name+v1alpha1.PasswordPrevious, e.Previous)
	}
	if known := c.entries[v1alpha1.AccountClone].Known; known != "" && len(secret.Data[v1alpha1.AccountBackup]) > 0 {
		// In the same write: the archiver, which knows no other password, is refused from when the former one is retired.
		put(v1alpha1.AccountBackup, mysql.BackupPassword(known))
	}
	// A Secret of an earlier version has no serial, and nothing can be told of who logs in with it.
	put(v1alpha1.PasswordSerial, strconv.FormatInt(max(c.serial, 1), 10))
	put(v1alpha1.PasswordOrder, c.order)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, secret, patch, client.FieldOwner(v1alpha1.ManagerController)); err != nil {
		s.Accounts = before
		return fmt.Errorf("write passwords: %w", err)
	}
	s.Again = min(s.Again, scope.WhenOvertaken)
	r.nudgePods(ctx, s)
	return nil
}

// nudgePods has the kubelets look at the Secret at once: a pod that changes has its volumes looked at, otherwise it takes a minute. What
// does not succeed only takes longer.
func (r *Passwords) nudgePods(ctx context.Context, s *scope.Scope) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1alpha1.AnnotationPasswordSerial: fmt.Sprintf("%d/%s", serialOf(s.Accounts), s.Accounts.ResourceVersion),
	}}})
	if err != nil {
		return
	}
	for _, pod := range s.Pods {
		target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		_ = r.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagerController))
	}
}
