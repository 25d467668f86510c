// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// anchorOf is the key that the pod of a site was made to trust.
func anchorOf(ctx context.Context, g *stage.Group, site string) (ed25519.PublicKey, error) {
	d := &appsv1.Deployment{}
	if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.SiteName(g.Name, site)}, d); err != nil {
		return nil, err
	}
	return wire.ParseKey(d.Annotations[v1alpha1.AnnotationAuthority])
}

// authority is anchorOf for tests that cannot go on without it.
func authority(t *testing.T, g *stage.Group, site string) ed25519.PublicKey {
	t.Helper()
	key, err := anchorOf(t.Context(), g, site)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signingKey is the one in the namespace of the operator.
func signingKey(ctx context.Context, g *stage.Group) (signing.Key, error) {
	group, err := g.Get(ctx)
	if err != nil {
		return signing.Key{}, err
	}
	return (&signing.Keys{Live: g.Kube, Namespace: stage.OperatorNamespace}).Read(ctx, group)
}

// deleteKey loses the key.
func deleteKey(t *testing.T, g *stage.Group) {
	t.Helper()
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = stage.OperatorNamespace, v1alpha1.AuthoritySecret(group.UID)
	if err := g.Kube.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// keptBy says by which key the statement on the volume of a site is signed, for one who trusts what its pod was made to trust.
func keptBy(ctx context.Context, g *stage.Group, site string) (ed25519.PublicKey, error) {
	anchor, err := anchorOf(ctx, g, site)
	if err != nil {
		return nil, err
	}
	out, err := g.Exec(ctx, site, "cat", "/var/lib/mysql/mfg/statement.jws")
	if err != nil {
		return nil, err
	}
	signed, _, _ := strings.Cut(out, "\n") // a line with its checksum follows
	_, by, err := wire.VerifyBy(anchor, wire.Signed(strings.TrimSpace(signed)))
	return by, err
}

// signedWith waits until every site has on its volume what is signed with another key than this one, and with that of the operator.
func signedWith(t *testing.T, g *stage.Group, former ed25519.PublicKey) {
	t.Helper()
	everySite(t, g, "every site to have a statement that is signed with the new key", func(ctx context.Context, site string) error {
		key, err := signingKey(ctx, g)
		if err != nil {
			return err
		}
		by, err := keptBy(ctx, g, site)
		if err == nil && (by.Equal(former) || !by.Equal(key.Public())) {
			err = errors.New("it is signed with the former one")
		}
		return err
	})
}

// pushForged pushes to every site a statement that names another one, signed with a key. Every site must refuse it.
func pushForged(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup, key ed25519.PrivateKey) {
	t.Helper()
	forged, err := wire.Sign(key, wire.Statement{
		Namespace: g.Namespace, Group: g.Name, ActiveSite: replicas(group)[0], Epoch: group.Status.Epoch + 1, IssuedAt: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range stage.Sites {
		pod, err := g.Pod(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		body := strings.NewReader(fmt.Sprintf(`{"statement":%q}`, forged))
		url := fmt.Sprintf("http://%s:8090%s?namespace=%s&group=%s", pod.Status.PodIP, wire.PathActiveSite, g.Namespace, g.Name)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("I3: %s answered a forged statement with %s", site, resp.Status)
		}
	}
}

// Who may change ConfigMaps puts a key of his own into those of all sites, where the version before had the one that is trusted, and
// signs with it. No site takes that word, also not after the kubelet has brought the files; what was changed of ours is put right and told.
func TestATenantsKeyInTheConfigMapIsNotTrustedI3(t *testing.T) {
	g, group := whole(t)
	before := runs(t, g)
	w := witnesses(t, g)
	at := load.Now()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	planted := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	for _, site := range stage.Sites {
		config := &corev1.ConfigMap{}
		if err := g.Kube.Get(t.Context(), client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.ConfigName(g.Name, site)}, config); err != nil {
			t.Fatal(err)
		}
		changed := config.DeepCopy()
		changed.Data["authority.pub"], changed.Data["my.cnf"] = planted, config.Data["my.cnf"]+"\n# by a tenant\n"
		if err := g.Kube.Patch(t.Context(), changed, client.MergeFrom(config)); err != nil {
			t.Fatal(err)
		}
	}
	pushForged(t, g, group, private)
	everySite(t, g, "the ConfigMap to be put right", func(ctx context.Context, site string) error {
		config := &corev1.ConfigMap{}
		err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.ConfigName(g.Name, site)}, config)
		if err == nil && strings.Contains(config.Data["my.cnf"], "by a tenant") {
			err = errors.New("my.cnf is as the tenant left it")
		}
		return err
	})
	if err := stage.Poll(t.Context(), time.Minute, "the event that tells of it", func(ctx context.Context) error {
		events, err := g.Events(ctx)
		if err == nil && !strings.Contains(strings.Join(events, "\n"), "ConfigRestored") {
			err = errors.New("no event ConfigRestored")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	sleep(t, 50*time.Second) // the kubelet brings the files: after 23 s at most (syncFrequency and a half of it), and the same again
	pushForged(t, g, group, private)
	key, err := signingKey(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range stage.Sites {
		if by, err := keptBy(t.Context(), g, site); err != nil || !by.Equal(key.Public()) {
			t.Errorf("I3: %s has a statement signed with %x: %v", site, by, err)
		}
	}
	if after := runs(t, g); after != before {
		t.Errorf("containers were restarted:\n%s\nbefore\n%s", after, before)
	}
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
}
