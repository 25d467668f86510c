// SPDX-License-Identifier: Apache-2.0

package apppassword

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// numberDenied is how MySQL refuses a password.
const numberDenied = 1045

// stored is an account on one server: its own password, and an older one.
type stored struct{ own, older string }

func (a stored) takes(password string) bool {
	return password != "" && (password == a.own || password == a.older)
}

// world of two sites, of which paris is active.
type fakeWorld struct {
	kube    *fake.Clientset
	group   *v1alpha1.MysqlFailoverGroup
	servers map[string]*stored
	// lags keeps rome from replicating; refusesReused is a server that remembers passwords, all that it had.
	lags, refusesReused, closed bool
	had                         []string
	// stores says how the server stores the primary password; nil is as MySQL does.
	stores func(own string) string
	// failAt is the change, counted from 1, after which the connection is lost: it was made, and no answer comes.
	failAt, changes int
	// lines are the command lines of all that ran.
	lines []string
	// look is called after every change.
	look func()
}

var errLost = errors.New("the connection was lost")

func newWorld(t *testing.T) *fakeWorld {
	t.Helper()
	pod := func(site string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: site, Labels: map[string]string{
			v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelSite: site}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	uri, jdbc := v1alpha1.ApplicationURIs("app", "one", "h", "3306", "shop")
	w := &fakeWorld{
		servers: map[string]*stored{"paris": {own: "one"}, "rome": {own: "one"}},
		group: &v1alpha1.MysqlFailoverGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"},
			Spec:       v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{{Name: "paris"}, {Name: "rome"}}, Application: &v1alpha1.ApplicationSpec{Database: "shop", User: "app"}},
			Status:     v1alpha1.MysqlFailoverGroupStatus{ActiveSite: "paris", Application: &v1alpha1.ApplicationStatus{}},
		},
		had: []string{"one"},
		kube: fake.NewClientset(pod("paris"), pod("rome"),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-root"}, Data: map[string][]byte{"password": []byte("root's")}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-app"}, Data: map[string][]byte{
				"username": []byte("app"), "password": []byte("one"), "database": []byte("shop"), "host": []byte("h"), "port": []byte("3306"), "uri": []byte(uri), "jdbc-uri": []byte(jdbc),
			}}),
	}
	w.kube.PrependReactor("update", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		update, _ := a.(clienttesting.UpdateAction)
		if err := w.kube.Tracker().Update(a.GetResource(), update.GetObject(), "shop"); err != nil {
			return true, nil, err
		}
		return true, update.GetObject(), w.changed()
	})
	return w
}

// changed counts a change that was made.
func (w *fakeWorld) changed() error {
	if !w.lags {
		*w.servers["rome"] = *w.servers["paris"]
	}
	if w.look != nil {
		w.look()
	}
	if w.changes++; w.changes == w.failAt {
		return errLost
	}
	return nil
}

func (w *fakeWorld) Kube() kubernetes.Interface { return w.kube }
func (w *fakeWorld) Group(context.Context, string, string) (*v1alpha1.MysqlFailoverGroup, error) {
	return w.group, nil
}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// stored is the Secret. The client cannot be asked for it while it writes.
func (w *fakeWorld) stored(t *testing.T) *corev1.Secret {
	t.Helper()
	obj, err := w.kube.Tracker().Get(secrets, "shop", "mysql-orders-app")
	s, is := obj.(*corev1.Secret)
	if err != nil || !is {
		t.Fatal(obj, err)
	}
	return s.DeepCopy()
}

func (w *fakeWorld) secret(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for k, v := range w.stored(t).Data {
		out[k] = string(v)
	}
	return out
}

func (w *fakeWorld) put(t *testing.T, key, value string) {
	t.Helper()
	s := w.stored(t)
	s.Data[key] = []byte(value)
	if err := w.kube.Tracker().Update(secrets, s, "shop"); err != nil {
		t.Fatal(err)
	}
}

var identified = regexp.MustCompile(`^ALTER USER 'app'@'%' IDENTIFIED BY '(.*?)'( RETAIN CURRENT PASSWORD)?$`)

// Exec is the mysql client in a pod, with as much of MySQL as is asked here.
func (w *fakeWorld) Exec(_ context.Context, e pods.Execution) error {
	line := strings.Join(e.Command, " ")
	w.lines = append(w.lines, line)
	raw, err := io.ReadAll(e.In)
	if err != nil {
		return err
	}
	password, sql, _ := strings.Cut(string(raw), "\n")
	at := w.servers[e.Pod]
	fails := func(number int) error {
		fmt.Fprintf(e.ErrOut, "ERROR %d (HY000): it is refused\n", number)
		return utilexec.CodeExitError{Err: errors.New("exit"), Code: 1}
	}
	if strings.Contains(line, "--user=app ") {
		if !at.takes(password) {
			return fails(numberDenied)
		}
		return nil
	}
	if password != "root's" {
		return fails(numberDenied)
	}
	for statement := range strings.SplitSeq(strings.TrimSuffix(sql, ";\n"), ";\n") {
		number := func(is bool) int {
			if is {
				return 1
			}
			return 0
		}
		switch {
		case strings.HasPrefix(statement, "SELECT COUNT(*)"):
			fmt.Fprintf(e.Out, "%d\t%d\t%d\t7\n", number(at.own != ""), number(at.older != ""), number(w.closed))
		case strings.HasPrefix(statement, "SELECT plugin, HEX"):
			const salt = "a salt of\x01 20 bytes,"
			if w.stores == nil {
				w.stores = func(own string) string {
					return fmt.Sprintf("caching_sha2_password\t%X", "$A$005$"+salt+shaCrypt(own, salt, 5000))
				}
			}
			fmt.Fprintln(e.Out, w.stores(at.own))
		case strings.HasPrefix(statement, "SET SESSION sql_mode"):
		case strings.HasPrefix(statement, "DO CAST"):
			if at.older != "" || at.own == "" {
				return fails(numberNotFree)
			}
		case strings.HasSuffix(statement, "DISCARD OLD PASSWORD"):
			at.older = ""
			if err := w.changed(); err != nil {
				return err
			}
		default:
			m := identified.FindStringSubmatch(statement)
			if m == nil {
				return fails(1064)
			}
			if w.refusesReused && slices.Contains(w.had, m[1]) {
				return fails(numberReused)
			}
			w.had = append(w.had, m[1])
			if m[2] != "" {
				at.older = at.own
			}
			at.own = m[1]
			if err := w.changed(); err != nil {
				return err
			}
		}
	}
	return nil
}

func environment(input string) (cli.Environment, *bytes.Buffer) {
	shown, now := &bytes.Buffer{}, time.Unix(0, 0)
	return cli.Environment{
		IOStreams:   genericiooptions.IOStreams{In: strings.NewReader(input), Out: shown, ErrOut: shown},
		Interactive: func() bool { return input != "" }, Now: func() time.Time { return now }, Terminal: func() (int, bool) { return 120, false },
		Wait: func(_ context.Context, d time.Duration) bool { now = now.Add(d); return true },
	}, shown
}

func common() Op {
	return Op{Request: request.Request{Namespace: "shop", Group: "orders", OperatorNamespace: "x", DryRun: request.DryRunNone, Yes: true, Timeout: time.Minute}, random: func() string { return "two" }}
}

func (w *fakeWorld) rotate(t *testing.T, without ...string) (string, error) {
	t.Helper()
	env, shown := environment("")
	op := &Rotate{Op: common(), Without: without}
	_, err := op.Run(t.Context(), env, w)
	return shown.String(), err
}

func (w *fakeWorld) retire(t *testing.T) (string, error) {
	t.Helper()
	env, shown := environment("")
	op := &Retire{Op: common()}
	_, err := op.Run(t.Context(), env, w)
	return shown.String(), err
}

// TestNoMomentRefusesAnApplication: whatever ends a command, and wherever, every site takes the password in the Secret, and the one that
// applications had before, until that is retired. The same commands then go on.
func TestNoMomentRefusesAnApplication(t *testing.T) {
	for failAt := range 6 {
		t.Run(fmt.Sprintf("Change%d", failAt), func(t *testing.T) {
			w := newWorld(t)
			retiring := false
			w.failAt = failAt
			w.look = func() {
				for site, at := range w.servers {
					if published := w.secret(t)["password"]; !at.takes(published) || !retiring && !at.takes("one") {
						t.Errorf("%s has %+v, the Secret %q", site, *at, published)
					}
				}
			}
			tries := 0
			for ; ; tries++ {
				if _, err := w.rotate(t); err == nil {
					break
				} else if !errors.Is(err, errLost) && !strings.Contains(err.Error(), "retire orders") || tries > 2 {
					t.Fatal(err)
				} else if strings.Contains(err.Error(), "retire orders") {
					break // it was done, and the answer to the last change was lost
				}
			}
			got := w.secret(t)
			uri, jdbc := v1alpha1.ApplicationURIs("app", "two", "h", "3306", "shop")
			if got["password"] != "two" || got["uri"] != uri || got["jdbc-uri"] != jdbc || got[v1alpha1.ApplicationNextPassword] != "" {
				t.Errorf("the Secret has %v", got)
			}
			retiring = true
			for {
				if _, err := w.retire(t); err == nil {
					break
				} else if !errors.Is(err, errLost) {
					t.Fatal(err)
				}
			}
			for site, at := range w.servers {
				if at.own != "two" || at.older != "" {
					t.Errorf("%s has %+v", site, *at)
				}
			}
			for _, line := range w.lines {
				if strings.Contains(line, "two") || strings.Contains(line, "one") || strings.Contains(line, "root's") {
					t.Errorf("a password is in a command line: %s", line)
				}
			}
		})
	}
}

// TestAwaySitesAreWaitedFor: a site that took over without the password would refuse applications.
func TestAwaySitesAreWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.lags = true
	shown, err := w.rotate(t)
	var failure *cli.Error
	if !errors.As(err, &failure) || failure.Code != cli.ExitTimeout || !strings.Contains(shown, "waits: rome has not replicated it yet") {
		t.Errorf("%v, %s", err, shown)
	}
	if got := w.secret(t); got["password"] != "one" || got[v1alpha1.ApplicationNextPassword] != "two" {
		t.Errorf("the Secret has %v", got)
	}
	if _, err := w.retire(t); err == nil || !strings.Contains(err.Error(), "not finished") {
		t.Errorf("the password of the applications was ended: %v", err)
	}
	if _, err := w.rotate(t, "rome"); err != nil || w.secret(t)["password"] != "two" {
		t.Errorf("it was to go without rome: %v, %v", err, w.secret(t))
	}
	if _, err := w.rotate(t, "paris"); err == nil || !strings.Contains(err.Error(), "--without paris") {
		t.Errorf("the active site was left out: %v", err)
	}
}

// TestRotateRefuses: nothing is changed where an application would be refused by it.
func TestRotateRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*testing.T, *fakeWorld)
		says   string
	}{
		"Retained":   {func(_ *testing.T, w *fakeWorld) { *w.servers["paris"] = stored{"one", "zero"} }, "app-password retire orders -n shop"},
		"OtherOne":   {func(t *testing.T, w *fakeWorld) { w.put(t, "password", "another") }, "does not let the account in"},
		"NoAccount":  {func(_ *testing.T, w *fakeWorld) { *w.servers["paris"] = stored{} }, "no such account"},
		"Closed":     {func(_ *testing.T, w *fakeWorld) { w.closed = true }, "takes no changes"},
		"NotMade":    {func(_ *testing.T, w *fakeWorld) { w.group.Status.Application = nil }, "still being made"},
		"None":       {func(_ *testing.T, w *fakeWorld) { w.group.Spec.Application = nil }, "has no application"},
		"Username":   {func(t *testing.T, w *fakeWorld) { w.put(t, "username", "root") }, "the key username"},
		"Strange":    {func(t *testing.T, w *fakeWorld) { w.put(t, v1alpha1.ApplicationNextPassword, "a\nDROP") }, "printable ASCII"},
		"Long":       {func(t *testing.T, w *fakeWorld) { w.put(t, v1alpha1.ApplicationNextPassword, strings.Repeat("x", 257)) }, "longer than 256"},
		"NoneActive": {func(_ *testing.T, w *fakeWorld) { w.group.Status.ActiveSite = "" }, "no active site"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(t, w)
			before := w.secret(t)
			_, err := w.rotate(t)
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "DROP") {
				t.Errorf("%v", err)
			}
			if w.changes != 0 || fmt.Sprint(before) != fmt.Sprint(w.secret(t)) {
				t.Errorf("%d changes, the Secret %v", w.changes, w.secret(t))
			}
		})
	}
}

// TestRetireLeavesWhatTheSecretHas: also if the Secret was put back to its state from before, and where the server remembers passwords.
func TestRetireLeavesWhatTheSecretHas(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*testing.T, *fakeWorld)
		own    string
		says   string
	}{
		"PutBack":  {func(t *testing.T, w *fakeWorld) { w.put(t, "password", "one") }, "one", ""},
		"Remember": {func(_ *testing.T, w *fakeWorld) { w.refusesReused = true }, "two", ""},
		// To discard the older one would lock out every application: the server does not make it the primary one again.
		"PutBackAndRemember": {func(t *testing.T, w *fakeWorld) { w.refusesReused = true; w.put(t, "password", "one") }, "two", "ALTER USER 'app'@'%' PASSWORD HISTORY 0"},
		"RememberOtherPlugin": {func(_ *testing.T, w *fakeWorld) {
			w.refusesReused, w.stores = true, func(string) string { return "authentication_ldap_simple\t" }
		}, "two", "does not store the password"},
		"RememberOtherHash": {func(_ *testing.T, w *fakeWorld) {
			w.refusesReused, w.stores = true, func(string) string { return "caching_sha2_password\t2441" }
		}, "two", "is not understood"},
		"OtherOne": {func(t *testing.T, w *fakeWorld) { w.put(t, "password", "another") }, "two", "does not let the account in"},
		"Closed":   {func(_ *testing.T, w *fakeWorld) { w.closed = true }, "two", "takes no changes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if _, err := w.rotate(t); err != nil {
				t.Fatal(err)
			}
			tc.change(t, w)
			_, err := w.retire(t)
			if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("%v", err)
			}
			at := w.servers["paris"]
			if at.own != tc.own || (at.older == "") != (tc.says == "") {
				t.Errorf("paris has %+v", *at)
			}
			if published := w.secret(t)["password"]; !at.takes(published) && published != "another" {
				t.Errorf("applications are locked out: paris has %+v, the Secret %q", *at, published)
			}
		})
	}
}

// TestTwoAtOnce: a second command that comes between a look and the change finds the account with two passwords, and changes nothing.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	w.look = func() {
		if w.secret(t)[v1alpha1.ApplicationNextPassword] == "two" && w.servers["paris"].older == "" {
			w.look = nil
			*w.servers["paris"], *w.servers["rome"] = stored{"two", "one"}, stored{"two", "one"} // the other command
		}
	}
	if _, err := w.rotate(t); err != nil {
		t.Fatal(err)
	}
	if at := w.servers["paris"]; !at.takes("one") || w.secret(t)["password"] != "two" {
		t.Errorf("paris has %+v", *at)
	}
}

// TestOwnTextStays: a line that a person wrote into the Secret is not replaced, and said.
func TestOwnTextStays(t *testing.T) {
	w := newWorld(t)
	w.put(t, "uri", "mysql://app:one@proxy/shop")
	shown, err := w.rotate(t)
	if err != nil || !strings.Contains(shown, "the keys uri of the Secret") || w.secret(t)["uri"] != "mysql://app:one@proxy/shop" {
		t.Errorf("%v, %s, %v", err, shown, w.secret(t))
	}
}

// TestAsked: a dry run and a no change nothing, and show what would be done and how many sessions there are.
func TestAsked(t *testing.T) {
	w := newWorld(t)
	env, shown := environment("n\n")
	op := &Rotate{Op: common()}
	op.Yes = false
	if _, err := op.Run(t.Context(), env, w); err == nil || w.changes != 0 || !strings.Contains(shown.String(), "Replace it?") {
		t.Errorf("%v, %s", err, shown)
	}
	op.DryRun = request.DryRunClient
	if _, err := op.Run(t.Context(), env, w); err != nil || w.changes != 0 || !strings.Contains(shown.String(), "Dry run") {
		t.Errorf("%v, %s", err, shown)
	}
	op.DryRun = request.DryRunServer
	if op.Validate() == nil {
		t.Error("a dry run on the server was taken")
	}
	if _, err := w.rotate(t); err != nil {
		t.Fatal(err)
	}
	end := &Retire{Op: common()}
	end.Yes = false
	if _, err := end.Run(t.Context(), env, w); err == nil || !strings.Contains(shown.String(), "7 on paris") || w.servers["paris"].older != "one" {
		t.Errorf("%v, %s", err, shown)
	}
}
