// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
)

// noon is when every test happens.
var noon = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

const (
	groupsPath = "/apis/mysql-mfg.io/v1alpha1"
	livePath   = "/api/v1/namespaces/mfg-system/services/mfg-auxiliary:8082/proxy/status"
)

// fakeAPI is an API server with groups and, behind its proxy, an operator.
type fakeAPI struct {
	groups []v1alpha1.MysqlFailoverGroup
	live   *wire.StatusList
	// answers replaces the answer to a path.
	answers map[string]func(http.ResponseWriter)
	asked   []string
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, r.URL.Path)
	if a, ok := f.answers[r.URL.Path]; ok {
		a(w)
		return
	}
	if r.URL.Path == livePath {
		f.serveLive(w, r)
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
	case name == "":
		f.serveList(w, r, list)
	case len(list.Items) == 0:
		status(http.StatusNotFound, metav1.StatusReasonNotFound, `mysqlfailovergroups.mysql-mfg.io "`+name+`" not found`)(w)
	default:
		list.Items[0].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))
		respond(w, http.StatusOK, list.Items[0])
	}
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
	respond(w, http.StatusOK, list)
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
	env   map[string]string
	wait  func(context.Context, time.Duration) bool
}

// run runs a command line against an API server as a user would.
func run(t *testing.T, f http.Handler, o runOptions, args ...string) ran {
	t.Helper()
	server := httptest.NewServer(f)
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	var out, errOut bytes.Buffer
	env := Environment{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut},
		Getenv:    func(name string) string { return o.env[name] },
		Now:       func() time.Time { return noon },
		Wait:      o.wait,
		Terminal:  func() (int, bool) { return o.width, o.width > 0 },
	}
	code := Main(t.Context(), append(args, "--server", server.URL), env)
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
	env := Environment{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &bytes.Buffer{}}}
	args := slices.Insert(slices.Clone(words), 2, "--server", server.URL)
	if code := Main(t.Context(), args, env); code != 0 {
		t.Errorf("%v: exit code %d", words, code)
	}
	return out.String()
}
