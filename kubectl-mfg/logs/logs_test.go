// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]struct {
		level Level
		text  string
	}{
		`{"time":"2026-11-25T17:00:00Z","level":"WARN","msg":"cut off","site":"west","waited":3,"why":"no answer"}`: {Warning, `cut off site=west waited=3 why="no answer"`},
		`{"level":"INFO+2","msg":"x"}`: {Info, "x"},
		`{"level":"loud","msg":"x"}`:   {unlevelled, `{"level":"loud","msg":"x"}`},
		`{"broken`:                     {unlevelled, `{"broken`},
		`2026-11-25T17:00:00.123456Z 0 [Warning] [MY-010068] [Server] CA is self signed.`:    {Warning, "[MY-010068] [Server] CA is self signed."},
		`2026-11-25T17:00:00.123456Z 12 [ERROR] [MY-013183] [InnoDB] Assertion failure`:      {Error, "[MY-013183] [InnoDB] Assertion failure"},
		`2026-11-25T17:00:00.123456Z 0 [System] [MY-010931] [Server] ready for connections.`: {Info, "[MY-010931] [Server] ready for connections."},
		`2026-11-25T17:00:00.123456Z 0 [Note] a`:                                             {Info, "a"},
		`/usr/sbin/mysqld(my_print_stacktrace+0x3a)`:                                         {unlevelled, "/usr/sbin/mysqld(my_print_stacktrace+0x3a)"},
		`a sentence about [ERROR] in the middle, as a client may have it written to the log`: {unlevelled, "a sentence about [ERROR] in the middle, as a client may have it written to the log"},
	} {
		got := Parse("2026-11-25T17:00:00.5Z " + in)
		if got.Level != want.level || got.Text != want.text || got.At.Nanosecond() != 5e8 {
			t.Errorf("%s: %+v", in, got)
		}
	}
	if got := Parse("no time"); !got.At.IsZero() || got.Text != "no time" {
		t.Errorf("%+v", got)
	}
}

// TestOrder: lines come in the order of their times, whatever order they are read in; a stream that is silent is not waited for beyond
// the patience, and none is ever read ahead.
func TestOrder(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(s int) Line { return Line{At: time.Unix(int64(s), 0), Text: fmt.Sprint(s)} }
	o := order{patience: time.Second, streams: map[int]*head{}}
	o.open(0, now)
	o.open(1, now)
	if _, _, wait, found := o.take(now); found || wait != 0 {
		t.Errorf("nothing was said: %v %t", wait, found)
	}
	o.put(0, at(5))
	if _, _, wait, found := o.take(now); found || wait != time.Second {
		t.Errorf("the other may have an earlier line: %v %t", wait, found)
	}
	o.put(1, at(3))
	if id, l, _, found := o.take(now); !found || id != 1 || l.Text != "3" || l.Level != Info {
		t.Errorf("%d %+v %t", id, l, found)
	}
	if _, _, wait, found := o.take(now.Add(400 * time.Millisecond)); found || wait != 600*time.Millisecond {
		t.Errorf("%v %t", wait, found)
	}
	if id, l, _, found := o.take(now.Add(time.Second)); !found || id != 0 || l.Text != "5" {
		t.Errorf("a silent one holds up the others: %d %+v %t", id, l, found)
	}
	o.put(1, Line{At: time.Unix(6, 0), Level: Error})
	o.end(0)
	if id, _, _, found := o.take(now); !found || id != 1 {
		t.Error("one that ended is waited for")
	}
	o.put(1, at(7))
	if _, l, _, _ := o.take(now); l.Level != Error {
		t.Errorf("a line without a level: %v", l.Level)
	}
}

// nodes is an API server with pods and their logs.
type nodes struct {
	mu   sync.Mutex
	pods []corev1.Pod
	// logs are by pod and container. One that ends in "..." goes on for as long as somebody reads it.
	logs  map[string]string
	asked []string
	kube  kubernetes.Interface
}

func (n *nodes) Kube() kubernetes.Interface { return n.kube }

func (n *nodes) Group(context.Context, string, string) (*v1alpha1.MysqlFailoverGroup, error) {
	return &v1alpha1.MysqlFailoverGroup{Spec: v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{{Name: "east"}, {Name: "west"}}}}, nil
}

func (n *nodes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const all = "/api/v1/namespaces/shop/pods"
	n.mu.Lock()
	if r.URL.Path == all {
		defer n.mu.Unlock()
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, p := range n.pods {
			if site := p.Labels[v1alpha1.LabelSite]; !strings.Contains(r.URL.Query().Get("labelSelector"), v1alpha1.LabelSite) || strings.Contains(r.URL.Query().Get("labelSelector"), "="+site) {
				list.Items = append(list.Items, p)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, all+"/"), "/log")
	n.asked = append(n.asked, r.URL.RawQuery)
	log, has := n.logs[name+"/"+r.URL.Query().Get("container")]
	n.mu.Unlock()
	if !has {
		http.Error(w, "no log", http.StatusInternalServerError)
		return
	}
	text, goesOn := strings.CutSuffix(log, "...")
	_, _ = io.WriteString(w, asKubelet(text, r.URL.Query()))
	if f, can := w.(http.Flusher); can {
		f.Flush()
	}
	if goesOn {
		<-r.Context().Done()
	}
}

// asKubelet goes back as many lines as are asked for, and stops at the limit of bytes, as the kubelet does.
func asKubelet(text string, query url.Values) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if most, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		text = strings.Join(lines[max(0, len(lines)-most):], "") + text[len(strings.TrimSuffix(text, "\n")):]
	}
	if most, err := strconv.Atoi(query.Get("limitBytes")); err == nil {
		text = text[:min(len(text), most)]
	}
	return text
}

func pod(name, site string, containers ...string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID(name), Labels: map[string]string{v1alpha1.LabelGroup: "orders", v1alpha1.LabelSite: site}}}
	for _, c := range containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "bootstrap", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
	return p
}

func serve(t *testing.T, n *nodes) *nodes {
	t.Helper()
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	n.kube = kube
	return n
}

// screen is a terminal that can be looked at while it is written to.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func environment() (cli.Environment, *screen, *screen) {
	out, errOut := &screen{}, &screen{}
	return cli.Environment{IOStreams: genericiooptions.IOStreams{Out: out, ErrOut: errOut}, Terminal: func() (int, bool) { return 0, false }, Getenv: func(string) string { return "" }}, out, errOut
}

func twoSites() *nodes {
	return &nodes{pods: []corev1.Pod{pod("e", "east", "mysql", "sidecar"), pod("w", "west", "mysql")}, logs: map[string]string{
		"e/mysql": "2026-11-25T17:00:01Z 2026-11-25T17:00:01.0Z 0 [System] [MY-010931] [Server] ready\n" +
			"2026-11-25T17:00:04Z 2026-11-25T17:00:04.0Z 0 [ERROR] [MY-013183] [InnoDB] broken \x1b[2J\n2026-11-25T17:00:05Z stack\n",
		"e/sidecar": `2026-11-25T17:00:02Z {"time":"x","level":"WARN","msg":"fenced","site":"east"}` + "\n",
		"w/mysql":   "2026-11-25T17:00:03Z " + strings.Repeat("x", 40000) + "\n2026-11-25T17:00:06Z last, without an end",
	}}
}

// TestLogs: all containers, in the order of their times, each with its level; nothing steers the terminal.
func TestLogs(t *testing.T) {
	all := []string{
		"2026-11-25T17:00:01.000Z  east/mysql    INFO   [MY-010931] [Server] ready",
		"2026-11-25T17:00:02.000Z  east/sidecar  WARN   fenced site=east",
		"2026-11-25T17:00:03.000Z  west/mysql    INFO   " + strings.Repeat("x", lineBytes-len("2026-11-25T17:00:03Z ")) + "... (cut)",
		`2026-11-25T17:00:04.000Z  east/mysql    ERROR  [MY-013183] [InnoDB] broken \x1b[2J`,
		"2026-11-25T17:00:05.000Z  east/mysql    ERROR  stack",
		"2026-11-25T17:00:06.000Z  west/mysql    INFO   last, without an end",
	}
	for name, tc := range map[string]struct {
		op   Op
		want []string
	}{
		"All":     {Op{Level: "debug"}, all},
		"Level":   {Op{Level: "warning"}, []string{all[1], all[3], all[4]}},
		"Errors":  {Op{Level: "error"}, []string{all[3], all[4]}},
		"Sidecar": {Op{Level: "debug", Container: "sidecar"}, []string{all[1]}},
		"Site":    {Op{Level: "info", Site: "west"}, []string{strings.Replace(all[2], "mysql    ", "mysql  ", 1), strings.Replace(all[5], "mysql    ", "mysql  ", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.op.Namespace, tc.op.Group, tc.op.Color = "shop", "orders", "never"
			env, out, errOut := environment()
			code, err := tc.op.Run(t.Context(), env, serve(t, twoSites()))
			if err != nil || code != cli.ExitHealthy || errOut.String() != "" {
				t.Errorf("code %d, %v, %s", code, err, errOut)
			}
			if diff := cmp.Diff(tc.want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOneLogIsMissing: the others are shown, and the exit code says that something is missing.
func TestOneLogIsMissing(t *testing.T) {
	n := twoSites()
	delete(n.logs, "e/sidecar")
	env, out, errOut := environment()
	op := Op{Namespace: "shop", Group: "orders", Level: "debug", Color: "never", Since: time.Minute}
	code, err := op.Run(t.Context(), env, serve(t, n))
	if err != nil || code != cli.ExitDegraded || !strings.Contains(errOut.String(), "east/sidecar") || strings.Count(out.String(), "\n") != 5 {
		t.Errorf("code %d, %v, %s\n%s", code, err, errOut, out)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.asked) == 0 || !strings.Contains(n.asked[0], "sinceSeconds=60") || !strings.Contains(n.asked[0], "timestamps=true") {
		t.Errorf("%v", n.asked)
	}
}

// TestKubeletWithoutTheLog: a kubelet that has lost the file of a log says so where the log should be, with status 200.
func TestKubeletWithoutTheLog(t *testing.T) {
	n := twoSites()
	n.logs["e/sidecar"] = "unable to retrieve container logs for containerd://5e1f"
	env, out, errOut := environment()
	op := Op{Namespace: "shop", Group: "orders", Level: "debug", Color: "never"}
	code, err := op.Run(t.Context(), env, serve(t, n))
	if err != nil || code != cli.ExitDegraded || !strings.Contains(errOut.String(), "east/sidecar") || !strings.Contains(errOut.String(), "unable to retrieve") || strings.Count(out.String(), "\n") != 5 {
		t.Errorf("code %d, %v, %s\n%s", code, err, errOut, out)
	}
}

// TestSilentNode: a kubelet that hangs does not keep the lines of the others back for good, and is named.
func TestSilentNode(t *testing.T) {
	n := twoSites()
	n.logs["w/mysql"] = "..."
	env, out, _ := environment()
	op := Op{Namespace: "shop", Group: "orders", Level: "debug", Color: "never", silence: 200 * time.Millisecond}
	_, err := op.Run(t.Context(), env, serve(t, n))
	if err == nil || !strings.Contains(err.Error(), "west/mysql") || strings.Contains(err.Error(), "east") || strings.Count(out.String(), "\n") != 4 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestFollow: what comes is shown although others are silent, and a pod that is new is followed too. A line is shown once.
func TestFollow(t *testing.T) {
	n := twoSites()
	for key := range n.logs {
		n.logs[key] += "..."
	}
	n.logs["w/mysql"] = "2026-11-25T17:00:03Z before\n" // it ends, and is there again
	env, out, _ := environment()
	ctx, cancel := context.WithCancel(t.Context())
	op := Op{Namespace: "shop", Group: "orders", Level: "debug", Color: "never", Follow: true, patience: 50 * time.Millisecond, rescan: 50 * time.Millisecond}
	done := make(chan error, 1)
	n = serve(t, n)
	go func() {
		_, err := op.Run(ctx, env, n)
		done <- err
	}()
	until := func(what string) {
		for end := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), what); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q never came:\n%s", what, out)
			}
		}
	}
	until("stack")
	until("before")
	n.mu.Lock()
	n.logs["w/mysql"] = "2026-11-25T17:00:03Z before\n2026-11-25T17:00:09Z after its restart\n..."
	n.pods = append(n.pods, pod("w2", "west", "sidecar"))
	n.logs["w2/sidecar"] = `2026-11-25T17:00:08Z {"level":"INFO","msg":"a new pod"}` + "\n..."
	n.mu.Unlock()
	until("after its restart")
	until("a new pod")
	if strings.Count(out.String(), "before") != 1 {
		t.Errorf("a line was shown twice:\n%s", out)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// crashes makes a container one that has crashed and waits for its next run.
func crashes(p *corev1.Pod, restarts int32) {
	p.Status.ContainerStatuses[0].RestartCount = restarts
	p.Status.ContainerStatuses[0].ContainerID = fmt.Sprintf("containerd://%d", restarts)
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	p.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
}

// TestCrashLoop: a container that crashes again and again has waited whenever somebody looked, and what it said is what one wants to read.
func TestCrashLoop(t *testing.T) {
	n := twoSites()
	crashes(&n.pods[1], 3)
	n = serve(t, n)
	const said = "last, without an end"
	env, out, _ := environment()
	op := Op{Namespace: "shop", Group: "orders", Site: "west", Level: "debug", Color: "never"}
	if code, err := op.Run(t.Context(), env, n); err != nil || code != cli.ExitHealthy || !strings.Contains(out.String(), said) {
		t.Errorf("code %d, %v:\n%s", code, err, out)
	}
	lines, note, err := Tail{Namespace: "shop", Group: "orders", Site: "west", Lines: 9}.Read(t.Context(), n.kube)
	if err != nil || note != "" || len(lines) != 2 || lines[1].Text != said {
		t.Errorf("%+v, %q, %v", lines, note, err)
	}
}

// TestFollowCrashLoop: each run is read, also if it is over at the next look, and none twice.
func TestFollowCrashLoop(t *testing.T) {
	n := twoSites()
	crashes(&n.pods[1], 3)
	n.logs["w/mysql"] = "2026-11-25T17:00:03Z run 3\n"
	n = serve(t, n)
	env, out, _ := environment()
	ctx, cancel := context.WithCancel(t.Context())
	op := Op{Namespace: "shop", Group: "orders", Site: "west", Level: "debug", Color: "never", Follow: true, patience: 20 * time.Millisecond, rescan: 20 * time.Millisecond}
	done := make(chan error, 1)
	go func() {
		_, err := op.Run(ctx, env, n)
		done <- err
	}()
	until := func(what string) {
		for end := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), what); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q never came:\n%s", what, out)
			}
		}
	}
	until("run 3")
	time.Sleep(100 * time.Millisecond) // some looks that find nothing new
	n.mu.Lock()
	asked := len(n.asked)
	crashes(&n.pods[1], 4)
	n.logs["w/mysql"] = "2026-11-25T17:00:09Z run 4\n"
	n.mu.Unlock()
	until("run 4")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if asked != 1 || strings.Count(out.String(), "run") != 2 {
		t.Errorf("asked %d times before the next run:\n%s", asked, out)
	}
}

func TestLogsRefused(t *testing.T) {
	for _, op := range []Op{{Level: "loud", Color: "never"}, {Level: "info", Color: "pink"}, {Level: "info", Color: "never", Since: -1}} {
		if op.Validate() == nil {
			t.Errorf("%+v was taken", op)
		}
	}
	env, _, _ := environment()
	for says, op := range map[string]Op{"its sites are": {Site: "rome"}, "no container of orders has a log": {Container: "nginx"}} {
		op.Namespace, op.Group, op.Level, op.Color = "shop", "orders", "info", "never"
		if _, err := op.Run(t.Context(), env, serve(t, twoSites())); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v", err)
		}
	}
}
