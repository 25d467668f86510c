// SPDX-License-Identifier: Apache-2.0

package readonly

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// fakeWorld is a group of two sites, of which paris is active.
type fakeWorld struct {
	kube  *fake.Clientset
	group *v1alpha1.MysqlFailoverGroup
	// password is that of the account on paris; empty if there is no account. follows is false while rome does not replicate.
	password string
	follows  bool
	closed   bool
	// locked is an account that a person has locked.
	locked bool
	rights []string
	// failAt is the statement that breaks the connection after it was carried out.
	failAt string
	// lines are the command lines of all that ran.
	lines []string
}

var errLost = errors.New("the connection was lost")

func newWorld() *fakeWorld {
	pod := func(site string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: site, Labels: map[string]string{
			v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelSite: site}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	return &fakeWorld{
		follows: true,
		group: &v1alpha1.MysqlFailoverGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "uid"},
			Spec:       v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{{Name: "paris"}, {Name: "rome"}}, Application: &v1alpha1.ApplicationSpec{Database: "shop_a"}},
			Status:     v1alpha1.MysqlFailoverGroupStatus{ActiveSite: "paris"},
		},
		kube: fake.NewClientset(pod("paris"), pod("rome"),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-root"}, Data: map[string][]byte{"password": []byte("root's")}}),
	}
}

func (w *fakeWorld) Kube() kubernetes.Interface { return w.kube }
func (w *fakeWorld) Group(context.Context, string, string) (*v1alpha1.MysqlFailoverGroup, error) {
	return w.group, nil
}

var identified = regexp.MustCompile(`^(CREATE|ALTER) USER 'readonly'@'%' IDENTIFIED BY '(.*)'$`)

// Exec is the mysql client in a pod, with as much of MySQL as is asked here.
func (w *fakeWorld) Exec(_ context.Context, e pods.Execution) error {
	line := strings.Join(e.Command, " ")
	w.lines = append(w.lines, line)
	raw, err := io.ReadAll(e.In)
	if err != nil {
		return err
	}
	password, text, _ := strings.Cut(string(raw), "\n")
	fails := func(number int) error {
		fmt.Fprintf(e.ErrOut, "ERROR %d (HY000): it is refused\n", number)
		return utilexec.CodeExitError{Err: errors.New("exit"), Code: 1}
	}
	if strings.Contains(line, "--user=readonly ") {
		if password != w.password || w.password == "" || e.Pod == "rome" && !w.follows {
			return fails(1045)
		}
		if w.locked {
			return fails(numberBlocked)
		}
		return nil
	}
	if password != "root's" {
		return fails(1045)
	}
	is := func(yes bool) string {
		if yes {
			return "1"
		}
		return "0"
	}
	looks := lookStatements(nil)
	for statement := range strings.SplitSeq(strings.TrimSuffix(text, ";\n"), ";\n") {
		switch m := identified.FindStringSubmatch(statement); {
		case statement == looks[0]:
			fmt.Fprintln(e.Out, is(w.password != ""))
		case statement == looks[1]:
			fmt.Fprintln(e.Out, is(w.closed))
		case statement == looks[2]:
			fmt.Fprintln(e.Out, "0")
		case strings.HasPrefix(statement, "SELECT schema_name"):
			for _, d := range []string{"shop_a", "reports"} {
				if strings.Contains(statement, "'"+d+"'") {
					fmt.Fprintln(e.Out, d)
				}
			}
		case strings.HasSuffix(statement, "PASSWORD EXPIRE NEVER ACCOUNT UNLOCK"):
			w.locked = false
		case m != nil:
			if (m[1] == "CREATE") != (w.password == "") {
				return fails(1396)
			}
			w.password, w.rights = m[2], nil
		case strings.HasPrefix(statement, "REVOKE ALL"):
			w.rights = nil
		case strings.HasPrefix(statement, "GRANT"):
			w.rights = append(w.rights, statement)
		case statement == dropStatement:
			w.password, w.rights = "", nil
		case strings.HasPrefix(statement, "SET SESSION sql_mode"):
		default:
			return fails(1064)
		}
		if w.failAt != "" && strings.HasPrefix(statement, w.failAt) {
			w.failAt = ""
			return errLost
		}
	}
	return nil
}

// run runs a command without a terminal.
func (w *fakeWorld) run(t *testing.T, run func(cli.Environment, Op) (int, error)) (said string, code int, err error) {
	t.Helper()
	shown, now := &bytes.Buffer{}, time.Unix(0, 0)
	env := cli.Environment{
		IOStreams:   genericiooptions.IOStreams{In: strings.NewReader(""), Out: shown, ErrOut: shown},
		Interactive: func() bool { return false }, Now: func() time.Time { return now }, Terminal: func() (int, bool) { return 120, false },
		Wait: func(_ context.Context, d time.Duration) bool { now = now.Add(d); return true },
	}
	op := Op{Request: request.Request{Namespace: "shop", Group: "orders", OperatorNamespace: "x", DryRun: request.DryRunNone, Yes: true, Timeout: 5 * time.Second}, random: func() string { return "secret-1" }}
	code, err = run(env, op)
	return shown.String(), code, err
}

func (w *fakeWorld) create(t *testing.T, databases ...string) (string, error) {
	t.Helper()
	said, _, err := w.run(t, func(env cli.Environment, op Op) (int, error) {
		return (&Create{Op: op, Databases: databases}).Run(t.Context(), env, w)
	})
	return said, err
}

func (w *fakeWorld) drop(t *testing.T) (string, error) {
	t.Helper()
	said, _, err := w.run(t, func(env cli.Environment, op Op) (int, error) { return (&Drop{Op: op}).Run(t.Context(), env, w) })
	return said, err
}

// secret is the account's; nil if there is none.
func (w *fakeWorld) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	s, err := w.kube.CoreV1().Secrets("shop").Get(t.Context(), "mysql-orders-readonly", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return s
}

func TestAnAccountThatMayOnlyRead(t *testing.T) {
	w := newWorld()
	said, err := w.create(t)
	if err != nil {
		t.Fatal(err)
	}
	s := w.secret(t)
	if s == nil || string(s.Data["password"]) != "secret-1" || string(s.Data["username"]) != "readonly" || string(s.Data["database"]) != "shop_a" || w.password != "secret-1" {
		t.Errorf("Secret %+v, and MySQL has %q", s, w.password)
	}
	if len(s.OwnerReferences) != 1 || s.OwnerReferences[0].UID != "uid" {
		t.Errorf("it stays when the group goes: %+v", s.OwnerReferences)
	}
	if got := strings.Join(w.rights, ";"); got != "GRANT SELECT, SHOW VIEW ON `shop\\_a`.* TO 'readonly'@'%'" {
		t.Error(got)
	}
	if !strings.Contains(said, "kubectl mfg mysql orders -n shop --account readonly") || strings.Contains(said, "secret-1") {
		t.Error(said)
	}
	// What a person has locked is unlocked, and can be dropped.
	w.locked = true
	if said, err := w.create(t); err != nil || w.locked || strings.Contains(said, "do not have it yet") {
		t.Errorf("a locked account: %v: %s", err, said)
	}
	w.locked = true
	// Other databases replace the rights, and the password stays.
	if _, err := w.create(t, "reports"); err != nil || w.password != "secret-1" || len(w.rights) != 1 || !strings.Contains(w.rights[0], "`reports`") || string(w.secret(t).Data["database"]) != "reports" {
		t.Errorf("%v: %q, %v", err, w.password, w.rights)
	}
	if _, err := w.drop(t); err != nil || w.password != "" || w.secret(t) != nil {
		t.Errorf("dropped: %v, MySQL has %q", err, w.password)
	}
	if said, err := w.drop(t); err != nil || !strings.Contains(said, "nothing was changed") {
		t.Errorf("dropped again: %v %s", err, said)
	}
	for _, line := range w.lines {
		if strings.Contains(line, "secret-1") || strings.Contains(line, "root's") {
			t.Errorf("a password is in a command line: %s", line)
		}
	}
}

// Wherever it is interrupted, the same command goes on, and the Secret has the password that MySQL has.
func TestAnInterruptedCreation(t *testing.T) {
	for _, at := range []string{"SET SESSION", "CREATE USER", "GRANT"} {
		w := newWorld()
		w.failAt = at
		if _, err := w.create(t); !errors.Is(err, errLost) || !strings.Contains(err.Error(), "kubectl mfg account create orders -n shop") {
			t.Errorf("%s: %v", at, err)
		}
		if _, err := w.create(t); err != nil || w.password != "secret-1" || len(w.rights) != 1 {
			t.Errorf("%s, again: %v, %q, %v", at, err, w.password, w.rights)
		}
	}
	w := newWorld()
	w.follows = false
	if said, err := w.create(t); err != nil || !strings.Contains(said, "do not have it yet, and get it once they follow: rome") {
		t.Errorf("a site that does not follow: %v %s", err, said)
	}
}

func TestWhatIsNotTouched(t *testing.T) {
	theirs := func(change func(*corev1.Secret)) func(*testing.T, *fakeWorld) {
		return func(t *testing.T, w *fakeWorld) {
			t.Helper()
			if _, err := w.create(t); err != nil {
				t.Fatal(err)
			}
			s := w.secret(t)
			change(s)
			if _, err := w.kube.CoreV1().Secrets("shop").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		before    func(*testing.T, *fakeWorld)
		databases []string
		create    string
		drop      string
	}{
		"a Secret of a person":    {before: theirs(func(s *corev1.Secret) { s.Labels = nil }), create: "this command did not make it", drop: "this command did not make it"},
		"a Secret without it":     {before: theirs(func(s *corev1.Secret) { s.Data["password"] = nil }), create: "its password was taken off it", drop: "its password was taken off it"},
		"an account of a person":  {before: func(_ *testing.T, w *fakeWorld) { w.password = "theirs" }, create: "kubectl mfg account drop orders -n shop"},
		"a site that is closed":   {before: func(_ *testing.T, w *fakeWorld) { w.closed = true }, create: "takes no changes at the moment"},
		"a database of nowhere":   {databases: []string{"no%where"}, create: "no such database: no%where"},
		"nothing to read":         {before: func(_ *testing.T, w *fakeWorld) { w.group.Spec.Application = nil }, create: "--database DATABASE"},
		"a Secret of another one": {before: theirs(func(s *corev1.Secret) { s.Labels[v1alpha1.LabelInstance] = "another" }), create: "this command did not make it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if tc.before != nil {
				tc.before(t, w)
			}
			password := w.password
			_, err := w.create(t, tc.databases...)
			var refused *cli.Error
			if !errors.As(err, &refused) || refused.Code != cli.ExitRefused || !strings.Contains(err.Error(), tc.create) || w.password != password {
				t.Errorf("create: %v; MySQL has %q", err, w.password)
			}
			if tc.drop == "" {
				return
			}
			if _, err := w.drop(t); err == nil || !strings.Contains(err.Error(), tc.drop) || w.password != password {
				t.Errorf("drop: %v; MySQL has %q", err, w.password)
			}
		})
	}
}

func TestDatabasesThatAreRefused(t *testing.T) {
	for name, ok := range map[string]bool{
		"shop": true, "Shop-1_a%": true, "": false, "mysql": false, "SYS": false, "performance_schema": false, "a`b": false, `a\b`: false, "a/b": false, "a\nb": false, strings.Repeat("x", 65): false,
	} {
		op := Create{Databases: []string{name}}
		op.OperatorNamespace, op.DryRun, op.Timeout = "x", request.DryRunNone, time.Minute
		if err := op.Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	w := newWorld()
	said, code, err := w.run(t, func(env cli.Environment, op Op) (int, error) {
		op.DryRun = request.DryRunClient
		return (&Create{Op: op}).Run(t.Context(), env, w)
	})
	if err != nil || code != cli.ExitHealthy || w.password != "" || w.secret(t) != nil || !strings.Contains(said, "which may read shop_a and nothing else") {
		t.Errorf("%v, %d: %s", err, code, said)
	}
}
