// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cluster"
	"github.com/mysql-mfg/mfg/kubectl-mfg/dashboard"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/operator/server"
	"github.com/mysql-mfg/mfg/tui"
	"github.com/mysql-mfg/mfg/tui/feed"
)

const streamPath = "/api/v1/namespaces/mfg-system/services/mfg-auxiliary:8082/proxy/ws/status"

// proxied is an API server whose proxy leads to the operator's real server.
type proxied struct {
	*fakeAPI
	operator *httptest.Server
	mu       sync.Mutex
	refuse   bool // the Service proxy
	token    string
	watched  chan v1alpha1.MysqlFailoverGroup
}

func behindProxy(t *testing.T, f *fakeAPI) (*proxied, *server.Board) {
	t.Helper()
	board := server.NewBoard()
	if f.live != nil {
		for _, g := range f.live.Groups {
			board.Publish(g)
		}
	}
	p := &proxied{fakeAPI: f, operator: httptest.NewServer(server.New(server.Options{Source: board}))}
	t.Cleanup(p.operator.Close)
	return p, board
}

func (p *proxied) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == streamPath && p.refuse:
		status(http.StatusForbidden, metav1.StatusReasonForbidden, "no services/proxy")(w)
	case r.URL.Path == streamPath && p.token != "" && r.Header.Get("Authorization") != "Bearer "+p.token:
		status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")(w)
	case r.URL.Path == streamPath:
		to, _ := url.Parse(p.operator.URL)
		proxy := httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(to)
			pr.Out.URL.Path = "/ws/status"
		}}
		proxy.ServeHTTP(w, r)
	case r.URL.Query().Get("watch") != "":
		p.serveWatch(w, r)
	default:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fakeAPI.ServeHTTP(w, r)
	}
}

// serveWatch tells what is put into watched, until the client goes.
func (p *proxied) serveWatch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case g := <-p.watched:
			g.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": g})
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// realTime lets a command run by the real clock: a stream has deadlines.
func realTime(t *testing.T, h http.Handler, args ...string) ran {
	t.Helper()
	web := httptest.NewTLSServer(h) // a login goes over nothing else
	defer web.Close()
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	var out, errOut bytes.Buffer
	env := cli.Environment{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut},
		Getenv:    func(string) string { return "" }, Now: time.Now,
		Wait:        func(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil },
		Terminal:    func() (int, bool) { return 0, false },
		Interactive: func() bool { return false },
	}
	code := Main(t.Context(), append(args, "--server", web.URL, "--insecure-skip-tls-verify"), env)
	return ran{code: code, out: out.String(), errOut: errOut.String()}
}

// TestDashboardOnce goes all the way: command line, API server's proxy, WebSocket, the operator's server, one frame.
func TestDashboardOnce(t *testing.T) {
	f := loadHealthy(t)
	f.objects = map[string]any{"/api/v1/namespaces/shop/events": corev1.EventList{Items: []corev1.Event{{
		InvolvedObject: corev1.ObjectReference{Kind: "MysqlFailoverGroup", Name: "orders"}, Reason: "Promoted", Message: "paris takes writes"}}}}
	p, _ := behindProxy(t, f)
	got := realTime(t, p, "dashboard", "orders", "-n", "shop", "--once")
	for _, want := range []string{"live", "* paris", "fence open  takes writes", "lag 1.2s", "behind 12", "epoch 7", "Promoted: paris takes writes"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no %q in the frame:\n%s%s", want, got.out, got.errOut)
		}
	}
	if strings.ContainsAny(got.out, "\x1b") {
		t.Error("there are control sequences in a frame for a ticket")
	}
	if got = realTime(t, p, "dashboard", "-A", "--once"); !strings.Contains(got.out, "shop/orders") || !strings.Contains(got.out, "all namespaces") {
		t.Errorf("%+v", got)
	}
	if got = realTime(t, p, "dashboard", "nothing", "-n", "shop", "--once"); got.code != cli.ExitError || got.out != "" || !strings.Contains(got.errOut, "list all groups: kubectl mfg status -A") {
		t.Errorf("%+v", got)
	}
}

// TestDashboardToken: the user's own login goes with the request that becomes a WebSocket.
func TestDashboardToken(t *testing.T) {
	p, _ := behindProxy(t, loadHealthy(t))
	p.token = "of-the-user"
	if got := realTime(t, p, "dashboard", "orders", "-n", "shop", "--once", "--token", "of-the-user"); !strings.Contains(got.out, "live") {
		t.Errorf("%+v", got)
	}
}

// TestDashboardWithoutOperator: the custom resource alone makes a frame that says what it is.
func TestDashboardWithoutOperator(t *testing.T) {
	f := loadHealthy(t)
	f.answers[streamPath] = status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "no endpoints available")
	got := realTime(t, f, "dashboard", "orders", "-n", "shop", "--once")
	for _, want := range []string{"NO OPERATOR, custom resource only", "no endpoints available", "* paris", "lag ?"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no %q in the frame:\n%s%s", want, got.out, got.errOut)
		}
	}
}

// TestDashboardForwards: where the Service proxy is closed, the stream goes through a forwarded port.
func TestDashboardForwards(t *testing.T) {
	f := loadHealthy(t)
	f.objects = map[string]any{"/api/v1/namespaces/mfg-system/pods": corev1.PodList{Items: []corev1.Pod{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mfg-system", Name: "mfg-operator-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}}}}
	p, _ := behindProxy(t, f)
	p.refuse = true
	s := &streams{t: t, plain: p, handle: func(_ string, data httpstream.Stream, all map[string]httpstream.Stream) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.operator.URL, "http://"))
		if err != nil {
			t.Error(err)
			return
		}
		go func() { _, _ = io.Copy(conn, data); _ = conn.Close() }()
		_, _ = io.Copy(data, conn)
		_, _ = data.Close(), all["error"].Close()
	}}
	got := realTime(t, s, "dashboard", "orders", "-n", "shop", "--once")
	if !strings.Contains(got.out, "live") || !strings.Contains(got.out, "lag 1.2s") {
		t.Errorf("%+v", got)
	}
}

// TestDashboardForwardsToLeader: a pod that stands by refuses the stream, and the next one sends it.
func TestDashboardForwardsToLeader(t *testing.T) {
	f := loadHealthy(t)
	p, _ := behindProxy(t, f)
	p.refuse = true
	standby := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { operatorSays(503, wire.ReasonNotLeading)(w) }))
	defer standby.Close()
	s := forwarding(t, f, p, nil)
	var turn atomic.Int32
	s.handle = func(_ string, data httpstream.Stream, all map[string]httpstream.Stream) {
		to := standby.URL
		if turn.Add(1) > 1 {
			to = p.operator.URL
		}
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(to, "http://"))
		if err != nil {
			t.Error(err)
			return
		}
		go func() { _, _ = io.Copy(conn, data); _ = conn.Close() }()
		_, _ = io.Copy(data, conn)
		_, _ = data.Close(), all["error"].Close()
	}
	got := realTime(t, s, "dashboard", "orders", "-n", "shop", "--once")
	if !strings.Contains(got.out, "live") || turn.Load() != 2 {
		t.Errorf("after %d pods: %+v", turn.Load(), got)
	}
}

// TestDashboardRefuses: without a terminal nothing is drawn, and the way out is named.
func TestDashboardRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		o    runOptions
		args []string
		code int
		says string
	}{
		"no terminal":      {runOptions{}, []string{"dashboard"}, cli.ExitUsage, "--once"},
		"stdin is none":    {runOptions{width: 80}, []string{"dashboard"}, cli.ExitUsage, "--once"},
		"a dumb terminal":  {runOptions{width: 80, stdin: "q", env: map[string]string{"TERM": "dumb"}}, []string{"dashboard"}, cli.ExitUsage, "--once"},
		"two meanings":     {runOptions{}, []string{"dashboard", "orders", "-A"}, cli.ExitUsage, "exclude each other"},
		"keys for a frame": {runOptions{}, []string{"dashboard", "--once", "--allow-actions"}, cli.ExitUsage, "exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := run(t, loadHealthy(t), c.o, c.args...); got.code != c.code || !strings.Contains(got.errOut, c.says) || got.out != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func clusterAt(t *testing.T, h http.Handler) Cluster {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer = &web.URL
	c, err := cluster.Connect(flags)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWatchGroups: first everything, then what changes.
func TestWatchGroups(t *testing.T) {
	p, _ := behindProxy(t, loadHealthy(t))
	p.watched = make(chan v1alpha1.MysqlFailoverGroup, 1)
	c := clusterAt(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	step := 0
	c.Watch(ctx, "shop", func(o feed.Objects) {
		switch step++; step {
		case 1:
			if !o.Whole || len(o.Changed) != 1 || o.Changed[0].Status.Epoch != 7 {
				t.Errorf("list: %+v", o)
			}
			next := p.groups[0]
			next.Status.Epoch = 8
			p.watched <- next
		case 2:
			if o.Whole || len(o.Changed) != 1 || o.Changed[0].Status.Epoch != 8 {
				t.Errorf("change: %+v", o)
			}
			cancel()
		}
	})
	if step != 2 {
		t.Errorf("%d deliveries", step)
	}
}

// TestWatchTellsWhy: what cannot be read is told, and tried again.
func TestWatchTellsWhy(t *testing.T) {
	f := loadHealthy(t)
	f.answers[groupsPath+"/namespaces/shop/mysqlfailovergroups"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "may not list")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clusterAt(t, f).Watch(ctx, "shop", func(o feed.Objects) {
		if !strings.Contains(o.Error, "may not list") {
			t.Errorf("%+v", o)
		}
		cancel()
	})
}

// TestActions: what the dashboard's keys do is what the verbs do, with their plans, questions and refusals.
func TestActions(t *testing.T) {
	for name, c := range map[string]struct {
		action tui.Action
		typed  string
		shown  []string
		says   string
		want   map[string]any
	}{
		"confirmed": {tui.Action{Verb: tui.VerbFailover, Argument: "frankfurt"}, "y\n", []string{"Planned failover of orders", "[y/N]"}, "asked for",
			map[string]any{v1alpha1.AnnotationPlannedFailover: "frankfurt"}},
		"not confirmed": {tui.Action{Verb: tui.VerbFailover, Argument: "frankfurt"}, "n\n", []string{"[y/N]"}, "not confirmed: nothing was changed", nil},
		"refused":       {tui.Action{Verb: tui.VerbFailover, Argument: "madrid"}, "\n", []string{"is dr-only", "Press enter"}, "refused: madrid is dr-only", nil},
		"reclone wants the name, gets it": {tui.Action{Verb: tui.VerbReclone, Argument: "madrid"}, "orders\n", []string{"Type the name of the group"}, "asked for",
			map[string]any{v1alpha1.AnnotationRecloneSite: "madrid"}},
		"reclone wants the name, gets y": {tui.Action{Verb: tui.VerbReclone, Argument: "madrid"}, "y\n", []string{"Type the name of the group"}, "not confirmed", nil},
		"a pause that is none":           {tui.Action{Verb: tui.VerbPause, Argument: "soon"}, "\n", []string{"Press enter"}, "soon", nil},
		"nothing to abort":               {tui.Action{Verb: tui.VerbAbort}, "\n", []string{"Press enter"}, "refused: no planned failover of orders is under way", nil},
		"nothing to resume":              {tui.Action{Verb: tui.VerbResume}, "", nil, "orders is not paused", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			env := cli.Environment{Now: func() time.Time { return noon }, Getenv: func(string) string { return "" }, Terminal: func() (int, bool) { return 80, true },
				Interactive: func() bool { return true }, Wait: func(context.Context, time.Duration) bool { return true }}
			c.action.Namespace, c.action.Group = "shop", "orders"
			d := dashboard.NewAction(env, clusterAt(t, f), live.DefaultNamespace, c.action)
			var screen bytes.Buffer
			d.SetStdin(strings.NewReader(c.typed))
			d.SetStdout(&screen)
			d.SetStderr(io.Discard)
			if err := d.Run(); err != nil {
				t.Error(err)
			}
			for _, want := range c.shown {
				if !strings.Contains(screen.String(), want) {
					t.Errorf("no %q on the screen:\n%s", want, screen.String())
				}
			}
			if !strings.Contains(d.Outcome(), c.says) || strings.Contains(d.Outcome(), "\n") {
				t.Errorf("outcome %q", d.Outcome())
			}
			switch {
			case c.want == nil && len(f.patched) > 0:
				t.Errorf("changed %v", f.patched)
			case c.want != nil && (len(f.patched) != 1 || f.patched[0][keyOf(c.want)] != c.want[keyOf(c.want)]):
				t.Errorf("changed %v, not %v", f.patched, c.want)
			}
		})
	}
}

func keyOf(m map[string]any) string {
	for key := range m {
		return key
	}
	return ""
}

func TestLocale(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{}, true},
		{map[string]string{"LANG": "C"}, false},
		{map[string]string{"LANG": "de_DE.UTF-8"}, true},
		{map[string]string{"LANG": "de_DE.utf8", "LC_ALL": "POSIX"}, false},
		{map[string]string{"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, true},
	} {
		if got := dashboard.SpeaksUnicode(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %t", c.env, got)
		}
	}
}

// asks is a terminal that tells when a question stands on it.
type asks chan struct{}

func (a asks) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "[y/N]") {
		close(a)
	}
	return len(p), nil
}

// TestTerminatedWhileAsked: SIGTERM, or the loss of the terminal, while a verb of the dashboard asks ends the question, and the dashboard with it.
func TestTerminatedWhileAsked(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGTERM that a process can send")
	}
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(end.String(), func(t *testing.T) { endedWhileAsked(t, end) })
	}
}

func endedWhileAsked(t *testing.T, end syscall.Signal) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, end) // the test itself outlives it, whatever the dashboard does
	defer signal.Stop(heard)
	keys, person, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = keys.Close(), person.Close() }()
	f := loadHealthy(t)
	env := cli.Environment{Now: func() time.Time { return noon }, Getenv: func(string) string { return "" }, Terminal: func() (int, bool) { return 80, true },
		Interactive: func() bool { return true }, Wait: func(context.Context, time.Duration) bool { return true }}
	d := dashboard.NewAction(env, clusterAt(t, f), live.DefaultNamespace, tui.Action{Verb: tui.VerbFailover, Namespace: "shop", Group: "orders", Argument: "frankfurt"})
	asked := make(asks)
	d.SetStdin(keys)
	d.SetStdout(asked)
	ended := make(chan error, 1)
	go func() { ended <- d.Run() }()
	<-asked
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(end); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, tui.ErrEnded) || len(f.patched) != 0 {
			t.Errorf("%v, changed %v", err, f.patched)
		}
	case <-time.After(time.Minute):
		t.Error("the question is still asked")
	}
}
