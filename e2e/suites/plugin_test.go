// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// answer is what one run of the plugin did.
type answer struct {
	code        int
	out, errOut string
	took        time.Duration
}

// plugin runs bin/kubectl-mfg as a user of the lab would, without a terminal.
func plugin(t *testing.T, args ...string) answer {
	t.Helper()
	program, err := lab.Program("kubectl-mfg")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append([]string{"-n", namespace}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = lab.Lab.Environ(), &out, &errOut
	began := time.Now()
	err = cmd.Run()
	a := answer{out: out.String(), errOut: errOut.String(), took: time.Since(began)}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		a.code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	t.Logf("kubectl mfg %s: exit code %d after %s", strings.Join(args, " "), a.code, a.took.Round(time.Millisecond))
	return a
}

// want fails the test unless the plugin ended with a code; then it reads what it printed.
func (a answer) want(t *testing.T, code int, into any) answer {
	t.Helper()
	if a.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", a.code, code, a.out, a.errOut)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(a.out), into); err != nil {
			t.Fatalf("%v: %s", err, a.out)
		}
	}
	return a
}

// prints fails the test unless a word stands by itself on stdout.
func (a answer) prints(t *testing.T, word string) {
	t.Helper()
	if !slices.Contains(strings.Fields(a.out), word) {
		t.Errorf("does not print %q:\n%s%s", word, a.out, a.errOut)
	}
}

// says fails the test unless the plugin said something, on stdout or stderr.
func (a answer) says(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(a.out+a.errOut, w) {
			t.Errorf("does not say %q:\n%s%s", w, a.out, a.errOut)
		}
	}
}

// explained is what a test reads of an explanation.
type explained struct {
	Explanation *wire.Explanation `json:"explanation"`
}

// moved is what a test reads of the report of a failover.
type moved struct {
	Outcome          string `json:"outcome"`
	Reason           string `json:"reason"`
	Epoch            int64  `json:"epoch"`
	WritePauseMillis *int64 `json:"writePauseMillis"`
	LostTransactions *int64 `json:"lostTransactions"`
}

// otherCandidate is the primary-candidate that is not active.
func otherCandidate(t *testing.T, group *v1alpha1.MysqlFailoverGroup) string {
	t.Helper()
	for _, s := range group.Spec.Sites {
		if s.Role == v1alpha1.PrimaryCandidate && s.Name != group.Status.ActiveSite {
			return s.Name
		}
	}
	t.Fatal("no other candidate")
	return ""
}

// afterCooldown waits until nothing that an earlier test left behind would keep a failover from happening.
func afterCooldown(t *testing.T) {
	t.Helper()
	err := stage.Poll(t.Context(), time.Minute, "the group to be able to fail over", func(context.Context) error {
		if a := plugin(t, "explain", name); a.code != 0 {
			return errors.New(a.out + a.errOut)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A planned failover by the plugin, under load: explained before, followed through its phases, measured, and in the
// history afterwards. No acknowledged row is missing.
func TestPluginMovesTheRole(t *testing.T) {
	g, before := whole(t)
	to := otherCandidate(t, before)
	w := witnesses(t, g)

	afterCooldown(t)
	var e explained
	plugin(t, "explain", name, "-o", "json").want(t, 0, &e)
	if e.Explanation == nil || e.Explanation.DecidedBy != "ActiveSiteAcceptsWrites" || len(e.Explanation.Candidates) != 2 {
		t.Errorf("explanation %+v", e.Explanation)
	}
	plugin(t, "explain", name).want(t, 0, nil).says(t, "healthy; would fail over to "+to, "would fail over automatically")

	at := load.Now()
	m, a := movedByPlugin(t, g, to)
	if m.Outcome != "Succeeded" || m.WritePauseMillis == nil || m.LostTransactions == nil || *m.LostTransactions != 0 || m.Epoch <= before.Status.Epoch {
		t.Errorf("%s%s", a.out, a.errOut)
	}
	a.says(t, "Planned failover of "+name, "asked the operator")
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if err := w.StopService(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, _ := judge(t, w, at)
	if len(v.Missing) > 0 || v.To != to {
		t.Errorf("%d acknowledged rows are missing; the role is with %s, want %s", len(v.Missing), v.To, to)
	}

	var history struct {
		Items []v1alpha1.FailoverRecord `json:"items"`
	}
	plugin(t, "history", name, "-o", "json").want(t, 0, &history)
	if len(history.Items) == 0 || history.Items[0].Epoch != m.Epoch || history.Items[0].To != to || history.Items[0].Kind != v1alpha1.FailoverPlanned {
		t.Errorf("history %+v", history.Items)
	}
	plugin(t, "history", name).want(t, 0, nil).says(t, "planned", "Timeline", "nothing: every transaction of "+before.Status.ActiveSite)
	plugin(t, "events", name, "--since", "10m").want(t, 0, nil).says(t, "Failover")
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Fatal(err)
	}
	s := plugin(t, "status", name).want(t, 0, nil)
	s.says(t, "live", "* "+to)
	t.Logf("status answered within %s", s.took.Round(time.Millisecond))
}

// While a group is paused the plugin refuses, explain says what is in the way, and resume takes it away.
func TestPluginPauses(t *testing.T) {
	g, group := whole(t)
	to := otherCandidate(t, group)
	t.Cleanup(func() {
		if now, err := g.Get(context.Background()); err == nil && now.Annotations[v1alpha1.AnnotationPauseUntil] != "" {
			delete(now.Annotations, v1alpha1.AnnotationPauseUntil)
			_ = lab.Kube.Update(context.Background(), now)
		}
	})
	afterCooldown(t)
	plugin(t, "pause", name, "--for", "10m", "--yes").want(t, 0, nil).says(t, "paused until")
	var e explained
	plugin(t, "explain", name, "-o", "json").want(t, 3, &e)
	if e.Explanation == nil || !slices.Contains(e.Explanation.Blockers, "Paused") {
		t.Errorf("explanation %+v", e.Explanation)
	}
	plugin(t, "failover", name, "--to", to, "--yes").want(t, 5, nil).says(t, "refused (Paused)", "kubectl mfg resume "+name)
	plugin(t, "status", name).says(t, "paused until")
	plugin(t, "resume", name, "--yes").want(t, 0, nil)
	var resumed explained
	plugin(t, "explain", name, "-o", "json").want(t, 0, &resumed)
	if resumed.Explanation == nil || slices.Contains(resumed.Explanation.Blockers, "Paused") {
		t.Errorf("still paused: %+v", resumed.Explanation)
	}
}

// Each refusal has an exit code and a next step, and changes nothing.
func TestPluginRefuses(t *testing.T) {
	g, before := whole(t)
	to := otherCandidate(t, before)
	tests := map[string]struct {
		args string
		code int
		says []string
	}{
		"unknown site":        {"failover " + name + " --to nowhere --yes", 5, []string{"no site", "its sites are"}},
		"active already":      {"failover " + name + " --to " + before.Status.ActiveSite + " --yes", 5, []string{"is active already"}},
		"dr-only":             {"failover " + name + " --to south --yes", 5, []string{"dr-only", "kubectl edit mfg"}},
		"loss without need":   {"failover " + name + " --to " + to + " --accept-data-loss --yes", 5, []string{"accepts writes", "kubectl mfg failover"}},
		"nothing to give up":  {"failover " + name + " --abort --yes", 5, []string{"no planned failover"}},
		"clone of the active": {"reclone " + name + " " + before.Status.ActiveSite + " --yes", 5, []string{"move the role first"}},
		"nobody to ask":       {"failover " + name + " --to " + to, 2, []string{"no --yes", "nothing was changed"}},
		"unknown group":       {"explain nothing", 1, []string{"kubectl mfg status -A"}},
		"server dry run":      {"failover " + name + " --to " + to + " --dry-run=server", 0, []string{"the API server would take it"}},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			plugin(t, strings.Fields(tc.args)...).want(t, tc.code, nil).says(t, tc.says...)
		})
	}
	after, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.Status.Epoch != before.Status.Epoch || after.Annotations[v1alpha1.AnnotationPlannedFailover] != "" {
		t.Errorf("something changed: epoch %d, annotations %v", after.Status.Epoch, after.Annotations)
	}
}

// The other verbs, each once, as a user would.
func TestPluginTools(t *testing.T) {
	_, group := whole(t)
	active := group.Status.ActiveSite
	plugin(t, "mysql", name, active, "-e", "SELECT @@super_read_only", "--", "-N").want(t, 0, nil).prints(t, "0")
	plugin(t, "mysql", name, otherCandidate(t, group), "-e", "SELECT @@super_read_only", "--", "-N").want(t, 0, nil).prints(t, "1")
	doctor := plugin(t, "doctor", name)
	doctor.says(t, "every site has a node of its own", "budgets keep a drain", "leads")
	if doctor.code != 0 && doctor.code != 3 {
		t.Errorf("exit code %d: %s", doctor.code, doctor.errOut)
	}
	plugin(t, "list").want(t, 0, nil).says(t, name)
	plugin(t, "status", name, "-o", "tree").want(t, 0, nil).says(t, "* "+active, "└─")
	plugin(t, "version").want(t, 0, nil).says(t, "Operator")

	file := filepath.Join(t.TempDir(), "report.tar.gz")
	plugin(t, "report", name, "-f", file).want(t, 0, nil)
	listed, err := exec.CommandContext(t.Context(), "tar", "tzf", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"group.yaml", "status.yaml", "doctor.yaml", "/mysql.log", "/operator.log"} {
		if !strings.Contains(string(listed), want) {
			t.Errorf("the report lacks %s:\n%s", want, listed)
		}
	}
	checkNoSecrets(t, file)
}

// checkNoSecrets looks for every value of every Secret of the group in a report.
func checkNoSecrets(t *testing.T, file string) {
	t.Helper()
	whole, err := exec.CommandContext(t.Context(), "tar", "xzOf", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := lab.Core.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for _, s := range secrets.Items {
		for key, value := range s.Data {
			if len(bytes.TrimSpace(value)) < 8 || strings.HasSuffix(key, ".crt") {
				continue // certificates and public keys are no secrets
			}
			values++
			secret := string(bytes.TrimSpace(value))
			texts := map[string]string{secret: "as it is"}
			inBase64(texts, secret, "base64")
			for text := range texts {
				if bytes.Contains(whole, []byte(text)) {
					t.Errorf("I11: the report holds %s of Secret %s, as it is or in base64", key, s.Name)
					break
				}
			}
		}
	}
	if values == 0 {
		t.Error("no Secret was looked for")
	}
}

// A drill moves the role there and back, and judges.
func TestPluginDrills(t *testing.T) {
	g, group := whole(t)
	a := plugin(t, "drill", name, "--target", "30s", "--yes", "-o", "junit")
	for try := 1; a.code != 0 && try < ordersMost; try++ {
		if !slices.ContainsFunc(passing, func(reason v1alpha1.Reason) bool { return strings.Contains(a.out+a.errOut, string(reason)) }) {
			break
		}
		t.Logf("the drill is done again: %s%s", a.out, a.errOut)
		var err error
		if group, err = g.AwaitReady(t.Context(), comeBack); err != nil {
			t.Fatal(err)
		}
		a = plugin(t, "drill", name, "--target", "30s", "--yes", "-o", "junit")
	}
	a.want(t, 0, nil)
	// Two moves, and the rows of the canary.
	a.says(t, `failures="0"`, `tests="3"`, "there "+group.Status.ActiveSite, "canaryPauseMillis=", `<property name="canaryMissing" value="0">`)
	t.Log(a.out)
	if left := query(t, g, group.Status.ActiveSite, "SHOW SCHEMAS LIKE 'mfg\\_drill%'"); left != "" {
		t.Errorf("the drill left %s behind", left)
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "drill.xml"), []byte(a.out), 0o600); err != nil {
		t.Error(err)
	}
	plugin(t, "status", name).says(t, "* "+group.Status.ActiveSite)
}

// Read access to the custom resource alone is enough to look, but not to know that a failover would happen; the right to forward a port is enough to see live data.
func TestPluginNeedsLittle(t *testing.T) {
	_, group := whole(t)
	reader := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"mysqlfailovergroups"}, Verbs: []string{"get", "list"}}
	allow(t, namespace, "reader", reader)
	allow(t, namespace, "forwarder", reader)
	allow(t, stage.OperatorNamespace, "forwarder",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, Verbs: []string{"create", "get"}})
	plugin(t, "status", name, "--as", "reader").want(t, 0, nil).says(t, "last known status", "services/proxy")
	plugin(t, "explain", name, "--as", "reader").want(t, 3, nil).says(t, "did not explain itself")
	plugin(t, "history", name, "--as", "reader").want(t, 0, nil)
	plugin(t, "status", name, "--as", "forwarder").want(t, 0, nil).says(t, "live")
	plugin(t, "failover", name, "--to", otherCandidate(t, group), "--as", "reader", "--yes").want(t, 1, nil).says(t, "forbidden", "can-i patch")
}

// allow gives a user rights in a namespace for the time of the test.
func allow(t *testing.T, in, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: in, Name: "plugin-test-" + user}
	objects := []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}},
	}
	for _, o := range objects {
		if err := lab.Kube.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lab.Kube.Delete(context.Background(), o) })
	}
}
