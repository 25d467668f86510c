// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/adopt"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// plainGroup is the healthy group, encryption asked for and refused.
func plainGroup(t *testing.T) *fakeAPI {
	t.Helper()
	f := loadHealthy(t)
	g := &f.groups[0]
	g.Annotations = map[string]string{}
	g.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true}
	g.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls"}
	g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionEncryptionReady, Status: metav1.ConditionFalse,
		Reason: "EncryptionAdoptionRefused", Message: "existing tablespaces would stay plaintext"})
	return f
}

// adopts plays the operator: a site is sealed with every third look, the last one stays where it is told to.
func adopts(f *fakeAPI, stuckAt v1alpha1.KeyringPhase) func(int) {
	return func(n int) {
		g := &f.groups[0]
		if g.Annotations[v1alpha1.AnnotationEncryptionAdopt] != adopt.Confirmed {
			return
		}
		at := &v1alpha1.EncryptionAtRestStatus{Sealed: true}
		for i, s := range g.Spec.Sites {
			k := v1alpha1.SiteKeyringStatus{Name: s.Name, Phase: v1alpha1.KeyringSealed, KeyringVersion: 1, Coverage: v1alpha1.CoverageStatus{UnencryptedTablespaces: 5}}
			if n < 3*(i+1) || i == 2 && stuckAt != "" {
				k.Phase, k.Work, at.Sealed = v1alpha1.KeyringUnsealed, v1alpha1.KeyringRotation, false
			}
			if i == 2 && stuckAt != "" {
				k.Phase = stuckAt
			}
			at.Sites = append(at.Sites, k)
		}
		g.Status.EncryptionAtRest = at
	}
}

func TestAdopt(t *testing.T) {
	change := func(f func(*v1alpha1.MysqlFailoverGroup)) func(*fakeAPI) {
		return func(api *fakeAPI) { f(&api.groups[0]) }
	}
	tests := map[string]struct {
		reason      string
		args, stdin string
		change      func(*fakeAPI)
		stuckAt     v1alpha1.KeyringPhase
		code        int
		patches     int
		want        []string
	}{
		"Done": {stdin: "orders\n", patches: 1, want: []string{"EncryptionAdoptionRefused", "Type the name of the group", "paris Sealed; frankfurt Unsealed",
			"the keyring of every site is sealed; 5 tablespaces of paris are in the clear", "kubectl mfg adopt orders -n shop --tables"}},
		"JustYes":      {stdin: "y\n", code: cli.ExitUsage, want: []string{"not confirmed"}},
		"NoTerminal":   {code: cli.ExitUsage, want: []string{"no --yes"}},
		"DryRun":       {args: "--dry-run", want: []string{"Would     set annotation mysql-mfg.io/encryption-adopt=confirm", "cannot be turned off again"}},
		"DryRunServer": {args: "--dry-run=server", patches: 1, want: []string{"the API server would take it"}},
		"NoWait":       {args: "--yes --wait=false", patches: 1, want: []string{"asked for"}},
		"NotAsked": {args: "--yes", code: cli.ExitRefused, want: []string{"not asked for in the specification", `kubectl patch mfg orders -n shop --type merge -p '{"spec":{"encryptionAtRest":{"enabled":true}}}'`},
			change: change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.EncryptionAtRest = nil })},
		"NoTLS": {args: "--yes", code: cli.ExitRefused, want: []string{"has no TLS", "make a new group"},
			change: change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.TLS, g.Spec.EncryptionAtRest = nil, nil })},
		"Paused": {args: "--yes", code: cli.ExitRefused, want: []string{"kubectl mfg resume orders"},
			change: change(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue}}
			})},
		"Moving": {args: "--yes", code: cli.ExitRefused, want: []string{"the role is moving to frankfurt"},
			change: change(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Transition = &v1alpha1.Transition{To: "frankfurt"} })},
		"Again": {reason: "what was accepted is only waited for, and not asked again", want: []string{"the keyring of every site is sealed"},
			change: change(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Annotations[v1alpha1.AnnotationEncryptionAdopt] = adopt.Confirmed
			})},
		"Over": {want: []string{"nothing was changed: the group is encrypted already"},
			change: change(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sealed: true}
			})},
		"Stuck": {args: "--yes --timeout 5s", stuckAt: v1alpha1.KeyringFailed, code: cli.ExitTimeout, patches: 1,
			want: []string{"madrid is half done, Failed", "do not delete, restart or drain its pod", "to wait on: kubectl mfg adopt orders -n shop"}},
		"TablesDryRun": {args: "--tables --dry-run", code: cli.ExitUsage, want: []string{"--tables changes nothing"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := plainGroup(t)
			if tc.change != nil {
				tc.change(f)
			}
			got := run(t, f, runOptions{stdin: tc.stdin, tick: adopts(f, tc.stuckAt)}, append([]string{"adopt", "orders", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || len(f.patched) != tc.patches {
				t.Errorf("%s: exit code %d, want %d; patched %v: %+v", tc.reason, got.code, tc.code, f.patched, got)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.out+got.errOut, want) {
					t.Errorf("lacks %q:\n%s%s", want, got.out, got.errOut)
				}
			}
		})
	}
}

// mysqlShell is a cluster whose mysql client gives one answer.
type mysqlShell struct {
	shell
	group  *v1alpha1.MysqlFailoverGroup
	answer []byte
}

func (s *mysqlShell) Group(context.Context, string, string) (*v1alpha1.MysqlFailoverGroup, error) {
	return s.group, nil
}

func (s *mysqlShell) Kube() kubernetes.Interface { return s.kube }

func (s *mysqlShell) Exec(ctx context.Context, e pods.Execution) error {
	_, _ = e.Out.Write(s.answer)
	return s.shell.Exec(ctx, e)
}

// listed runs adopt --tables where the client answers with lines.
func listed(t *testing.T, f *fakeAPI, answer []byte, args string) ran {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: map[string]string{
		v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelSite: "paris"}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-root"}, Data: map[string][]byte{"password": []byte("hunter2")}}
	s := &mysqlShell{group: &f.groups[0], answer: answer}
	s.kube = fake.NewClientset(pod, secret)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errOut bytes.Buffer
	a := newApp(cli.Environment{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut},
		Terminal: func() (int, bool) { return 0, false }, Interactive: func() bool { return true }})
	a.connect = func() (Cluster, error) { return s, nil }
	code := a.main(t.Context(), append([]string{"adopt", "orders", "-n", "shop", "--tables"}, strings.Fields(args)...))
	if line := strings.Join(s.ran.Command, " "); code < cli.ExitRefused && (strings.Contains(line, "hunter2") || s.ran.TTY || !strings.Contains(line, "--skip-column-names")) {
		t.Errorf("ran %q", line)
	}
	return ran{code, out.String(), errOut.String()}
}

// TestAdoptTables: statements that a client can run, and the same as typed JSON.
func TestAdoptTables(t *testing.T) {
	rows, err := os.ReadFile(filepath.Join("testdata", "adopt", "rows.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	sealed := plainGroup(t)
	sealed.groups[0].Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sealed: true}
	for file, tc := range map[string]struct {
		f    *fakeAPI
		args string
	}{
		"tables.sql": {sealed, ""}, "tables.json": {sealed, "-o json"}, "tables-not-yet.sql": {plainGroup(t), ""},
	} {
		got := listed(t, tc.f, rows, tc.args)
		if got.code != cli.ExitDegraded || got.errOut != "" {
			t.Errorf("%s: %+v", file, got)
		}
		golden(t, filepath.Join("testdata", "adopt", file), got.out)
	}
	// Before every site is sealed nothing may reach a client: each line is a comment, whatever names hold.
	for line := range strings.Lines(listed(t, plainGroup(t), rows, "").out) {
		if !strings.HasPrefix(line, "-- ") {
			t.Errorf("would be run: %q", line)
		}
	}
	var rep adopt.PlaintextReport
	if err := json.Unmarshal([]byte(listed(t, sealed, rows, "-o json").out), &rep); err != nil || rep.Kind != "MfgPlaintextReport" || !rep.Ready {
		t.Errorf("%v %+v", err, rep)
	}
	if got := listed(t, sealed, nil, ""); got.code != cli.ExitHealthy || got.out != "-- Nothing of users is in the clear on paris.\n" {
		t.Errorf("%+v", got)
	}
	if got := listed(t, sealed, []byte("ERROR\n"), ""); got.code != cli.ExitError {
		t.Errorf("an answer that cannot be read is none: %+v", got)
	}
	nobody := plainGroup(t)
	nobody.groups[0].Status.ActiveSite = ""
	if got := listed(t, nobody, rows, ""); got.code != cli.ExitRefused || !strings.Contains(got.errOut, "no site is active") {
		t.Errorf("%+v", got)
	}
}
