// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// newAuthority is how long the replacement of an authority may take with the shortest time for clients: the kubelets bring ca.crt twice
// and the certificate once, and the former authority stays for ten minutes after that.
const newAuthority = 30 * time.Minute

// madeGroup makes a group whose certificate the operator makes: nobody made an authority or a Secret for it.
func madeGroup(t *testing.T) *stage.Group {
	t.Helper()
	if err := (&stage.Group{Stage: lab, Namespace: "suite-made", Name: "made"}).Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	spec := stage.DefaultSpec("made")
	spec.TLS = &v1alpha1.TLSSpec{}
	g, err := lab.NewGroup(t.Context(), "suite-made", "made", spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			g.Diagnose(context.Background(), "certificates-made")
		}
		if err := g.Delete(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if _, err := g.AwaitReady(t.Context(), bringUp); err != nil {
		t.Fatal(err)
	}
	return g
}

// The operator makes the certificate of a group, and replaces its authority under load: no container is restarted, and clients that
// read ca.crt while it had both authorities notice nothing, neither those that stay connected nor those that come.
func TestTheAuthorityIsReplacedUnderLoad(t *testing.T) {
	g := madeGroup(t)
	former, err := g.ReadMadeAuthorities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := runs(t, g)
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"ca=2m"}}}`, v1alpha1.AnnotationRotateCertificate)
	if err := g.Kube.Patch(t.Context(), group, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	err = stage.Poll(t.Context(), renewal, "ca.crt to have both authorities", func(ctx context.Context) error {
		now, err := g.ReadMadeAuthorities(ctx)
		if err == nil && strings.Count(string(now), "BEGIN CERTIFICATE") != 2 {
			err = fmt.Errorf("it has %d", strings.Count(string(now), "BEGIN CERTIFICATE"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w, clients := witnesses(t, g), watchNewcomers(t, g)
	at := load.Now()
	if _, err := g.Await(t.Context(), newAuthority, "the authority to be replaced", func(group *v1alpha1.MysqlFailoverGroup) error {
		if last := group.Status.LastRequest(v1alpha1.RequestRotateCertificate); last == nil || last.Outcome != v1alpha1.RequestDone {
			return fmt.Errorf("the last answer is %+v, conditions %+v", last, group.Status.Conditions)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	clients.end(t)
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
	if len(v.Missing) > 0 || v.Lost > 0 {
		t.Errorf("%d acknowledged rows are missing, %d reported lost", len(v.Missing), v.Lost)
	}
	now, err := g.ReadMadeAuthorities(t.Context())
	if err != nil || bytes.Contains(now, bytes.TrimSpace(former)) || strings.Count(string(now), "BEGIN CERTIFICATE") != 1 {
		t.Errorf("the former authority is still trusted, or nobody is: %v, %d authorities", err, strings.Count(string(now), "BEGIN CERTIFICATE"))
	}
	if after := runs(t, g); after != before {
		t.Errorf("containers were restarted:\n%s\nbefore\n%s", after, before)
	}
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
}
