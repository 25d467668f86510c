// SPDX-License-Identifier: Apache-2.0

package mysqlclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// client is a cluster whose mysql asks for a password as the real one does.
type client struct {
	kube   *fake.Clientset
	active string
	// silent is a client that never asks; echoes is a terminal whose echo is still on when the password comes.
	silent, echoes bool
	ran            pods.Execution
	typed          string
}

func (c *client) Kube() kubernetes.Interface { return c.kube }

func (c *client) Group(context.Context, string, string) (*v1alpha1.MysqlFailoverGroup, error) {
	g := &v1alpha1.MysqlFailoverGroup{Spec: v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{{Name: "paris"}, {Name: "rome"}}}}
	g.Status.ActiveSite = c.active
	return g, nil
}

func (c *client) Exec(_ context.Context, e pods.Execution) error {
	c.ran = e
	if e.TTY && !c.silent {
		for _, part := range []string{"Welcome\r\nEnter pass", "word: "} {
			if _, err := io.WriteString(e.Out, part); err != nil {
				return err
			}
		}
	}
	line := make([]byte, 64)
	n, err := e.In.Read(line)
	if err != nil {
		return err
	}
	c.typed = string(line[:n])
	if e.TTY && c.echoes {
		_, _ = io.WriteString(e.Out, strings.TrimSuffix(c.typed, "\n"))
		_, _ = io.WriteString(e.Out, "\r\nmysql> ")
	} else if e.TTY {
		_, _ = io.WriteString(e.Out, "*******\r\nmysql> ")
	}
	rest, err := io.ReadAll(e.In)
	c.typed += string(rest)
	return err
}

func cluster(active string) *client {
	pod := func(site string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod-of-" + site, Labels: map[string]string{
			v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelSite: site}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
	}
	return &client{active: active, kube: fake.NewClientset(pod("paris"), pod("rome"),
		secret("mysql-orders-root", map[string][]byte{"password": []byte("hunter2")}),
		secret("mysql-orders-app", map[string][]byte{"username": []byte("shop"), "password": []byte("hunter3")}))}
}

func environment(terminal bool) (cli.Environment, *bytes.Buffer) {
	shown := &bytes.Buffer{}
	return cli.Environment{IOStreams: genericiooptions.IOStreams{In: strings.NewReader("SELECT 1"), Out: shown, ErrOut: shown}, Interactive: func() bool { return terminal }}, shown
}

// TestAccounts: without a site it is the active one; the password is typed for the person, stands in no command line and is not shown.
func TestAccounts(t *testing.T) {
	for _, tc := range []struct {
		name     string
		op       Op
		c        *client
		terminal bool
		pod      string
		user     string
		typed    string
	}{
		{"Active", Op{Account: AccountAdmin}, cluster("rome"), true, "pod-of-rome", "root", "hunter2\nSELECT 1"},
		{"Site", Op{Account: AccountAdmin, Site: "paris"}, cluster("rome"), true, "pod-of-paris", "root", "hunter2\nSELECT 1"},
		{"App", Op{Account: AccountApp}, cluster("rome"), true, "pod-of-rome", "shop", "hunter3\nSELECT 1"},
		{"AppOfAScript", Op{Account: AccountApp}, cluster("rome"), false, "pod-of-rome", "shop", "hunter3\nSELECT 1"},
		{"OtherUser", Op{User: "reporting"}, cluster("rome"), true, "pod-of-rome", "reporting", "SELECT 1"},
	} {
		for _, echoes := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				tc.op.Namespace, tc.op.Group, tc.c.echoes = "shop", "orders", echoes
				env, shown := environment(tc.terminal)
				if _, err := tc.op.Run(t.Context(), env, tc.c); err != nil {
					t.Fatal(err)
				}
				line := strings.Join(tc.c.ran.Command, " ")
				if tc.c.ran.Pod != tc.pod || !strings.Contains(line, "--user="+tc.user+" ") || tc.c.typed != tc.typed {
					t.Errorf("pod %s, ran %q, typed %q", tc.c.ran.Pod, line, tc.c.typed)
				}
				if strings.Contains(line+shown.String(), "hunter") {
					t.Errorf("the password is shown, or on the command line: %q %q", line, shown)
				}
				if tc.op.Account != "" && tc.terminal && shown.String() != "Welcome\r\nEnter password: \r\nmysql> " {
					t.Errorf("shown %q", shown)
				}
			})
		}
	}
}

// TestTheApplicationBeginsInItsDatabase: but where a person hands arguments on, they say where.
func TestTheApplicationBeginsInItsDatabase(t *testing.T) {
	for _, args := range [][]string{nil, {"--database=other"}} {
		c := cluster("rome")
		data := map[string][]byte{"username": []byte("shop"), "password": []byte("hunter3"), "database": []byte("orders")}
		if _, err := c.kube.CoreV1().Secrets("shop").Update(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-app"}, Data: data}, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		env, _ := environment(false)
		op := Op{Namespace: "shop", Group: "orders", Account: AccountApp, Args: args}
		if _, err := op.Run(t.Context(), env, c); err != nil {
			t.Fatal(err)
		}
		line := strings.Join(c.ran.Command, " ")
		if strings.Contains(line, "--database=orders") != (args == nil) || strings.Contains(line, "--database=other") != (args != nil) {
			t.Errorf("ran %q", line)
		}
	}
}

// TestNoPrompt: a client that does not ask is left to the person, and never told the password.
func TestNoPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster("rome")
		c.silent = true
		env, _ := environment(true)
		op := Op{Namespace: "shop", Group: "orders", Account: AccountAdmin}
		if _, err := op.Run(t.Context(), env, c); err != nil || c.typed != "SELECT 1" {
			t.Errorf("%v, typed %q", err, c.typed)
		}
	})
}

// TestAccountsRefused: each error says what to do, and nothing of what is in a Secret.
func TestAccountsRefused(t *testing.T) {
	set := func(name string, data map[string][]byte) func(*client) {
		return func(c *client) {
			_, _ = c.kube.CoreV1().Secrets("shop").Update(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}, metav1.UpdateOptions{})
		}
	}
	for name, tc := range map[string]struct {
		account string
		change  func(*client)
		says    string
	}{
		"NoApp": {AccountApp, func(c *client) {
			_ = c.kube.CoreV1().Secrets("shop").Delete(t.Context(), "mysql-orders-app", metav1.DeleteOptions{})
		}, `{"spec":{"application":{"database":"app"}}}`},
		"Database":   {AccountApp, set("mysql-orders-app", map[string][]byte{"password": []byte("hunter2"), "database": []byte("-e")}), "kubectl patch secret mysql-orders-app -n shop --type=merge -p '{\"stringData\":{\"database\":\"DATABASE\"}}'"},
		"NoSecret":   {AccountReadOnly, func(*client) {}, "kubectl mfg account create orders"},
		"NoPassword": {AccountApp, set("mysql-orders-app", nil), "kubectl describe secret mysql-orders-app -n shop"},
		"LineBreak":  {AccountApp, set("mysql-orders-app", map[string][]byte{"password": []byte("hunter2\n")}), "printf %s"},
		"LongUser":   {AccountApp, set("mysql-orders-app", map[string][]byte{"password": []byte("hunter2"), "username": bytes.Repeat([]byte("x"), 33)}), "at most 32 characters, and no control characters\n  write another one there: kubectl patch secret"},
		"NotChosen":  {AccountAdmin, func(c *client) { c.active = "" }, "no active site yet"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster("rome")
			tc.change(c)
			env, _ := environment(false)
			op := Op{Namespace: "shop", Group: "orders", Account: tc.account}
			_, err := op.Run(t.Context(), env, c)
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hunter2") || c.ran.Pod != "" {
				t.Errorf("%v, ran %v", err, c.ran.Command)
			}
		})
	}
	for _, op := range []Op{{}, {User: "a", Account: AccountApp}, {Account: "accounts"}} {
		if err := op.Validate(); err == nil {
			t.Errorf("%+v was taken", op)
		}
	}
}

// TestSecretForbidden: who may not read the Secret and knows the password types it; a script cannot.
func TestSecretForbidden(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		c := cluster("rome")
		c.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("no"))
		})
		env, shown := environment(terminal)
		op := Op{Namespace: "shop", Group: "orders", Account: AccountAdmin}
		_, err := op.Run(t.Context(), env, c)
		if terminal && (err != nil || c.typed != "SELECT 1" || !strings.Contains(shown.String(), "the client asks for it")) {
			t.Errorf("%v, typed %q, shown %q", err, c.typed, shown)
		}
		if !terminal && (err == nil || !strings.Contains(err.Error(), "kubectl auth can-i")) {
			t.Errorf("%v", err)
		}
	}
}
