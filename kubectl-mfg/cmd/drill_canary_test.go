// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/drill"
	"github.com/mysql-mfg/mfg/kubectl-mfg/drill/verdict"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// twoSites are paris and frankfurt with a mysql client in each pod; one of them takes writes.
type twoSites struct {
	Cluster
	kube kubernetes.Interface

	mu       sync.Mutex
	open     string // "" while nobody takes writes
	kill     bool   // the next statement of anybody ends its session
	hangs    bool   // nobody's question is answered
	deaf     bool   // the API server takes requests and answers none
	rows     map[string]bool
	sessions int
	said     []string
	commands []string
}

func newTwoSites() *twoSites {
	objects := []runtime.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-root"}, Data: map[string][]byte{"password": []byte("hunter2")}}}
	for _, site := range []string{"paris", "frankfurt"} {
		objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: site, Labels: map[string]string{
			v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelSite: site}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	}
	return &twoSites{kube: fake.NewClientset(objects...), open: "paris", rows: map[string]bool{}}
}

func (s *twoSites) Kube() kubernetes.Interface { return s.kube }

func (s *twoSites) Group(ctx context.Context, _, _ string) (*v1alpha1.MysqlFailoverGroup, error) {
	deaf := false
	if s.do(func() { deaf = s.deaf }); deaf {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &v1alpha1.MysqlFailoverGroup{Spec: v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{{Name: "paris"}, {Name: "frankfurt"}}}}, nil
}

var insert = regexp.MustCompile(`^INSERT INTO mfg_drill_\d+\.canary SELECT (\d+) FROM DUAL WHERE NOT @@global\.super_read_only AND NOT @@global\.offline_mode;`)

// Exec plays the mysql client.
func (s *twoSites) Exec(ctx context.Context, e pods.Execution) error {
	s.mu.Lock()
	s.commands = append(s.commands, strings.Join(e.Command, " "))
	s.mu.Unlock()
	lines := bufio.NewScanner(e.In)
	if !lines.Scan() || lines.Text() != "hunter2" {
		return fmt.Errorf("password %q", lines.Text())
	}
	if e.Command[len(e.Command)-1] != "--force" {
		hangs := false
		if s.do(func() { hangs = s.hangs }); hangs {
			<-ctx.Done()
			return ctx.Err()
		}
		return s.once(lines, e.Out)
	}
	s.mu.Lock()
	s.sessions++
	s.mu.Unlock()
	for lines.Scan() && ctx.Err() == nil {
		if err := s.statement(e, lines.Text()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *twoSites) once(lines *bufio.Scanner, out io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lines.Scan() {
		s.said = append(s.said, lines.Text())
		if strings.HasPrefix(lines.Text(), "SELECT") {
			for row := range s.rows {
				fmt.Fprintln(out, row)
			}
		}
	}
	return nil
}

func (s *twoSites) statement(e pods.Execution, line string) error {
	found := insert.FindStringSubmatch(line)
	if found == nil {
		return fmt.Errorf("statement %q", line)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.kill:
		s.kill = false
		fmt.Fprintln(e.ErrOut, "ERROR 2013 (HY000) at line 7: Lost connection to MySQL server during query")
	case s.open == e.Pod:
		s.rows[found[1]] = true
		fmt.Fprintln(e.Out, found[1])
	default:
		fmt.Fprintln(e.ErrOut, "ERROR 1290 (HY000) at line 1: The MySQL server is running with the --super-read-only option")
	}
	return nil
}

func (s *twoSites) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func drillOfTwo() *drill.Op {
	return &drill.Op{Request: request.Request{Namespace: "shop", Group: "orders"}, To: "frankfurt", Canary: true}
}

// TestCanary: rows go where writes are taken, a session that is ended comes again, and what was acknowledged is looked for.
func TestCanary(t *testing.T) {
	s, env := newTwoSites(), cli.System()
	k, err := drillOfTwo().StartCanary(t.Context(), env, s, "paris")
	if err != nil {
		t.Fatal(err)
	}
	mark := k.Mark()
	s.do(func() { s.open = "" })
	env.Wait(t.Context(), 300*time.Millisecond)
	s.do(func() { s.open = "frankfurt" })
	pause, rows := k.Measure(t.Context(), mark, "frankfurt")
	if pause == nil || *pause < 250 || rows == 0 {
		t.Errorf("nobody took writes for 300 ms: measured %v, %d rows", pause, rows)
	}
	sessions := 0
	s.do(func() { s.kill, sessions = true, s.sessions })
	for waited := 0; waited < 100; waited++ {
		s.do(func() { rows = int64(s.sessions - sessions) })
		if rows > 0 {
			break
		}
		env.Wait(t.Context(), 50*time.Millisecond)
	}
	if rows == 0 {
		t.Error("a session that was ended did not come again")
	}
	k.Stop()
	s.do(func() { delete(s.rows, fmt.Sprint(k.Acked[0].Row)) })
	got := k.Judge(t.Context(), "frankfurt")
	if got.Missing == nil || *got.Missing != 1 || got.Rows != int64(len(k.Acked)) || got.EveryMillis != 20 {
		t.Errorf("%+v", got)
	}
	if err := k.End(t.Context(), "frankfurt"); err != nil {
		t.Error(err)
	}
	// It removes what it made, and no schema of another drill.
	made, of := strings.CutPrefix(s.said[0], "CREATE SCHEMA mfg_drill_")
	if last := s.said[len(s.said)-1]; !of || made == "" || last != "DROP SCHEMA IF EXISTS mfg_drill_"+made {
		t.Errorf("it made %q, and the last thing said is %q", s.said[0], last)
	}
	// I11: what is on a command line is in the audit log of the API server.
	if all := strings.Join(s.commands, "\n"); strings.Contains(all, "hunter2") {
		t.Errorf("the password is on a command line:\n%s", all)
	}
}

// A mysqld whose volume hangs takes the connection and answers nothing: the drill ends all the same, after an interrupt too.
func TestCanaryOnASiteThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoSites()
		k, err := drillOfTwo().StartCanary(t.Context(), cli.System(), s, "paris")
		if err != nil {
			t.Fatal(err)
		}
		s.do(func() { s.hangs = true })
		interrupted, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		got := k.Judge(interrupted, "paris")
		if got.Missing != nil || !strings.Contains(got.Message, "could not be read") || time.Since(began) != time.Minute {
			t.Errorf("after %s: %+v", time.Since(began), got)
		}
		if err := k.End(interrupted, "paris"); err == nil || time.Since(began) > 2*time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// An API server that hangs while a session looks for its pod holds neither the judgement nor the end.
func TestCanaryBesideAnAPIServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoSites()
		k, err := drillOfTwo().StartCanary(t.Context(), cli.System(), s, "paris")
		if err != nil {
			t.Fatal(err)
		}
		s.do(func() { s.deaf, s.kill = true, true })
		time.Sleep(time.Second)
		began := time.Now()
		k.Stop()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the sessions ended after %s", took)
		}
	})
}

// TestCanaryRefused: a drill that cannot be measured does not begin, and says how to do without.
func TestCanaryRefused(t *testing.T) {
	s := newTwoSites()
	clientset, is := s.kube.(*fake.Clientset)
	if !is {
		t.Fatalf("%T", s.kube)
	}
	clientset.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "mysql-orders-root", errors.New("no"))
	})
	_, err := drillOfTwo().StartCanary(t.Context(), cli.System(), s, "paris")
	var own *cli.Error
	if !errors.As(err, &own) || own.Code != cli.ExitRefused || !strings.Contains(err.Error(), "kubectl mfg drill orders -n shop --canary=false") || !strings.Contains(err.Error(), "root Secret") {
		t.Errorf("%v", err)
	}
	if len(s.commands) > 0 {
		t.Errorf("ran %v", s.commands)
	}
}

// TestCanaryThatNobodyAcknowledges: who cannot write learns what the mysql client said, where to look, and how to do without.
func TestCanaryThatNobodyAcknowledges(t *testing.T) {
	s, env := newTwoSites(), cli.System()
	s.open, env.Wait = "", func(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil }
	_, err := drillOfTwo().StartCanary(t.Context(), env, s, "paris")
	if err == nil {
		t.Fatal("it began")
	}
	for _, want := range []string{"(the mysql client says: nothing)", "\n  see whether clients can write: kubectl mfg status orders -n shop\n", "--canary=false"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// TestDrillWithCanary: what the canary saw is in every format, and counts.
func TestDrillWithCanary(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	drill := func(pause int64, missing *int64) *verdict.Drill {
		d := verdict.NewDrill("shop", "orders", time.Second, noon)
		for i, name := range []string{"there", "back"} {
			from, to := []string{"paris", "frankfurt"}[i], []string{"frankfurt", "paris"}[i]
			d.Legs = append(d.Legs, verdict.Leg{Name: name, From: from, To: to, StartedAt: noon, Outcome: cli.OutcomeDone, Epoch: int64(8 + i), WritePauseMillis: number(412),
				LostTransactions: number(0), SettledMillis: 2100, CanaryPauseMillis: number(pause), CanaryRows: 87})
		}
		d.Canary = &verdict.Canary{EveryMillis: 20, Rows: 180, Missing: missing}
		if missing == nil {
			d.Canary.Message = "the rows could not be read"
		}
		d.Finish(noon.Add(9*time.Second), nil)
		return &d
	}
	good := drill(377, number(0))
	if !good.Passed {
		t.Errorf("%v", good.Failures)
	}
	golden(t, filepath.Join("testdata", "verbs", "drill-canary.txt"), good.Text())
	raw, err := yaml.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "verbs", "drill-canary.yaml"), string(raw))
	for name, bad := range map[string]*verdict.Drill{"slow": drill(1001, number(0)), "missing": drill(377, number(1)), "unread": drill(377, nil)} {
		if bad.Passed {
			t.Errorf("%s: passed", name)
		}
	}
	xml, err := drill(1001, number(2)).JUnit()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "verbs", "drill-canary.xml"), string(xml))
	if bytes.Count(xml, []byte("<failure")) != 3 {
		t.Errorf("each move and the canary fail:\n%s", xml)
	}
}
