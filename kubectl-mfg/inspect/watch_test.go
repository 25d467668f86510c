// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// hangs is an API server that answers once, and then no more.
type hangs struct {
	Cluster
	asked int
}

func (h *hangs) Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error) {
	if h.asked++; h.asked > 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, nil
}

func (h *hangs) Live(context.Context, string, string, string) (wire.StatusList, error) {
	return wire.StatusList{}, errors.New("no answer")
}

// TestWatchOfAnAPIServerThatHangs: what stays on the screen is called old, with its time, within the bound.
func TestWatchOfAnAPIServerThatHangs(t *testing.T) {
	noon := time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	looks := 0
	env := cli.Environment{
		IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &bytes.Buffer{}},
		Getenv:    func(string) string { return "" },
		Now:       func() time.Time { return noon.Add(time.Duration(looks) * time.Minute) },
		Terminal:  func() (int, bool) { return 80, true },
		Height:    func() int { return 40 },
		Wait:      func(context.Context, time.Duration) bool { looks++; return looks < 2 },
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	op := &Status{Namespace: "shop", Group: "orders", OperatorNamespace: "mfg-system", Watch: true, Interval: time.Second, Color: "never"}
	w := watcher{op: op, env: env, terminal: true, bound: 50 * time.Millisecond}
	code, err := w.run(ctx, &hangs{})
	if err != nil || ctx.Err() != nil {
		t.Fatalf("%v, %v", err, ctx.Err())
	}
	if code != cli.ExitError {
		t.Errorf("exit code %d: the last look had no answer", code)
	}
	if !strings.Contains(out.String(), "this is old, from 12:00:00Z") {
		t.Errorf("not called old:\n%s", out.String())
	}
}
