// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// The group that most tests share. Each takes it as the one before left it, or a fresh one if that cannot be repaired:
// to bring up a group takes longer than most of what is tested on it.
const (
	namespace = "suite"
	name      = "orders"
)

const (
	bringUp  = 6 * time.Minute
	comeBack = 4 * time.Minute
)

// lab is the one stage of all tests. Most break nodes or what all share, and run alone. A test that has groups of its own, and
// breaks nothing but them, calls t.Parallel: a few of those run at a time, after all others. None of the others does: beside two more
// groups under load on two processors, a planned failover took so long that it became an emergency.
var lab *stage.Stage

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := 1
	err := prepare(ctx)
	stop() // from here on Ctrl-C ends the program: tests would not hear of it
	if err != nil {
		fmt.Fprintf(os.Stderr, "suites: no test can run without the lab: %v\n", err)
	} else {
		code = m.Run()
	}
	os.Exit(code)
}

func prepare(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("it needs root: it makes network namespaces and runs containers. Run the tests with sudo")
	}
	var err error
	if lab, err = stage.Open(ctx, os.Stdout); err != nil {
		return err
	}
	return lab.InstallOperator(ctx)
}

// whole takes the shared group and waits until it is whole.
func whole(t *testing.T) (*stage.Group, *v1alpha1.MysqlFailoverGroup) {
	t.Helper()
	ctx := t.Context()
	if err := lab.Restore(ctx); err != nil {
		t.Fatal(err)
	}
	g, err := lab.EnsureGroup(ctx, namespace, name, stage.DefaultSpec(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			g.Diagnose(context.Background(), strings.ReplaceAll(t.Name(), "/", "-"))
		}
		// The next test takes faults back too; this one tells if that does not work.
		if err := lab.Restore(context.Background()); err != nil {
			t.Errorf("take back faults: %v", err)
		}
	})
	group, err := g.AwaitReady(ctx, bringUp)
	if err != nil {
		t.Fatal(err)
	}
	return g, group
}

// witnesses starts writers that end with the test, however it ends.
func witnesses(t *testing.T, g *stage.Group) *stage.Witnesses {
	t.Helper()
	// It becomes part of a pod's name.
	// A story is part of a test; its own name tells more than that of the test.
	name := strings.NewReplacer("_", "-").Replace(strings.TrimPrefix(path.Base(t.Name()), "Test"))
	run := strings.ToLower(name[:min(len(name), 30)])
	// A third of what the benches write. Their load keeps two processors fully busy: what is tested here would wait for the machine. The
	// writers that look for a second active site stay as fast.
	g.WriterArgs = []string{"--rate=60"}
	w, err := g.StartWitnesses(t.Context(), strings.TrimRight(run, "-"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Abandon(context.Background()) })
	return w
}

// judge stops the writers and fails the test if two sites wrote at the same time.
func judge(t *testing.T, w *stage.Witnesses, fault time.Duration) (stage.Verdict, stage.Testimony) {
	t.Helper()
	testimony, err := w.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, err := w.Judge(t.Context(), testimony, fault)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.CheckWriters(); err != nil {
		t.Error(err)
	}
	t.Logf("%s -> %s, pause %.2f s, margin %s, %d rows acknowledged, %d missing, %d reported lost; direct writers refused %v",
		v.From, v.To, v.Pause.Length().Seconds(), v.Margin.Round(time.Millisecond), v.Acked, len(v.Missing), v.Lost, testimony.Refused())
	return v, testimony
}

// undisturbed fails the test if the role moved, or if a client of the Service met a fence. How long it waited for a commit
// is no matter: on a busy machine one takes seconds.
func undisturbed(t *testing.T, v stage.Verdict, testimony stage.Testimony) {
	t.Helper()
	if v.From != v.To || len(v.Records) != 0 {
		t.Errorf("%s -> %s, records %+v: nothing may have happened", v.From, v.To, v.Records)
	}
	for _, fence := range []string{readOnly, offline} {
		if n := testimony.Service.Refused[fence]; n > 0 {
			t.Errorf("clients of the Service were refused %d times with error %s", n, fence)
		}
	}
	if v.Pause.Length() > tooLong {
		t.Errorf("clients waited %s", v.Pause.Length())
	}
}

// What MySQL answers to a client that meets a fence.
const (
	readOnly = "1290"
	offline  = "3032"
)

// sleep waits for a time that is itself what is tested, such as that nothing happens in it.
func sleep(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	case <-time.After(d):
	}
}

// write runs SQL that may run twice as root on the active site.
func write(t *testing.T, g *stage.Group, statements string) {
	t.Helper()
	if _, err := g.WriteSQL(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// query runs SQL as root on a site and returns what it prints, without the last line break. What only reads is asked again after a lost connection.
func query(t *testing.T, g *stage.Group, site, statement string) string {
	t.Helper()
	run := g.RootSQL
	if strings.HasPrefix(statement, "SELECT ") && !strings.Contains(statement, ";") {
		run = g.ReadSQL
	}
	out, err := run(t.Context(), site, statement)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}
