// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

func get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", url, resp.Status, body)
	}
	return string(body), err
}

// Every sidecar has the newest statement on its data volume, signed by the group's authority.
func TestStatementIsOnEveryVolume(t *testing.T) {
	g, group := whole(t)
	for _, site := range stage.Sites {
		key := authority(t, g, site)
		if err := stage.Poll(t.Context(), time.Minute, "the statement of "+site, func(ctx context.Context) error {
			out, err := g.Exec(ctx, site, "cat", "/var/lib/mysql/mfg/statement.jws")
			if err != nil {
				return err
			}
			signed, _, _ := strings.Cut(out, "\n") // a line with its checksum follows
			s, err := wire.Verify(key, wire.Signed(strings.TrimSpace(signed)))
			if err != nil {
				return err
			}
			if s.Epoch != group.Status.Epoch || s.ActiveSite != group.Status.ActiveSite || s.Group != g.Name || s.Namespace != g.Namespace {
				return fmt.Errorf("it is %+v, the group has epoch %d and active site %s", s, group.Status.Epoch, group.Status.ActiveSite)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// A statement that somebody without the key made up must not make a site fence.
func TestForgedStatementIsRefused(t *testing.T) {
	g, group := whole(t)
	w := witnesses(t, g)
	at := load.Now()
	_, forger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	pushForged(t, g, group, forger)
	sleep(t, 5*time.Second)
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
}

// restarts counts how often a container of a site's pod was started again.
func restarts(ctx context.Context, g *stage.Group, site, container string) (int32, error) {
	pod, err := g.Pod(ctx, site)
	if err != nil {
		return 0, err
	}
	for _, c := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
		if c.Name == container {
			return c.RestartCount, nil
		}
	}
	return 0, fmt.Errorf("pod of %s has no container %s", site, container)
}

// A sidecar that dies leaves nobody to keep the lease. The next one fences first and opens only on the operator's word;
// the role stays.
func TestKilledSidecarFencesFirst(t *testing.T) {
	g, before := whole(t)
	w := witnesses(t, g)
	site := before.Status.ActiveSite
	count, err := restarts(t.Context(), g, site, "sidecar")
	if err != nil {
		t.Fatal(err)
	}
	sleep(t, 2*time.Second)
	at := load.Now()
	if err := stage.KillProcess(t.Context(), g, site, stage.Sidecar); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), time.Minute, "the sidecar to be started anew", func(ctx context.Context) error {
		now, err := restarts(ctx, g, site, "sidecar")
		if err == nil && now == count {
			err = fmt.Errorf("it has %d restarts", count)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	after, err := g.AwaitReady(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	v, testimony := judge(t, w, at)
	checkLoss(t, g, v)
	if v.From != v.To || after.Status.Epoch != before.Status.Epoch {
		t.Errorf("%s -> %s, epoch %d -> %d: the role must stay", v.From, v.To, before.Status.Epoch, after.Status.Epoch)
	}
	cut := 0
	for _, j := range testimony.Direct {
		for _, s := range j.States {
			if s.Server.Site == site && s.At > at {
				cut++
			}
		}
		for _, a := range j.Unknown {
			if a.Site == site && a.GaveUp > at {
				cut++
			}
		}
	}
	if cut == 0 {
		t.Errorf("no client of %s was refused or cut: the new sidecar did not fence first", site)
	}
}

// mysqld of the active site is stopped for good by its own operator, root. The group has to notice, and to heal.
func TestSuperReadOnlySetByHandIsUndone(t *testing.T) {
	g, before := whole(t)
	w := witnesses(t, g)
	at := load.Now()
	query(t, g, before.Status.ActiveSite, "SET GLOBAL super_read_only=ON")
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitReady(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	v, _ := judge(t, w, at)
	checkLoss(t, g, v)
}

// A replica that somebody opens by hand is fenced at once, and what was written there is held for a person.
func TestReplicaOpenedByHandIsFenced(t *testing.T) {
	g, before := whole(t)
	victim := replicas(before)[1]
	query(t, g, victim, "SET GLOBAL super_read_only=OFF; SET GLOBAL read_only=OFF")
	if err := stage.Poll(t.Context(), time.Minute, "the fence of "+victim, func(ctx context.Context) error {
		out, err := g.RootSQL(ctx, victim, "SELECT @@super_read_only")
		if err == nil && strings.TrimSpace(out) != "1" {
			err = fmt.Errorf("super_read_only = %s", strings.TrimSpace(out))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	awaitChange(t, g, "the group to be whole again", func(group *v1alpha1.MysqlFailoverGroup) bool {
		return group.Status.ActiveSite == before.Status.ActiveSite && group.Status.Epoch == before.Status.Epoch
	})
	if _, err := g.AwaitReady(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
}
