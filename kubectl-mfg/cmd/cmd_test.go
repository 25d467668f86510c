// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
)

// TestArguments shows which operation each command line makes, without running it.
func TestArguments(t *testing.T) {
	status := func(change func(*inspect.Status)) operation {
		op := &inspect.Status{Namespace: "default", OperatorNamespace: "mfg-system", Interval: 2 * time.Second, Color: "auto"}
		change(op)
		return op
	}
	tests := map[string]struct {
		args string
		want operation
		code int
	}{
		"All":         {"status", status(func(*inspect.Status) {}), 0},
		"One":         {"status orders -n shop", status(func(o *inspect.Status) { o.Namespace, o.Group = "shop", "orders" }), 0},
		"ByShortKind": {"status mfg/orders", status(func(o *inspect.Status) { o.Group = "orders" }), 0},
		"ByFullKind":  {"status mysqlfailovergroup.mysql-mfg.io/orders", status(func(o *inspect.Status) { o.Group = "orders" }), 0},
		"EveryFlag": {"status -A -w --interval 5s --color never --operator-namespace ops -o wide", status(func(o *inspect.Status) {
			o.AllNamespaces, o.Watch, o.Interval, o.Color, o.OperatorNamespace, o.Output.Format = true, true, 5*time.Second, "never", "ops", "wide"
		}), 0},
		"JSONPath":      {"status -o jsonpath={.items[*].health}", status(func(o *inspect.Status) { o.Output.Format = "jsonpath={.items[*].health}" }), 0},
		"OtherKind":     {"status pod/orders", nil, cli.ExitUsage},
		"EmptyName":     {"status mfg/", nil, cli.ExitUsage},
		"TwoGroups":     {"status a b", nil, cli.ExitUsage},
		"UnknownFlag":   {"status --nope", nil, cli.ExitUsage},
		"UnknownFormat": {"status -o xml", nil, cli.ExitUsage},
		"BadTemplate":   {"status -o go-template={{", nil, cli.ExitUsage},
		"UnknownVerb":   {"stats", nil, cli.ExitUsage},
		"VersionArgs":   {"version x", nil, cli.ExitUsage},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			var got operation
			a := newApp(cli.Environment{IOStreams: discarded()})
			a.perform = func(_ context.Context, op operation, _ func(context.Context, Cluster) (int, error)) error {
				got = op
				return op.Validate()
			}
			if code := a.main(t.Context(), strings.Fields(tc.args)); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			ignore := cmpopts.IgnoreFields(cli.Output{}, "Printer")
			if diff := cmp.Diff(tc.want, got, ignore); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func discarded() genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
}

func TestValidate(t *testing.T) {
	good := inspect.Status{OperatorNamespace: "mfg-system", Color: "auto", Interval: time.Second}
	if err := good.Validate(); err != nil {
		t.Errorf("good: %v", err)
	}
	for name, change := range map[string]func(*inspect.Status){
		"GroupAndAll":   func(o *inspect.Status) { o.Group, o.AllNamespaces = "orders", true },
		"BadName":       func(o *inspect.Status) { o.Group = "Or/ders" },
		"BadColor":      func(o *inspect.Status) { o.Color = "blue" },
		"NoOperator":    func(o *inspect.Status) { o.OperatorNamespace = "" },
		"HastyInterval": func(o *inspect.Status) { o.Watch, o.Interval = true, time.Millisecond },
	} {
		op := good
		change(&op)
		if op.Validate() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// fleet is several groups in two namespaces.
func fleet(t *testing.T) *fakeAPI {
	t.Helper()
	f := load(t, filepath.Join("testdata", "status", "healthy"))
	blocked := load(t, filepath.Join("testdata", "status", "blocked"))
	blocked.groups[0].Name, blocked.live.Groups[0].Group = "stock", "stock"
	fresh := load(t, filepath.Join("testdata", "status", "new"))
	fresh.groups[0].Name, fresh.groups[0].Namespace = "blog", "press"
	f.groups = append(f.groups, blocked.groups[0], fresh.groups[0])
	f.live.Groups = append(f.live.Groups, blocked.live.Groups[0])
	return f
}

func TestStatusLists(t *testing.T) {
	tests := map[string]struct {
		args  string
		width int
		code  int
	}{
		"list.txt":      {"status -n shop", 80, cli.ExitDegraded},
		"list-all.txt":  {"status -A", 80, cli.ExitDegraded},
		"list-wide.txt": {"status -A -o wide", 0, cli.ExitDegraded},
		"list-name.txt": {"status -n shop -o name", 0, cli.ExitDegraded},
		"list.jsonpath": {"status -A -o jsonpath={.kind}:{.items[*].summary}", 0, cli.ExitDegraded},
		"list.template": {"status -A --template {{range.items}}{{.metadata.name}}={{.health}};{{end}}", 0, cli.ExitDegraded},
		"colour.txt":    {"status -A --color always", 80, cli.ExitDegraded},
	}
	for file, tc := range tests {
		t.Run(file, func(t *testing.T) {
			got := run(t, fleet(t), runOptions{width: tc.width, env: map[string]string{"TERM": "dumb"}}, strings.Fields(tc.args)...)
			if got.code != tc.code || got.errOut != "" {
				t.Errorf("exit code %d, want %d; stderr %q", got.code, tc.code, got.errOut)
			}
			golden(t, filepath.Join("testdata", file), got.out)
		})
	}
}

// TestStatusNothing: no group is no error, and stdout stays empty for pipes.
func TestStatusNothing(t *testing.T) {
	f := &fakeAPI{}
	if got := run(t, f, runOptions{}, "status", "-n", "shop"); got.code != 0 || got.out != "" || !strings.Contains(got.errOut, "-A") {
		t.Errorf("%+v", got)
	}
	if got := run(t, f, runOptions{}, "status", "-A", "-o", "json"); got.code != 0 || !strings.Contains(got.out, `"items": []`) {
		t.Errorf("%+v", got)
	}
	if len(f.asked) != 2 {
		t.Errorf("asked %v: the operator has nothing to say of no group", f.asked)
	}
}

// TestErrors: each says what to do next.
func TestErrors(t *testing.T) {
	one := groupsPath + "/namespaces/shop/mysqlfailovergroups/orders"
	all := groupsPath + "/mysqlfailovergroups"
	noKind := func(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }
	tests := map[string]struct {
		path   string
		answer func(http.ResponseWriter)
		args   string
		want   []string
	}{
		"NoSuchGroup":   {"", nil, "status nope -n shop", []string{`"nope"`, "kubectl mfg status -A"}},
		"KindMissing":   {one, noKind, "status orders -n shop", []string{"is mfg installed?", "helm install"}},
		"KindMissingA":  {all, noKind, "status -A", []string{"is mfg installed?", "helm install"}},
		"Forbidden":     {one, status(403, metav1.StatusReasonForbidden, "user x may not"), "status orders -n shop", []string{"user x may not", "kubectl auth can-i get", "-n shop"}},
		"ForbiddenAll":  {all, status(403, metav1.StatusReasonForbidden, "user x may not"), "status -A", []string{"kubectl auth can-i get", "-A"}},
		"Unauthorized":  {one, status(401, metav1.StatusReasonUnauthorized, "who?"), "status orders -n shop", []string{"log in"}},
		"InternalError": {one, status(500, metav1.StatusReasonInternalError, "broken"), "status orders -n shop", []string{"broken"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := fleet(t)
			if tc.answer != nil {
				f.answers[tc.path] = tc.answer
			}
			got := run(t, f, runOptions{}, strings.Fields(tc.args)...)
			if got.code != cli.ExitError || got.out != "" {
				t.Errorf("exit code %d, stdout %q", got.code, got.out)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.errOut, want) {
					t.Errorf("stderr %q lacks %q", got.errOut, want)
				}
			}
		})
	}
}

// TestAPIServerIsSilent: one that takes a connection and never answers is as little of use as one that refuses it.
func TestAPIServerIsSilent(t *testing.T) {
	stuck := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for _, args := range []string{"status orders -n shop", "status -A", "events orders -n shop"} {
		got := run(t, stuck, runOptions{}, append(strings.Fields(args), "--request-timeout=50ms")...)
		if got.code != cli.ExitError || !strings.Contains(got.errOut, "kubectl config current-context") || !strings.Contains(got.errOut, "--request-timeout") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestOperatorNotReachable: the custom resource is enough where it is only this user who may not ask; an operator that should
// have answered and did not keeps no status true.
func TestOperatorNotReachable(t *testing.T) {
	tests := map[string]struct {
		answer func(http.ResponseWriter)
		code   int
		want   string
	}{
		"Forbidden":   {status(403, metav1.StatusReasonForbidden, "no"), cli.ExitHealthy, "services/proxy"},
		"NoService":   {status(404, metav1.StatusReasonNotFound, `services "mfg-auxiliary" not found`), cli.ExitDegraded, "--operator-namespace"},
		"NoEndpoints": {status(503, metav1.StatusReasonServiceUnavailable, `no endpoints available for service "x"`), cli.ExitDegraded, "no pod is ready"},
		"Unreachable": {status(503, metav1.StatusReasonServiceUnavailable, "error trying to reach service: dial tcp: i/o timeout"), cli.ExitDegraded, "i/o timeout"},
		"NotLeading":  {operatorSays(503, wire.ReasonNotLeading), cli.ExitDegraded, "does not lead"},
		"BadRequest":  {operatorSays(400, wire.ReasonBadRequest), cli.ExitDegraded, "the operator's words"},
		"NoJSON":      {func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }, cli.ExitDegraded, "read the operator's answer"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := load(t, filepath.Join("testdata", "status", "healthy"))
			f.answers[livePath] = tc.answer
			got := run(t, f, runOptions{}, "status", "orders", "-n", "shop")
			if got.code != tc.code || got.errOut != "" {
				t.Errorf("exit code %d, want %d; stderr %q", got.code, tc.code, got.errOut)
			}
			if !strings.Contains(got.out, "operator not reachable: last known status") || !strings.Contains(got.out, tc.want) {
				t.Errorf("stdout does not say why (%q):\n%s", tc.want, got.out)
			}
		})
	}
	t.Run("OtherNamespace", func(t *testing.T) {
		f := load(t, filepath.Join("testdata", "status", "healthy"))
		run(t, f, runOptions{}, "status", "orders", "-n", "shop", "--operator-namespace", "ops")
		if !slices.Contains(f.asked, strings.Replace(livePath, "mfg-system", "ops", 1)) {
			t.Errorf("asked %v", f.asked)
		}
	})
}

// steps makes a watch end after some looks, with a change before each.
func steps(cancel context.CancelFunc, changes ...func()) func(context.Context, time.Duration) bool {
	n := 0
	return func(ctx context.Context, _ time.Duration) bool {
		if n == len(changes) {
			cancel()
			return false
		}
		changes[n]()
		n++
		return ctx.Err() == nil
	}
}

func TestWatch(t *testing.T) {
	f := load(t, filepath.Join("testdata", "status", "healthy"))
	site := &f.live.Groups[0].Sites[1]
	path := groupsPath + "/namespaces/shop/mysqlfailovergroups/orders"
	changes := []func(){
		func() { f.live.Groups[0].ObservedAt = noon },                                               // the same
		func() { *site.LagSeconds = 7 },                                                             // a change
		func() { f.answers[path] = status(500, metav1.StatusReasonInternalError, "not right now") }, // may pass
		func() {}, // the same failure
		func() { delete(f.answers, path); site.State = "Detached" },
	}
	t.Run("Stream", func(t *testing.T) {
		_, cancel := context.WithCancel(t.Context())
		got := run(t, f, runOptions{wait: steps(cancel, changes...)}, "status", "orders", "-n", "shop", "-w")
		if got.code != cli.ExitDegraded {
			t.Errorf("exit code %d, want that of the last answer", got.code)
		}
		if n := strings.Count(got.out, "MysqlFailoverGroup"); n != 3 {
			t.Errorf("%d answers, want one for each change:\n%s", n, got.out)
		}
		if n := strings.Count(got.errOut, "not right now"); n != 1 {
			t.Errorf("the failure was told %d times:\n%s", n, got.errOut)
		}
	})
	*site.LagSeconds, site.State = 0, "Replica"
	t.Run("Terminal", func(t *testing.T) {
		_, cancel := context.WithCancel(t.Context())
		got := run(t, f, runOptions{width: 80, wait: steps(cancel, changes...)}, "status", "orders", "-n", "shop", "-w")
		if n := strings.Count(got.out, cli.CursorHome); n != 6 {
			t.Errorf("drawn %d times, want at each look", n)
		}
		if got.errOut != "" || strings.Count(got.out, "this is old, from 12:00:00Z: ") != 2 || strings.Count(got.out, cli.ClearScreen) != 1 {
			t.Errorf("stderr %q, stdout:\n%q", got.errOut, got.out)
		}
	})
	t.Run("FirstFailureEnds", func(t *testing.T) {
		got := run(t, &fakeAPI{}, runOptions{}, "status", "orders", "-n", "shop", "-w")
		if got.code != cli.ExitError || got.errOut == "" {
			t.Errorf("%+v", got)
		}
	})
}

// TestHelpEndsWithTheExitCodes: a person who asks how to use a verb reads the usage first.
func TestHelpEndsWithTheExitCodes(t *testing.T) {
	var all func(c *cobra.Command)
	checked := 0
	all = func(c *cobra.Command) {
		args := slices.Concat(strings.Fields(c.CommandPath())[2:], []string{"--help"}) // without kubectl mfg
		out := run(t, &fakeAPI{}, runOptions{}, args...).out
		codes, flags, usage := strings.Index(out, cli.ExitCodes), strings.LastIndex(out, "Flags:"), strings.Index(out, "Usage:")
		if strings.Count(out, "Exit codes:") != 1 || !strings.HasSuffix(out, "\n\n"+cli.ExitCodes+"\n") || flags < 0 || usage < 0 || codes < flags || flags < usage {
			t.Errorf("%v:\n%s", args, out)
		}
		checked++
		for _, sub := range shown(c) {
			all(sub)
		}
	}
	all(newApp(cli.Environment{IOStreams: discarded()}).root())
	if checked < 50 {
		t.Errorf("%d verbs checked", checked)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"status", "--help"}} {
		got := run(t, &fakeAPI{}, runOptions{}, args...)
		if got.code != 0 || !strings.Contains(got.out, "kubectl mfg") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := run(t, &fakeAPI{}, runOptions{}, "stauts"); !strings.Contains(got.errOut, "did you mean status?") || !strings.Contains(got.errOut, "'kubectl mfg --help'") {
		t.Errorf("%+v", got)
	}
	for args, next := range map[string]string{
		"explain": "GROUP is missing; to see your groups: kubectl mfg list -A", "mysql": "kubectl mfg list -A", "backup show": "kubectl mfg backup list",
		"reclone orders": "SITE is missing; to see the sites: kubectl mfg status orders", "pause orders --for 30": "such as 90s, 30m or 2h",
	} {
		if got := run(t, &fakeAPI{}, runOptions{}, strings.Fields(args)...); got.code != cli.ExitUsage || !strings.Contains(got.errOut, next) {
			t.Errorf("%s: %+v, want %q", args, got, next)
		}
	}
	for args, verb := range map[string]string{"explain": "explain", "explain --nope": "explain", "status orders -A": "status", "keyring list": "keyring list"} {
		if got := run(t, &fakeAPI{}, runOptions{}, strings.Fields(args)...); got.code != cli.ExitUsage || !strings.Contains(got.errOut, "See 'kubectl mfg "+verb+" --help'") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

func TestColored(t *testing.T) {
	for name, tc := range map[string]struct {
		flag     string
		terminal bool
		env      map[string]string
		want     bool
	}{
		"Terminal":       {"auto", true, nil, true},
		"Pipe":           {"auto", false, nil, false},
		"NoColor":        {"auto", true, map[string]string{"NO_COLOR": "1"}, false},
		"Dumb":           {"auto", true, map[string]string{"TERM": "dumb"}, false},
		"AlwaysWins":     {"always", false, map[string]string{"NO_COLOR": "1"}, true},
		"NeverIsNever":   {"never", true, nil, false},
		"EmptyIsNotSaid": {"auto", true, map[string]string{"NO_COLOR": ""}, true},
	} {
		env := cli.Environment{
			Getenv:   func(name string) string { return tc.env[name] },
			Terminal: func() (int, bool) { return 80, tc.terminal },
		}
		if got := cli.Colored(tc.flag, env); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// brokenPipe is a stdout that is gone.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestBrokenPipe(t *testing.T) {
	op := &inspect.Status{Group: "orders", Color: "never"}
	env := cli.Environment{
		IOStreams: genericiooptions.IOStreams{Out: brokenPipe{}, ErrOut: &bytes.Buffer{}},
		Now:       func() time.Time { return noon },
		Terminal:  func() (int, bool) { return 0, false },
	}
	if code, err := op.Run(t.Context(), env, silent{}); code != cli.ExitError || err == nil {
		t.Errorf("code %d, error %v", code, err)
	}
}

// silent is a cluster with an empty group.
type silent struct{ Cluster }

func (silent) Group(context.Context, string, string) (*v1alpha1.MysqlFailoverGroup, error) {
	return &v1alpha1.MysqlFailoverGroup{}, nil
}

func (silent) Live(context.Context, string, string, string) (wire.StatusList, error) {
	return wire.StatusList{}, errors.New("silent")
}
