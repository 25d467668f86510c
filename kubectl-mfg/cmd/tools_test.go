// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	utilexec "k8s.io/client-go/util/exec"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// shell is a cluster whose containers run nothing, but remember what they were told.
type shell struct {
	Cluster
	kube  kubernetes.Interface
	err   error
	ran   pods.Execution
	typed string
}

func (s *shell) Kube() kubernetes.Interface { return s.kube }

func (s *shell) Group(context.Context, string, string) (*v1alpha1.MysqlFailoverGroup, error) {
	return &v1alpha1.MysqlFailoverGroup{Spec: v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{{Name: "paris"}}}}, nil
}

func (s *shell) Exec(_ context.Context, e pods.Execution) error {
	s.ran = e
	typed, err := io.ReadAll(e.In)
	s.typed = string(typed)
	return errors.Join(s.err, err)
}

func TestMySQL(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: map[string]string{
		v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelSite: "paris"}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-root"}, Data: map[string][]byte{"password": []byte("hunter2")}}
	tests := map[string]struct {
		op       mysqlclient.Op
		terminal bool
		err      error
		typed    string
		command  string
		code     int
		says     string
	}{
		"Terminal":  {op: mysqlclient.Op{Site: "paris", User: "root"}, terminal: true, typed: "typed", command: "mysql --no-defaults --user=root --socket=/run/mfg/mysqld.sock --password"},
		"Statement": {op: mysqlclient.Op{Site: "paris", User: "root", Execute: "SELECT 1", Args: []string{"-N"}}, typed: "hunter2\n", command: "mysql --no-defaults --user=root --socket=/run/mfg/mysqld.sock -N --execute=SELECT 1"},
		"Pipe":      {op: mysqlclient.Op{Site: "paris", User: "root"}, typed: "hunter2\ntyped", command: "mysql --no-defaults --user=root --socket=/run/mfg/mysqld.sock"},
		"OtherUser": {op: mysqlclient.Op{Site: "paris", User: "app"}, code: cli.ExitUsage, says: "only --login root"},
		"NoSite":    {op: mysqlclient.Op{Site: "rome", User: "root"}, code: cli.ExitError, says: "its sites are paris"},
		"NoClient":  {op: mysqlclient.Op{Site: "paris", User: "root"}, err: utilexec.CodeExitError{Code: 127, Err: errors.New("x")}, code: cli.ExitError, says: "has no mysql client"},
		"NoShell":   {op: mysqlclient.Op{Site: "paris", User: "root"}, err: errors.New(`exec: "sh": executable file not found in $PATH`), code: cli.ExitError, says: "kubectl port-forward -n shop service/mysql-orders-paris"},
		"Failed":    {op: mysqlclient.Op{Site: "paris", User: "root"}, err: utilexec.CodeExitError{Code: 1, Err: errors.New("x")}, code: cli.ExitError, says: "code 1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.op.Namespace, tc.op.Group = "shop", "orders"
			s := &shell{kube: fake.NewClientset(pod, secret), err: tc.err}
			env := cli.Environment{IOStreams: genericiooptions.IOStreams{In: strings.NewReader("typed"), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, Interactive: func() bool { return tc.terminal }}
			_, err := tc.op.Run(t.Context(), env, s)
			if tc.code != 0 {
				if err == nil || !strings.Contains(err.Error(), tc.says) || errors.Is(err, cli.ErrUsage) != (tc.code == cli.ExitUsage) {
					t.Errorf("%v", err)
				}
				return
			}
			line := strings.Join(s.ran.Command, " ")
			if err != nil || s.typed != tc.typed || !strings.HasSuffix(line, tc.command) || s.ran.TTY != tc.terminal {
				t.Errorf("%v, typed %q, ran %q", err, s.typed, line)
			}
			// I11: what is on a command line is in the audit log of the API server.
			if strings.Contains(line, "hunter2") {
				t.Errorf("the password is on the command line: %s", line)
			}
		})
	}
}

func TestCompletionOfSites(t *testing.T) {
	for args, want := range map[string][]string{
		"__complete failover -n shop orders --to ":      {"paris\tprimary-candidate, primary, active", "frankfurt\tprimary-candidate, replica", "madrid\tdr-only, replica", ":4", ""},
		"__complete reclone -n shop orders ":            {"paris\tprimary-candidate, primary, active", "frankfurt\tprimary-candidate, replica", "madrid\tdr-only, replica", ":4", ""},
		"__complete cache promote -n shop orders --to ": {"paris\tprimary-candidate, primary, active", "frankfurt\tprimary-candidate, replica", "madrid\tdr-only, replica", ":4", ""},
		"__complete cache cli -n shop orders --site ":   {"paris\tprimary-candidate, primary, active", "frankfurt\tprimary-candidate, replica", "madrid\tdr-only, replica", ":4", ""},
		"__complete cache status -n shop ":              {"orders\tRunning, active site paris", "stock\tFailingOver, active site frankfurt", ":4", ""},
		"__complete mysql -n shop ":                     {"orders\tRunning, active site paris", "stock\tFailingOver, active site frankfurt", ":4", ""},
		"__complete completion ":                        {"bash", "zsh", "fish", "powershell", "install", ":4", ""},
	} {
		got := runCompletion(t, fleet(t), strings.Split(args, " "))
		if diff := cmp.Diff(want, strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

func TestCompletionInstall(t *testing.T) {
	dir := t.TempDir()
	got := run(t, &fakeAPI{}, runOptions{env: map[string]string{"PATH": "/bin:" + dir}}, "completion", "install", "--dir", dir)
	path := filepath.Join(dir, "kubectl_complete-mfg")
	if got.code != 0 || got.errOut != "" || !strings.Contains(got.out, path) {
		t.Errorf("%+v", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("%v %v: kubectl could not run it", info, err)
	}
	if body, _ := os.ReadFile(path); !strings.Contains(string(body), `kubectl mfg __complete "$@"`) {
		t.Errorf("%s", body)
	}
	if got := run(t, &fakeAPI{}, runOptions{}, "completion", "install", "--dir", dir); !strings.Contains(got.errOut, "not in PATH") {
		t.Errorf("%+v", got)
	}
	// Krew: PATH leads to a link, the program lies in a store.
	bin, store := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(store, "kubectl-mfg"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(store, "kubectl-mfg"), filepath.Join(bin, "kubectl-mfg")); err != nil {
		t.Fatal(err)
	}
	if got := run(t, &fakeAPI{}, runOptions{env: map[string]string{"PATH": "/bin:" + bin}}, "completion", "install"); got.code != 0 || !exists(filepath.Join(bin, completionScript)) || exists(filepath.Join(store, completionScript)) {
		t.Errorf("%+v", got)
	}
	if got := run(t, &fakeAPI{}, runOptions{env: map[string]string{"PATH": store + "x"}}, "completion", "install"); got.code != cli.ExitUsage || !strings.Contains(got.errOut, "--dir ~/.local/bin") {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}} {
		if got := run(t, &fakeAPI{}, runOptions{}, args...); got.code != cli.ExitUsage {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// TestReportVerb: what cannot be read is named, and the rest is written.
func TestReportVerb(t *testing.T) {
	f := loadHealthy(t)
	t.Chdir(t.TempDir())
	got := run(t, f, runOptions{}, "report", "orders", "-n", "shop")
	if got.code != cli.ExitHealthy || !strings.Contains(got.out, "mfg-report-shop-orders-20261103-120000.tar.gz") || !strings.Contains(got.errOut, "left out nodes.yaml") {
		t.Errorf("%+v", got)
	}
	info, err := os.Stat("mfg-report-shop-orders-20261103-120000.tar.gz")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v: it is nobody else's", info, err)
	}
	if got := run(t, f, runOptions{}, "report", "orders", "-n", "shop"); got.code != cli.ExitError {
		t.Errorf("an older report was overwritten: %+v", got)
	}
	if got := run(t, f, runOptions{}, "report", "orders", "-n", "shop", "-f", "-"); got.code != cli.ExitHealthy || !strings.HasPrefix(got.out, "\x1f\x8b") {
		t.Errorf("exit code %d, %.20q", got.code, got.out)
	}
}

// TestReportOutOfTime: a log that does not come costs the time, and the exit code and the last words say that something is missing.
func TestReportOutOfTime(t *testing.T) {
	f := loadHealthy(t)
	t.Chdir(t.TempDir())
	over := make(chan struct{})
	f.objects = map[string]any{"/api/v1/namespaces/shop/pods": corev1.PodList{Items: []corev1.Pod{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "mysql"}}}}}}}
	f.answers["/api/v1/namespaces/shop/pods/p/log"] = func(http.ResponseWriter) { <-over }
	time.AfterFunc(3*time.Second, func() { close(over) })
	got := run(t, f, runOptions{}, "report", "orders", "-n", "shop", "--timeout", "2s")
	if got.code != cli.ExitDegraded || !strings.Contains(got.out, ".tar.gz") ||
		!strings.Contains(got.errOut, "left out pods/shop/p/mysql.log: no time was left") || !strings.Contains(got.errOut, "--timeout 4s") {
		t.Errorf("%+v", got)
	}
}

// TestReportInterrupted: a person who ends a report is not told to allow it more time.
func TestReportInterrupted(t *testing.T) {
	f := loadHealthy(t)
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	f.answers["/api/v1/nodes"] = func(w http.ResponseWriter) {
		cancel()
		status(403, metav1.StatusReasonForbidden, "no")(w)
	}
	got := run(t, f, runOptions{ctx: ctx}, "report", "orders", "-n", "shop")
	if got.code != cli.ExitDegraded || !strings.Contains(got.errOut, "you ended it") || strings.Contains(got.errOut, "--timeout") {
		t.Errorf("%+v", got)
	}
}

// TestReportOfThePlugin: what the plugin itself adds is as complete as what its verbs print.
func TestReportOfThePlugin(t *testing.T) {
	op := &reportOp{Namespace: "shop", Group: "orders", OperatorNamespace: "mfg-system"}
	f := inspected(t)
	extra := op.extra(t.Context(), cli.Environment{Now: func() time.Time { return noon }}, clusterAt(t, f))
	if s := string(extra["status.yaml"]); strings.Contains(s, "GROUP") || !strings.Contains(s, "kubectl mfg failover orders -n shop") {
		t.Errorf("commands name no group:\n%s", s)
	}
	var v versionReport
	if err := yaml.UnmarshalStrict(extra["version.yaml"], &v); err != nil || v.APIVersion == "" || v.Kind != "MfgVersionReport" || v.Client == "" ||
		v.Go == "" || v.Platform == "" || v.Operator != f.live.Operator || v.Verdict == "" {
		t.Errorf("%v: %s", err, extra["version.yaml"])
	}
}

// TestDoctorVerb: a person who may read nothing but the group gets an answer, and no judgement.
func TestDoctorVerb(t *testing.T) {
	f := loadHealthy(t)
	got := run(t, f, runOptions{width: 100}, "doctor", "orders", "-n", "shop")
	if got.code != cli.ExitDegraded || !strings.Contains(got.out, "no Lease mfg-operator") && !strings.Contains(got.out, "UNKNOWN") {
		t.Errorf("%+v", got)
	}
	f.live = nil
	if got := run(t, f, runOptions{}, "doctor", "orders", "-n", "shop", "-o", "jsonpath={.findings[0].level}"); got.code != cli.ExitDegraded || got.out != "FAIL" {
		t.Errorf("%+v", got)
	}
	f = loadHealthy(t)
	lost(f)
	if got := run(t, f, runOptions{}, "doctor", "orders", "-n", "shop", "-o", `jsonpath={.findings[?(@.check=="failover")].level}`); got.code != cli.ExitDegraded || got.out != "FAIL" {
		t.Errorf("an outage: %+v", got)
	}
}

// TestEveryVerbTeaches: help has an example that begins with what a person types.
func TestEveryVerbTeaches(t *testing.T) {
	a := newApp(cli.Environment{IOStreams: discarded()})
	grouped := 0
	for _, c := range a.root().Commands() {
		if c.Name() == "help" || c.Hidden {
			continue
		}
		if c.GroupID != "" {
			grouped++
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short help %q", c.Name(), c.Short)
		}
		if c.Name() == "version" || c.Name() == "completion" {
			continue
		}
		if !strings.Contains(c.Example, "kubectl mfg "+c.Name()) {
			t.Errorf("%s does not teach", c.Name())
		}
	}
	if grouped < 15 {
		t.Errorf("%d verbs have a group", grouped)
	}
}

// TestExamplesParse: every command in an example is one that the plugin takes.
func TestExamplesParse(t *testing.T) {
	a := newApp(cli.Environment{IOStreams: discarded()})
	for _, c := range a.root().Commands() {
		for line := range strings.Lines(c.Example) {
			checkCommand(t, strings.TrimSpace(line))
		}
	}
}

// checkCommand takes a line of shell as far as it is ours, and lets the plugin read it without doing anything.
func checkCommand(t *testing.T, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " | ")
	line, _, _ = strings.Cut(line, " > ")
	line, _, _ = strings.Cut(line, "  #")
	rest, ours := strings.CutPrefix(line, "kubectl mfg ")
	if !ours {
		return
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	a := newApp(cli.Environment{IOStreams: discarded(), Getenv: os.Getenv})
	a.perform = func(_ context.Context, op operation, _ func(context.Context, Cluster) (int, error)) error {
		return op.Validate()
	}
	a.offline = func(_ context.Context, op operation, _ func(context.Context) (int, error)) error {
		return op.Validate()
	}
	args := words(rest)
	if args[0] == "completion" || args[0] == "version" {
		return
	}
	if code := a.main(t.Context(), args); code != 0 {
		out, _ := a.env.ErrOut.(*bytes.Buffer)
		t.Errorf("%s: exit code %d: %s", line, code, out)
	}
}

// words splits a line as a shell does, as far as examples go.
func words(line string) []string {
	var out []string
	var word strings.Builder
	quote := rune(0)
	for _, r := range line + " " {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote != 0 && r == quote:
			quote = 0
		case r == ' ' && quote == 0:
			if word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return out
}
