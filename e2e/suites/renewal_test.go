// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// renewal is how long the kubelet, the sidecars and the operator may take: the kubelet looks once a minute.
const renewal = 5 * time.Minute

// runs names every pod of the group and how often its containers have ended.
func runs(t *testing.T, g *stage.Group) string {
	t.Helper()
	var all []string
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range group.Spec.Sites {
		pod, err := g.Pod(t.Context(), site.Name)
		if err != nil {
			t.Fatal(err)
		}
		ends := int32(0)
		for _, c := range pod.Status.ContainerStatuses {
			ends += c.RestartCount
		}
		for _, c := range pod.Status.InitContainerStatuses {
			ends += c.RestartCount
		}
		all = append(all, fmt.Sprintf("%s %s %d", site.Name, pod.UID, ends))
	}
	return strings.Join(all, "\n")
}

// everySite waits until the answer of each site to a statement is as asked.
func everySite(t *testing.T, g *stage.Group, what string, check func(ctx context.Context, site string) error) {
	t.Helper()
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = stage.Poll(t.Context(), renewal, what, func(ctx context.Context) error {
		for _, site := range group.Spec.Sites {
			if err := check(ctx, site.Name); err != nil {
				return fmt.Errorf("%s: %w", site.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A renewed certificate is shown by every mysqld without a restart, and no client notices.
func TestARenewedCertificateIsShown(t *testing.T) {
	g, _ := whole(t)
	const asked = "SELECT VALUE FROM performance_schema.tls_channel_status WHERE CHANNEL = 'mysql_main' AND PROPERTY = 'Ssl_server_not_after'"
	before, shown := runs(t, g), map[string]string{}
	everySite(t, g, "what each site shows", func(ctx context.Context, site string) error {
		var err error
		shown[site], err = g.RootSQL(ctx, site, asked)
		return err
	})
	w := witnesses(t, g)
	at := load.Now()
	if err := g.RenewTLS(t.Context()); err != nil {
		t.Fatal(err)
	}
	everySite(t, g, "every site to show the renewed certificate", func(ctx context.Context, site string) error {
		now, err := g.RootSQL(ctx, site, asked)
		if err == nil && now == shown[site] {
			err = errors.New("it still shows the former one")
		}
		return err
	})
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
	if after := runs(t, g); after != before {
		t.Errorf("containers were restarted:\n%s\nbefore\n%s", after, before)
	}
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
}

// The key that signs statements is lost from the API: it is made anew, and no client notices.
func TestTheKeyIsReplacedUnderARunningGroup(t *testing.T) {
	g, _ := whole(t)
	before, former := runs(t, g), trustedKeys(t, g)
	w := witnesses(t, g)
	at := load.Now()
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = g.Namespace, v1alpha1.AuthoritySecret(g.Name)
	if err := g.Kube.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	everySite(t, g, "every site to trust the new key alone", func(ctx context.Context, site string) error {
		config := &corev1.ConfigMap{}
		if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.ConfigName(g.Name, site)}, config); err != nil {
			return err
		}
		keys := config.Data["authority.pub"]
		if strings.Contains(keys, strings.TrimSpace(former[site])) || strings.Count(keys, "BEGIN PUBLIC KEY") != 1 {
			return fmt.Errorf("it trusts %d keys, or the former one", strings.Count(keys, "BEGIN PUBLIC KEY"))
		}
		return nil
	})
	// The kubelet brings that change too: until then both are trusted, after it only the key that signs.
	sleep(t, 2*time.Minute)
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
	if after := runs(t, g); after != before {
		t.Errorf("containers were restarted:\n%s\nbefore\n%s", after, before)
	}
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
	// The role moves under the new key. Until then the volumes keep the newest statement as the former one signed it.
	moveRole(t, g)
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
}

func trustedKeys(t *testing.T, g *stage.Group) map[string]string {
	t.Helper()
	keys := map[string]string{}
	everySite(t, g, "the keys of each site", func(ctx context.Context, site string) error {
		config := &corev1.ConfigMap{}
		err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.ConfigName(g.Name, site)}, config)
		keys[site] = config.Data["authority.pub"]
		return err
	})
	return keys
}
