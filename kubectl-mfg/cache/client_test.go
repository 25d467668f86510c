// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// shell is a cluster whose containers run nothing, but remember what they were told.
type shell struct {
	group *v1alpha1.MysqlFailoverGroup
	kube  kubernetes.Interface
	err   error
	ran   pods.Execution
	typed string
}

func (s *shell) Kube() kubernetes.Interface { return s.kube }

func (s *shell) Group(context.Context, string, string) (*v1alpha1.MysqlFailoverGroup, error) {
	return s.group, nil
}

func (s *shell) Exec(_ context.Context, e pods.Execution) error {
	s.ran = e
	if e.TTY {
		_, _ = io.WriteString(e.Out, question)
	}
	typed, err := io.ReadAll(e.In)
	s.typed = string(typed)
	return errors.Join(s.err, err)
}

func cachePod(site string, containers ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-cache-" + site + "-0", Labels: map[string]string{
		v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameCache, v1alpha1.LabelSite: site}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	for _, name := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name})
	}
	return pod
}

func cached() *v1alpha1.MysqlFailoverGroup {
	return &v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"},
		Spec: v1alpha1.MysqlFailoverGroupSpec{
			Sites: []v1alpha1.Site{{Name: "paris"}, {Name: "rome"}, {Name: "bern"}},
			Cache: &v1alpha1.CacheSpec{Enabled: true, Engine: v1alpha1.CacheValkey},
		},
		Status: v1alpha1.MysqlFailoverGroupStatus{Cache: &v1alpha1.CacheStatus{ActiveSite: "paris"}},
	}
}

func TestClient(t *testing.T) {
	on := true
	for name, tc := range map[string]struct {
		op       Client
		change   func(*v1alpha1.MysqlFailoverGroup)
		terminal bool
		err      error
		pod      string
		typed    string
		command  string
		says     string
		usage    bool
	}{
		"Master":             {terminal: true, pod: "orders-cache-paris-0", typed: "hunter2.x\rtyped", command: "sh -h 127.0.0.1 -p 6379"},
		"Site":               {op: Client{Site: "rome"}, pod: "orders-cache-rome-0", typed: "hunter2.x\ntyped", command: "sh -h 127.0.0.1 -p 6379"},
		"Command":            {op: Client{Args: []string{"INFO", "replication"}}, pod: "orders-cache-paris-0", typed: "hunter2.x\n", command: "-p 6379 INFO replication"},
		"CommandOnATerminal": {op: Client{Args: []string{"DBSIZE"}}, terminal: true, typed: "hunter2.x\n", command: "-p 6379 DBSIZE"},
		"OwnTLS":             {change: func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.TLS, g.Spec.Cache.TLS.Enabled = &v1alpha1.TLSSpec{}, &on }, typed: "hunter2.x\ntyped", command: "-p 6379 --tls --insecure"},
		"GroupTLS":           {change: func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.TLS = &v1alpha1.TLSSpec{} }, typed: "hunter2.x\ntyped", command: "-p 6379 --tls --insecure"},
		"OwnSecret":          {change: func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Auth.SecretName = "mine" }, typed: "hunter2.x\ntyped", command: "-p 6379"},
		"BadSecret":          {op: Client{Group: "bad"}, says: "no usable key password"},
		"NoSecret":           {op: Client{Group: "none"}, says: "not found"},
		"Off":                {change: func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Enabled = false }, says: "has no cache store"},
		"NoMaster":           {change: func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Cache = nil }, says: "--site SITE"},
		"NoSite":             {op: Client{Site: "oslo"}, says: "its sites are paris, rome, bern", usage: true},
		"NoPod":              {op: Client{Site: "bern"}, says: "kubectl describe pods -n shop"},
		"NoClient":           {err: utilexec.CodeExitError{Code: 127, Err: errors.New("x")}, says: "kubectl port-forward -n shop service/orders-cache 6379"},
		"NoShell":            {err: errors.New(`exec: "sh": executable file not found in $PATH`), says: "neither valkey-cli nor redis-cli"},
		"Failed":             {err: utilexec.CodeExitError{Code: 1, Err: errors.New("x")}, says: "code 1"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.op.Namespace, tc.op.Group = "shop", cmp.Or(tc.op.Group, "orders")
			secret := func(name, key, value string) *corev1.Secret {
				return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{key: []byte(value)}}
			}
			s := &shell{group: cached(), err: tc.err, kube: fake.NewClientset(cachePod("paris", "istio", "cache"), cachePod("rome", "cache"), &corev1.Pod{},
				secret("orders-cache-auth", "password", "hunter2.x"), secret("mine", "password", "of-my-own"), secret("bad-cache-auth", "password", "two\nlines"))}
			s.group.Name = tc.op.Group
			if tc.op.Group != "orders" {
				pod := cachePod("paris", "cache")
				pod.Name, pod.Labels[v1alpha1.LabelGroup] = "p", tc.op.Group
				_, _ = s.kube.CoreV1().Pods("shop").Create(t.Context(), pod, metav1.CreateOptions{})
			}
			if tc.change != nil {
				tc.change(s.group)
			}
			env := cli.Environment{IOStreams: genericiooptions.IOStreams{In: strings.NewReader("typed"), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, Interactive: func() bool { return tc.terminal }}
			_, err := tc.op.Run(t.Context(), env, s)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || errors.Is(err, cli.ErrUsage) != tc.usage || strings.Contains(err.Error(), "two") {
					t.Errorf("%v", err)
				}
				return
			}
			line := strings.Join(s.ran.Command, " ")
			if err != nil || s.typed != tc.typed || !strings.HasSuffix(line, tc.command) || s.ran.TTY != (tc.terminal && len(tc.op.Args) == 0) || s.ran.Container != "cache" ||
				tc.pod != "" && s.ran.Pod != tc.pod {
				t.Errorf("%v, typed %q, ran %q in %s/%s", err, s.typed, line, s.ran.Pod, s.ran.Container)
			}
			// I11: what is on a command line is in the audit log of the API server.
			if strings.Contains(line, "hunter2") || strings.Contains(line, "of-my-own") || strings.Contains(line, "AUTH") {
				t.Errorf("the password is on the command line, or in the environment: %s", line)
			}
		})
	}
}
