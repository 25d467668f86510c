// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// noon is when every test happens.
var noon = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

const (
	groupsPath = "/apis/mysql-mfg.io/v1alpha1"
	livePath   = "/api/v1/namespaces/mfg-system/services/mfg-auxiliary:8082/proxy/status"
	// operatorPods is where the operator's pods are. A user may not list them, unless a test says otherwise.
	operatorPods = "/api/v1/namespaces/mfg-system/pods"
)

// fakeAPI is an API server with groups and, behind its proxy, an operator.
type fakeAPI struct {
	groups []v1alpha1.MysqlFailoverGroup
	live   *wire.StatusList
	// answers replaces the answer to a path.
	answers map[string]func(http.ResponseWriter)
	asked   []string
	// explanation is what the operator says when it is asked to explain.
	explanation *wire.Explanation
	// objects are what else the API server holds, by path.
	objects map[string]any
	// patched are the annotations that were asked for, in order; conflicts makes the next so many fail.
	patched   []map[string]any
	dryRuns   int
	conflicts int
	// breaks ends the connection of the next patch, before or after the patch is made.
	breaks breaks
	// refuses answers every patch.
	refuses func(http.ResponseWriter)
	// patchedThen is called once a patch is made, before its answer.
	patchedThen func()
}

type breaks int

const (
	never breaks = iota
	beforePatch
	afterPatch
)

// hangUp ends the connection without an answer.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, r.URL.Path)
	if a, ok := f.answers[r.URL.Path]; ok {
		a(w)
		return
	}
	if object, ok := f.objects[r.URL.Path]; ok {
		respond(w, http.StatusOK, object)
		return
	}
	if r.URL.Path == livePath {
		f.serveLive(w, r)
		return
	}
	if r.URL.Path == operatorPods {
		status(http.StatusForbidden, metav1.StatusReasonForbidden, "no pods")(w)
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, groupsPath+"/")
	if !ok {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	namespace, name := "", ""
	if after, ok := strings.CutPrefix(rest, "namespaces/"); ok {
		namespace, rest, _ = strings.Cut(after, "/")
	}
	if _, after, ok := strings.Cut(rest, "/"); ok {
		name = after
	}
	list := v1alpha1.MysqlFailoverGroupList{}
	for _, g := range f.groups {
		if (namespace == "" || g.Namespace == namespace) && (name == "" || g.Name == name) {
			list.Items = append(list.Items, g)
		}
	}
	switch {
	case r.Method == http.MethodPatch:
		f.servePatch(w, r, namespace, name)
	case name == "":
		f.serveList(w, r, list)
	case len(list.Items) == 0:
		status(http.StatusNotFound, metav1.StatusReasonNotFound, `mysqlfailovergroups.mysql-mfg.io "`+name+`" not found`)(w)
	default:
		list.Items[0].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))
		respond(w, http.StatusOK, list.Items[0])
	}
}

// servePatch changes annotations as the API server does: only of the version that was read.
func (f *fakeAPI) servePatch(w http.ResponseWriter, r *http.Request, namespace, name string) {
	var patch struct {
		Metadata struct {
			ResourceVersion string
			Annotations     map[string]*string
		}
	}
	body, _ := io.ReadAll(r.Body)
	var whole map[string]any
	_ = json.Unmarshal(body, &whole)
	if err := json.Unmarshal(body, &patch); err != nil {
		status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())(w)
		return
	}
	for i := range f.groups {
		g := &f.groups[i]
		if g.Namespace != namespace || g.Name != name {
			continue
		}
		if f.refuses != nil {
			f.refuses(w)
			return
		}
		broken := f.breaks
		f.breaks = never
		if broken == beforePatch {
			hangUp(w)
			return
		}
		if f.conflicts > 0 || patch.Metadata.ResourceVersion != g.ResourceVersion {
			f.conflicts--
			g.ResourceVersion += "1"
			status(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")(w)
			return
		}
		meta, _ := whole["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		if missing := withoutID(annotations); missing != "" {
			status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, missing+" has no id: its answer could not be told from others")(w)
			return
		}
		f.patched = append(f.patched, withoutIDs(annotations))
		if r.URL.Query().Get("dryRun") != "" {
			f.dryRuns++
			respond(w, http.StatusOK, g)
			return
		}
		for key, value := range patch.Metadata.Annotations {
			if g.Annotations == nil {
				g.Annotations = map[string]string{}
			}
			if value == nil {
				delete(g.Annotations, key)
			} else {
				g.Annotations[key] = *value
			}
		}
		g.ResourceVersion += "1"
		if f.patchedThen != nil {
			f.patchedThen()
		}
		if broken == afterPatch {
			hangUp(w)
			return
		}
		respond(w, http.StatusOK, g)
	}
}

// withoutID is a request among changes that has no id.
func withoutID(annotations map[string]any) string {
	for _, kind := range v1alpha1.RequestKinds() {
		if value, is := annotations[kind.Annotation()]; is && value != nil && annotations[kind.IDAnnotation()] == nil {
			return string(kind)
		}
	}
	return ""
}

// withoutIDs are changes without the ids of requests, which are different each time.
func withoutIDs(annotations map[string]any) map[string]any {
	out := maps.Clone(annotations)
	for _, kind := range v1alpha1.RequestKinds() {
		delete(out, kind.IDAnnotation())
	}
	return out
}

// answer plays the operator: it answers a request that stands on the first group.
func (f *fakeAPI) answer(kind v1alpha1.RequestKind, outcome v1alpha1.RequestOutcome, reason, message string) {
	g := &f.groups[0]
	value, stands := g.Annotations[kind.Annotation()]
	if !stands {
		return
	}
	entry := v1alpha1.LastRequest{Kind: kind, ID: g.Annotations[kind.IDAnnotation()], Target: value, Outcome: outcome, Reason: reason, Message: message}
	delete(g.Annotations, kind.Annotation())
	delete(g.Annotations, kind.IDAnnotation())
	g.Status.LastRequests = slices.DeleteFunc(g.Status.LastRequests, func(last v1alpha1.LastRequest) bool { return last.Kind == kind })
	g.Status.LastRequests = append(g.Status.LastRequests, entry)
}

// serveList pages one group at a time, to show that pages are put together.
func (f *fakeAPI) serveList(w http.ResponseWriter, r *http.Request, list v1alpha1.MysqlFailoverGroupList) {
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlFailoverGroupList"))
	start := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &start)
	if start+1 < len(list.Items) {
		list.Continue = fmt.Sprint(start + 1)
	}
	if len(list.Items) > 0 {
		list.Items = list.Items[start : start+1]
	}
	respond(w, http.StatusOK, list)
}

func (f *fakeAPI) serveLive(w http.ResponseWriter, r *http.Request) {
	if f.live == nil {
		status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			`no endpoints available for service "mfg-auxiliary:8082"`)(w)
		return
	}
	list := *f.live
	list.Groups = nil
	q := r.URL.Query()
	for _, g := range f.live.Groups {
		if (q.Get("namespace") == "" || q.Get("namespace") == g.Namespace) && (q.Get("group") == "" || q.Get("group") == g.Group) {
			list.Groups = append(list.Groups, g)
		}
	}
	if q.Get(wire.ParamExplain) != "true" {
		respond(w, http.StatusOK, list)
		return
	}
	explained := wire.ExplainedList{Operator: list.Operator, IssuedAt: list.IssuedAt}
	for _, g := range list.Groups {
		explained.Groups = append(explained.Groups, wire.ExplainedGroup{GroupStatus: g, Explanation: f.explanation})
	}
	respond(w, http.StatusOK, explained)
}

func respond(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// status is an error as the API server itself tells it.
func status(code int, reason metav1.StatusReason, message string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		respond(w, code, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
		})
	}
}

// operatorSays is an error of the operator behind the proxy.
func operatorSays(code int, reason string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		respond(w, code, wire.Error{Error: "the operator's words", Reason: reason})
	}
}

// ran is what a command line did.
type ran struct {
	code        int
	out, errOut string
}

type runOptions struct {
	width int // 0: no terminal
	high  int // 0: not known
	env   map[string]string
	wait  func(context.Context, time.Duration) bool
	// stdin is what a person types; without it there is no terminal to ask on.
	stdin string
	// typed happens once, when that person begins to type.
	typed func()
	// tick happens at each wait, the first being 1; the clock goes on by what is waited for.
	tick func(n int)
	ctx  context.Context
	// cluster replaces parts of the connection.
	cluster func(Cluster) Cluster
}

// typing is what a person types, and what happens meanwhile.
type typing struct {
	io.Reader
	meanwhile func()
}

func (t *typing) Read(p []byte) (int, error) {
	if do := t.meanwhile; do != nil {
		t.meanwhile = nil
		do()
	}
	return t.Reader.Read(p)
}

// run runs a command line against an API server as a user would.
func run(t *testing.T, f http.Handler, o runOptions, args ...string) ran {
	t.Helper()
	server := httptest.NewServer(f)
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	var out, errOut bytes.Buffer
	now, waits := noon, 0
	if o.wait == nil {
		o.wait = func(ctx context.Context, d time.Duration) bool {
			now, waits = now.Add(d), waits+1
			if o.tick != nil {
				o.tick(waits)
			}
			return ctx.Err() == nil
		}
	}
	if o.ctx == nil {
		o.ctx = t.Context()
	}
	env := cli.Environment{
		IOStreams:   genericiooptions.IOStreams{In: &typing{strings.NewReader(o.stdin), o.typed}, Out: &out, ErrOut: &errOut},
		Getenv:      func(name string) string { return o.env[name] },
		Now:         func() time.Time { return now },
		Wait:        o.wait,
		Terminal:    func() (int, bool) { return o.width, o.width > 0 },
		Height:      func() int { return o.high },
		Interactive: func() bool { return o.stdin != "" },
	}
	a := newApp(env)
	if connect := a.connect; o.cluster != nil {
		a.connect = func() (Cluster, error) {
			c, err := connect()
			return o.cluster(c), err
		}
	}
	code := a.main(o.ctx, append(slices.Clone(args), "--server", server.URL))
	return ran{code: code, out: out.String(), errOut: errOut.String()}
}

// load reads a fixture: a group, and what the operator sees of it if there is such a file.
func load(t *testing.T, dir string) *fakeAPI {
	t.Helper()
	f := &fakeAPI{answers: map[string]func(http.ResponseWriter){}}
	var g v1alpha1.MysqlFailoverGroup
	parse(t, filepath.Join(dir, "group.yaml"), &g)
	f.groups = []v1alpha1.MysqlFailoverGroup{g}
	if live := filepath.Join(dir, "live.yaml"); exists(live) {
		f.live = &wire.StatusList{}
		parse(t, live, f.live)
	}
	return f
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func parse(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// runCompletion asks for completions as a shell does; the last word is the one to complete.
func runCompletion(t *testing.T, f http.Handler, words []string) string {
	t.Helper()
	server := httptest.NewServer(f)
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out bytes.Buffer
	env := cli.Environment{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &bytes.Buffer{}}}
	args := slices.Insert(slices.Clone(words), 2, "--server", server.URL)
	if code := Main(t.Context(), args, env); code != 0 {
		t.Errorf("%v: exit code %d", words, code)
	}
	return out.String()
}
