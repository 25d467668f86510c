// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// renewal is how long the kubelet, the sidecars and the operator may take: the kubelets of the lab look every 15 s, others once a minute.
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

// shownByMySQL is the certificate that mysqld of a site shows, by the day on which it ends.
func shownByMySQL(ctx context.Context, g *stage.Group, site string) (string, error) {
	return g.RootSQL(ctx, site, "SELECT VALUE FROM performance_schema.tls_channel_status WHERE CHANNEL = 'mysql_main' AND PROPERTY = 'Ssl_server_not_after'")
}

// A renewed certificate is shown by every mysqld and by every cache of either engine, without a restart: no session is lost, and no
// client of MySQL notices.
func TestARenewedCertificateIsShown(t *testing.T) { renewedIsShown(t, v1alpha1.CacheValkey) }

func renewedIsShown(t *testing.T, engine v1alpha1.CacheEngine) {
	t.Helper()
	g, _ := whole(t)
	cacheOn(t, g, stage.CacheSpec(engine))
	before, caches, shown := runs(t, g), cachePods(t, g), map[string]string{}
	everySite(t, g, "what each site shows", func(ctx context.Context, site string) (err error) {
		shown[site], err = shownByMySQL(ctx, g, site)
		return err
	})
	w, users := witnesses(t, g), sessions(t, g, "renewal")
	at := load.Now()
	if err := g.RenewTLS(t.Context()); err != nil {
		t.Fatal(err)
	}
	everySite(t, g, "every site to show the renewed certificate", func(ctx context.Context, site string) error {
		now, err := shownByMySQL(ctx, g, site)
		if err == nil && now == shown[site] {
			err = errors.New("it still shows the former one")
		}
		return err
	})
	everySite(t, g, "every cache to show the renewed certificate", g.CacheShowsRenewed)
	cacheHome(t, g, cacheMoves)
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
	if after := runs(t, g); after != before {
		t.Errorf("containers were restarted:\n%s\nbefore\n%s", after, before)
	}
	if after := cachePods(t, g); !slices.Equal(after, caches) {
		t.Errorf("pods %v, before %v", after, caches)
	}
	kept, _ := endSessions(t, users)
	for _, l := range kept.Lost {
		t.Errorf("session %d: write %d was acknowledged, and found was %s", l.Worker, l.Seq, l.Found)
	}
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
}

// cachePods names every pod of the group's caches.
func cachePods(t *testing.T, g *stage.Group) []string {
	t.Helper()
	list, err := g.CachePods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range list {
		all = append(all, fmt.Sprintf("%s %s", p.Name, p.UID))
	}
	slices.Sort(all)
	return all
}
