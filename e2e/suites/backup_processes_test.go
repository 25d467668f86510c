// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// lookAtProcesses is how often the processes of this machine are looked at, which are those of all nodes.
const lookAtProcesses = 100 * time.Millisecond

// processWatch looks into the arguments and the environment of every process, for as long as it runs.
type processWatch struct {
	mu    sync.Mutex
	found map[string]string
	looks int
	end   func()
}

// watchProcesses begins to look for needles. A process of the test has two decoys, one in its arguments and one in its environment: a watch
// that does not find them has seen nothing.
func watchProcesses(t *testing.T, needles map[string]string) *processWatch {
	t.Helper()
	argument, variable := "decoy-"+rand.Text(), "decoy-"+rand.Text()
	all := map[string]string{argument: "the decoy in arguments", variable: "the decoy in an environment"}
	for needle, what := range needles {
		all[needle] = what
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	decoy := exec.CommandContext(ctx, "sleep")
	decoy.Args, decoy.Env = []string{argument, "3600"}, []string{"DECOY=" + variable}
	if err := decoy.Start(); err != nil {
		t.Fatal(err)
	}
	w, finder, done := &processWatch{found: map[string]string{}}, newFinder(t, all), make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w.look(finder)
			select {
			case <-ctx.Done():
			case <-time.After(lookAtProcesses):
			}
		}
	}()
	w.end = sync.OnceFunc(func() { stop(); <-done; _ = decoy.Wait() })
	t.Cleanup(w.end)
	return w
}

func (w *processWatch) look(f *finder) {
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		for _, name := range []string{"cmdline", "environ"} {
			raw, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue // it has ended
			}
			f.in(raw, func(needle string) {
				comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
				w.mu.Lock()
				defer w.mu.Unlock()
				w.found[f.what[needle]] = name + " of " + string(comm)
			})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
}

// judge ends it: nothing but the decoys may have been found.
func (w *processWatch) judge(t *testing.T) {
	t.Helper()
	w.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, decoy := range []string{"the decoy in arguments", "the decoy in an environment"} {
		if w.found[decoy] == "" {
			t.Errorf("%s was not found in %d looks: they prove nothing", decoy, w.looks)
		}
		delete(w.found, decoy)
	}
	for what, where := range w.found {
		t.Errorf("%s is in the %s", what, where)
	}
	t.Logf("arguments and environments of all processes were looked at %d times", w.looks)
}

// credentials are the secrets that a backup needs, by what they are.
func (p *backupStory) credentials(t *testing.T, g *stage.Group) map[string]string {
	t.Helper()
	needles := map[string]string{p.id.String(): "the age identity"}
	for _, of := range []struct {
		secret, key, what string
	}{
		// That of root is not among them: no backup needs it, and the tests give it to their own mysql in an argument.
		{stage.S3Credentials, v1alpha1.BackupSecretKey, "the key of the storage"},
		{v1alpha1.AccountsSecret(g.Name), "", "a password of the operator's accounts"},
	} {
		secret := &corev1.Secret{}
		if err := g.Kube.Get(t.Context(), client.ObjectKey{Namespace: g.Namespace, Name: of.secret}, secret); err != nil {
			t.Fatal(err)
		}
		for key, value := range secret.Data {
			if (of.key == "" || of.key == key) && len(value) >= headLen {
				needles[string(value)] = of.what + " (" + key + ")"
			}
			if of.secret == v1alpha1.AccountsSecret(g.Name) && key == "clone" {
				needles[mysql.BackupPassword(string(value))] = "the password of backups"
			}
		}
	}
	return needles
}
