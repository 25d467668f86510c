// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cluster"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// streams is an API server that knows SPDY only, as one behind an older proxy: the plugin must fall back to it.
type streams struct {
	t       *testing.T
	plain   http.Handler
	handle  func(kind string, stream httpstream.Stream, all map[string]httpstream.Stream)
	command []string
	// lost is a pod on a node that does not answer until over is closed; asked are those to which a port was to be forwarded.
	lost  string
	over  chan struct{}
	mu    sync.Mutex
	asked []string
}

// forwardedTo notes the pod of a port-forward; it waits if the pod is lost.
func (s *streams) forwardedTo(r *http.Request) (pod string) {
	pod = path.Base(path.Dir(r.URL.Path))
	s.mu.Lock()
	s.asked = append(s.asked, pod)
	s.mu.Unlock()
	if pod == s.lost {
		<-s.over
	}
	return pod
}

func (s *streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	forward, exec := strings.HasSuffix(r.URL.Path, "/portforward"), strings.HasSuffix(r.URL.Path, "/exec")
	if !forward && !exec {
		s.plain.ServeHTTP(w, r)
		return
	}
	if !strings.Contains(strings.ToLower(r.Header.Get("Upgrade")), "spdy") {
		http.Error(w, "no WebSocket here", http.StatusBadRequest)
		return
	}
	if forward && s.forwardedTo(r) == s.lost {
		return
	}
	s.command = r.URL.Query()["command"]
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io", "v4.channel.k8s.io"}); err != nil {
		s.t.Error(err)
		return
	}
	arrived := make(chan httpstream.Stream, 8)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		arrived <- stream
		return nil
	})
	if conn == nil {
		s.t.Error("not upgraded")
		return
	}
	defer func() { _ = conn.Close() }()
	wanted := 2 // port-forward: error, data
	if exec {
		wanted = 4 // error, stdin, stdout, stderr
	}
	all := map[string]httpstream.Stream{}
	for len(all) < wanted {
		stream := <-arrived
		all[stream.Headers().Get("streamType")] = stream
	}
	kind := "exec"
	if forward {
		kind = "portforward"
	}
	s.handle(kind, all["data"], all)
}

// TestPortForward: where the Service proxy may not be used, or does not lead to the operator, a forwarded port may.
func TestPortForward(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"Forbidden":   status(403, metav1.StatusReasonForbidden, "no services/proxy"),
		"Unreachable": status(503, metav1.StatusReasonServiceUnavailable, "error trying to reach service: dial tcp 10.0.0.7:8082: i/o timeout"),
		"Silent":      nil,
	} {
		t.Run(name, func(t *testing.T) { forwards(t, answer) })
	}
}

// mute is an API server whose Service proxy does not answer before the client gives up.
func mute(f *fakeAPI) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != livePath {
			f.ServeHTTP(w, r)
			return
		}
		<-r.Context().Done()
	})
}

// patient waits for the proxy for so long, and for all else however slow this machine is.
func patient(proxy time.Duration) func(Cluster) Cluster {
	return func(c Cluster) Cluster {
		if a, is := c.(*cluster.API); is {
			a.Total, a.Proxy = time.Minute, proxy
		}
		return c
	}
}

// TestMayForward: the operator's own word is final, and so is that none runs.
func TestMayForward(t *testing.T) {
	code := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"Answered":    {nil, false},
		"Forbidden":   {code(403, "no"), true},
		"BadGateway":  {code(502, "x"), true},
		"Unreachable": {code(503, "error trying to reach service: dial tcp: connection refused"), true},
		"Timeout":     {code(504, "x"), true},
		"Deadline":    {fmt.Errorf("ask: %w", context.DeadlineExceeded), true},
		"Reset":       {&url.Error{Op: "Get", Err: io.ErrUnexpectedEOF}, true},
		"NoPod":       {code(503, `no endpoints available for service "mfg-auxiliary:8082"`), false},
		"NoService":   {code(404, "not found"), false},
		"NotLeading":  {live.ErrIdle, false},
		"AsksWho":     {live.ErrorOf([]byte(`{"error":"send a token","reason":"Unauthorized"}`), nil), true},
		"ItsOwnWord":  {errors.New("the operator says: no such group (NotFound)"), false},
	} {
		if got := cluster.MayForward(tc.err); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// forwarding lets pods of the operator answer through forwarded ports.
func forwarding(t *testing.T, f *fakeAPI, plain http.Handler, answer http.HandlerFunc) *streams {
	t.Helper()
	var pods corev1.PodList
	for _, name := range []string{"mfg-operator-1", "mfg-operator-2"} {
		pods.Items = append(pods.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mfg-system", Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	}
	f.objects = map[string]any{operatorPods: pods}
	return &streams{t: t, plain: plain, handle: func(_ string, data httpstream.Stream, all map[string]httpstream.Stream) {
		if port := data.Headers().Get("port"); port != "8082" {
			t.Errorf("port %s", port)
		}
		r, err := http.ReadRequest(bufio.NewReader(data))
		if err != nil {
			t.Error(err)
			return
		}
		said := httptest.NewRecorder()
		answer(said, r)
		_, _ = fmt.Fprintf(data, "HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", said.Code, said.Body.Len(), said.Body)
		_, _ = data.Close(), all["error"].Close()
		_, _ = io.Copy(io.Discard, data)
	}}
}

func forwards(t *testing.T, answer func(http.ResponseWriter)) {
	t.Helper()
	f, query := loadHealthy(t), ""
	plain := mute(f)
	if answer != nil {
		f.answers[livePath], plain = answer, f
	}
	s := forwarding(t, f, plain, func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		f.serveLive(w, r)
	})
	got := run(t, s, runOptions{cluster: patient(20 * time.Millisecond)}, "status", "orders", "-n", "shop")
	if got.code != cli.ExitHealthy || !strings.Contains(got.out, "live") || query != "group=orders&namespace=shop" {
		t.Errorf("%+v, asked %q", got, query)
	}
}

// TestPortForwardIsRemembered: a proxy that does not answer is not waited for again, until the other way fails too.
func TestPortForwardIsRemembered(t *testing.T) {
	f, asked := loadHealthy(t), 0
	f.answers[livePath] = status(504, metav1.StatusReasonTimeout, "it does not answer")
	s := forwarding(t, f, f, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 4 || asked == 5 { // both pods
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		f.serveLive(w, r)
	})
	cluster := patient(time.Minute)(clusterOf(t, s))
	for n, want := range []int{1, 1, 1, 2} {
		if _, err := cluster.Live(t.Context(), "mfg-system", "shop", "orders"); err != nil {
			t.Fatal(err)
		}
		proxied := 0
		for _, path := range f.asked {
			if path == livePath {
				proxied++
			}
		}
		if proxied != want {
			t.Errorf("look %d: the proxy was asked %d times, want %d", n+1, proxied, want)
		}
	}
}

// TestPortForwardNotLeading: the operator's own word is final by this way too, once no pod leads.
func TestPortForwardNotLeading(t *testing.T) {
	for leader, want := range map[int]error{0: live.ErrIdle, 1: nil, 2: nil} {
		f, asked := loadHealthy(t), 0
		f.answers[livePath] = status(403, metav1.StatusReasonForbidden, "no services/proxy")
		s := forwarding(t, f, f, func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked == leader {
				f.serveLive(w, r)
				return
			}
			operatorSays(503, wire.ReasonNotLeading)(w)
		})
		cluster := patient(time.Minute)(clusterOf(t, s))
		if _, err := cluster.Live(t.Context(), "mfg-system", "shop", "orders"); !errors.Is(err, want) {
			t.Errorf("leader %d: %v", leader, err)
		}
	}
}

// TestPortForwardToLostNode: a pod on a node that is lost takes no more than its share of the time, and the other answers.
func TestPortForwardToLostNode(t *testing.T) {
	f := loadHealthy(t)
	f.answers[livePath] = status(403, metav1.StatusReasonForbidden, "no services/proxy")
	s := forwarding(t, f, f, f.serveLive)
	s.lost, s.over = "mfg-operator-1", make(chan struct{})
	c := clusterOf(t, s)
	t.Cleanup(func() { close(s.over) }) // before the server ends
	if a, is := c.(*cluster.API); is {
		a.Total = 4 * time.Second
	}
	_, err := c.Live(t.Context(), "mfg-system", "shop", "orders")
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || strings.Join(s.asked, " ") != "mfg-operator-1 mfg-operator-2" {
		t.Errorf("asked %v: %v", s.asked, err)
	}
}

// TestPortForwardLeaderOutOfReach: that one pod stands by does not mean that no operator leads, if another cannot be asked.
func TestPortForwardLeaderOutOfReach(t *testing.T) {
	f := loadHealthy(t)
	f.answers[livePath] = status(403, metav1.StatusReasonForbidden, "no services/proxy")
	asked := 0
	s := forwarding(t, f, f, func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			operatorSays(503, wire.ReasonNotLeading)(w)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	})
	c := patient(time.Minute)(clusterOf(t, s))
	if _, err := c.Live(t.Context(), "mfg-system", "shop", "orders"); err == nil || live.IsFinal(err) || asked != 2 {
		t.Errorf("asked %d pods: %v", asked, err)
	}
}

// clusterOf connects to an API server.
func clusterOf(t *testing.T, handler http.Handler) Cluster {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer = &server.URL
	cluster, err := cluster.Connect(flags)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// TestNoLogOfTheClient: stderr has what a command says, and no log of the Kubernetes client.
func TestNoLogOfTheClient(t *testing.T) {
	f := loadHealthy(t)
	f.answers[livePath] = status(403, metav1.StatusReasonForbidden, "no services/proxy")
	s := forwarding(t, f, f, nil)
	told := make(chan struct{})
	var once sync.Once
	s.handle = func(_ string, data httpstream.Stream, all map[string]httpstream.Stream) {
		_, _ = fmt.Fprint(all["error"], "failed to connect to localhost:8082 inside namespace")
		_, _ = all["error"].Close(), data.Close()
		once.Do(func() { close(told) })
	}
	stderr := os.Stderr
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = write
	got := realTime(t, s, "status", "orders", "-n", "shop")
	os.Stderr = stderr
	<-told
	_ = write.Close()
	if logged, _ := io.ReadAll(read); len(logged) > 0 || !strings.Contains(got.out, "operator not reachable") {
		t.Errorf("logged %q; %+v", logged, got)
	}
}

// TestExec: the command arrives as it was meant, and all streams are joined.
func TestExec(t *testing.T) {
	s := &streams{t: t, plain: &fakeAPI{}}
	s.handle = func(_ string, _ httpstream.Stream, all map[string]httpstream.Stream) {
		typed, err := io.ReadAll(all["stdin"])
		if err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(all["stdout"], "typed %s", typed)
		_, _ = fmt.Fprint(all["stderr"], "warned")
		_, _ = fmt.Fprint(all["error"], `{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"127"}]}}`)
		for _, stream := range []string{"stdout", "stderr", "error"} {
			_ = all[stream].Close()
		}
	}
	cluster := clusterOf(t, s)
	var out, errOut bytes.Buffer
	err := cluster.Exec(t.Context(), pods.Execution{Namespace: "shop", Pod: "p", Container: "mysql", Command: []string{"mysql", "-e", "SELECT 1"},
		In: strings.NewReader("hello"), Out: &out, ErrOut: &errOut})
	if out.String() != "typed hello" || errOut.String() != "warned" || strings.Join(s.command, "|") != "mysql|-e|SELECT 1" {
		t.Errorf("%q %q %v", out.String(), errOut.String(), s.command)
	}
	op := &mysqlclient.Op{Namespace: "shop", Group: "orders", Site: "paris"}
	if _, said := op.Outcome(err); said == nil || !strings.Contains(said.Error(), "has no mysql client") {
		t.Errorf("%v: %v", err, said)
	}
}
