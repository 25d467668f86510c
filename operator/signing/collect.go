// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// collectEvery is how often keys of groups that are gone are looked for. A group that is deleted takes its key with it; only one whose
// finalizer somebody took off, or whose namespace was removed by force, leaves one.
const collectEvery = time.Hour

// Collector deletes keys whose group is gone.
type Collector struct {
	Keys *Keys
	// Namespaces are those that this operator looks after; none means all.
	Namespaces []string
	Log        *slog.Logger
}

// NeedLeaderElection says that only the operator that leads deletes anything.
func (c Collector) NeedLeaderElection() bool { return true }

// Start collects until ctx ends.
func (c Collector) Start(ctx context.Context) error {
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := c.Collect(ctx); err != nil && ctx.Err() == nil {
			c.Log.Warn("look for keys of groups that are gone", "error", err)
		}
	}, collectEvery, 0.1, false)
	return nil
}

// Collect deletes the keys of groups that are proven to be gone: their UID is not among all groups, as the API server and no cache
// lists them after the key was seen. A UID is never used again. Whatever cannot be read deletes nothing.
func (c Collector) Collect(ctx context.Context) error {
	var secrets corev1.SecretList
	if err := c.Keys.Live.List(ctx, &secrets, client.InNamespace(c.Keys.Namespace), client.MatchingLabels{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelName: v1alpha1.NameAuthority,
	}); err != nil {
		return fmt.Errorf("list keys: %w", err)
	}
	if len(secrets.Items) == 0 {
		return nil
	}
	alive, err := c.groups(ctx)
	if err != nil {
		return err
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		namespace := secret.Labels[v1alpha1.LabelKeyOfNamespace]
		if alive[secret.Name] || namespace == "" || len(c.Namespaces) > 0 && !slices.Contains(c.Namespaces, namespace) {
			continue
		}
		c.Log.Info("deleting the key of a group that is gone", "secret", secret.Name, "namespace", namespace, "group", secret.Labels[v1alpha1.LabelKeyOfGroup])
		uid := secret.UID
		if err := client.IgnoreNotFound(c.Keys.Client.Delete(ctx, secret, client.Preconditions{UID: &uid})); err != nil {
			return fmt.Errorf("delete key %s: %w", secret.Name, err)
		}
	}
	return nil
}

// groups are the names of the keys of all groups there are.
func (c Collector) groups(ctx context.Context) (map[string]bool, error) {
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""} // all
	}
	alive := map[string]bool{}
	for _, namespace := range namespaces {
		var groups v1alpha1.MysqlFailoverGroupList
		if err := c.Keys.Live.List(ctx, &groups, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list groups: %w", err)
		}
		for _, group := range groups.Items {
			alive[v1alpha1.AuthoritySecret(group.UID)] = true
		}
	}
	return alive, nil
}
