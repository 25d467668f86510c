// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// TestTheWatchNeedsNoReconcile covers I24: sessions end although no reconcile comes.
func TestTheWatchNeedsNoReconcile(t *testing.T) {
	mb := order("monday", running, func(mb *v1alpha1.MysqlBackup) { mb.Status.Site = "b" })
	w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
	w.facts.G.Target = "b"
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- w.b.Start(ctx) }()
	did := ""
	for ; did == "" && ctx.Err() == nil; did = w.took() {
		time.Sleep(yieldInterval / 10)
	}
	end()
	if err := <-ended; err != nil || did != "end sessions on b" {
		t.Errorf("did %q: %v", did, err)
	}
}

// keeps notes what a manager is given to run.
type keeps struct {
	manager.Manager
	runs []manager.Runnable
}

func (k *keeps) Add(r manager.Runnable) error {
	k.runs = append(k.runs, r)
	return k.Manager.Add(r)
}

// TestTheManagerRunsTheWatch covers I24.
func TestTheManagerRunsTheWatch(t *testing.T) {
	w := newWorld(t, nil)
	scheme := w.c.Scheme()
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	again := true
	mgr, err := ctrl.NewManager(&rest.Config{Host: "127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &again},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return w.c, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	k := &keeps{Manager: mgr}
	if err := w.b.SetupWithManager(k); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(k.runs, func(r manager.Runnable) bool { return r == manager.Runnable(w.b) }) {
		t.Errorf("it is given %d things to run, and the watch is none of them", len(k.runs))
	}
	if !w.b.NeedLeaderElection() {
		t.Error("an operator that does not lead ends sessions too")
	}
}
