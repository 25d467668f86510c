// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// disasterPage is followed word for word, by bash: what a person has on the worst day is this page.
const disasterPage = "disaster.md"

// rtoLimit bounds the time from the first command of the page until applications can write. A group of a few rows takes a minute, and
// six and a half on a machine with too much to do; what is above that is a step that waits for something.
const rtoLimit = 20 * time.Minute

// worstDay is what was kept of a group, and how long each step of the page took.
type worstDay struct {
	keep  string
	env   []string
	steps []dayStep
}

type dayStep struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// do follows one block of the page.
func (d *worstDay) do(t *testing.T, name string) string {
	t.Helper()
	began := time.Now()
	out := documented(t, disasterPage, name, d.env...)
	d.steps = append(d.steps, dayStep{name, time.Since(began).Seconds()})
	return out
}

// keepFor keeps what the page says that must be kept, while the group lives.
func (p *backupStory) keepFor(t *testing.T, g *stage.Group) *worstDay {
	t.Helper()
	d := &worstDay{keep: filepath.Join(t.TempDir(), "keep")}
	d.env = []string{
		withPlugin(), "NS=" + g.Namespace, "GROUP=" + g.Name, "PROFILE=nightly", "KEEP=" + d.keep,
		"CREDENTIALS=" + stage.S3Credentials, "CA=" + stage.S3CA, "IDENTITY=" + identitySecret,
	}
	d.do(t, "keep")
	d.steps = nil // it is not of that day
	d.kept(t, g.Namespace, stage.S3Credentials, map[string]string{v1alpha1.BackupAccessKeyID: "accessKeyID", v1alpha1.BackupSecretKey: "secretAccessKey"})
	d.kept(t, g.Namespace, stage.S3CA, map[string]string{v1alpha1.BackupCAKey: "ca.crt"})
	d.kept(t, g.Namespace, g.Name+"-tls", map[string]string{"tls.crt": "tls.crt", "tls.key": "tls.key", "ca.crt": "tls-ca.crt"})
	d.write(t, "identity.txt", []byte(p.id.String()+"\n"))
	return d
}

func (d *worstDay) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.keep, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// kept writes keys of a Secret into files, as a person has kept them.
func (d *worstDay) kept(t *testing.T, namespace, name string, files map[string]string) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := lab.Kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	for key, file := range files {
		if len(secret.Data[key]) == 0 {
			t.Fatalf("Secret %s has no key %s", name, key)
		}
		d.write(t, file, secret.Data[key])
	}
}

// follow does what the page says from the operator on, and measures how long it takes until applications can write.
func (d *worstDay) follow(t *testing.T, p *backupStory) *stage.Group {
	t.Helper()
	began := time.Now()
	for _, step := range []string{"operator", "secrets", "certificate", "look"} {
		d.do(t, step)
	}
	if out := d.do(t, "restore"); !strings.Contains(out, "restored") {
		t.Errorf("the page says that it ends with `restored`: %s", out)
	}
	d.do(t, "ready")
	rto := time.Since(began)
	t.Logf("RTO: applications could write %s after the first command of docs/%s: %v", rto.Round(100*time.Millisecond), disasterPage, d.steps)
	if rto > rtoLimit {
		t.Errorf("it took %s, longer than %s", rto, rtoLimit)
	}
	d.figures(t, rto)
	g := p.taken(t)
	group, err := g.AwaitReady(t.Context(), bringUp)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the group was whole after %s", time.Since(began).Round(100*time.Millisecond))
	p.isWhole(t, g, group)
	return g
}

// figures leaves the times for people, by the test that measured them.
func (d *worstDay) figures(t *testing.T, rto time.Duration) {
	t.Helper()
	path := filepath.Join(lab.Repo, "out", "disaster.json")
	all := map[string]any{}
	if raw, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(raw, &all) // what cannot be read is replaced
	}
	all[t.Name()] = map[string]any{"at": time.Now().UTC().Format(time.RFC3339), "rtoSeconds": rto.Seconds(), "steps": d.steps}
	raw, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(raw, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// taken is the group that the page made, which goes with the test.
func (p *backupStory) taken(t *testing.T) *stage.Group {
	t.Helper()
	g, err := lab.TakeGroup(t.Context(), backupNamespace, backupGroup)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
