// SPDX-License-Identifier: Apache-2.0

//go:build lab && stories

package suites

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// keepTokens remembers every token that there is until it is stopped: none is left by the time its site is sealed.
func (v *vault) keepTokens(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	seen, done := map[string]string{}, make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var secrets corev1.SecretList
			if v.Kube.List(ctx, &secrets, client.InNamespace(v.Namespace)) == nil {
				for _, s := range secrets.Items {
					if token := string(s.Data[v1alpha1.KeyringTokenKey]); token != "" {
						seen[token] = s.Name
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return func() {
		cancel()
		<-done
		for token, name := range seen {
			v.token(token, "the token in "+name)
		}
	}
}
