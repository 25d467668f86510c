// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/accounts"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// fakePasswords are the servers of the sites, by host. The first one is active, and the others replicate at once.
type fakePasswords struct {
	mu    sync.Mutex
	takes map[string]map[string]bool // by user, the passwords
	down  map[string]bool
}

func (f *fakePasswords) Accepts(_ context.Context, t mysql.Target) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if host, _, _ := net.SplitHostPort(t.Addr); f.down[host] {
		return false, errors.New("no answer")
	}
	return f.takes[t.User][t.Password], nil
}

func (f *fakePasswords) Introduce(_ context.Context, t mysql.Target, next string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !strings.HasPrefix(t.Addr, "10.0.0.1:") || !f.takes[t.User][t.Password] {
		return errors.New("access denied")
	}
	f.takes[t.User] = map[string]bool{t.Password: true, next: true}
	return nil
}

func (f *fakePasswords) Retire(_ context.Context, t mysql.Target) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !strings.HasPrefix(t.Addr, "10.0.0.1:") || !f.takes[t.User][t.Password] {
		return errors.New("access denied")
	}
	f.takes[t.User] = map[string]bool{t.Password: true}
	return nil
}

// passwordAccess reaches the sites without any Secret.
type passwordAccess struct{}

func (passwordAccess) Site(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, _, podIP string) (mysql.Target, error) {
	return mysql.Target{Addr: net.JoinHostPort(podIP, "33062")}, nil
}

func (passwordAccess) Donor(context.Context, *v1alpha1.MysqlFailoverGroup, string) (mysql.Donor, error) {
	return mysql.Donor{}, nil
}

// passwordWorld is a group that runs, with servers that take the passwords of its Secret.
func passwordWorld(t *testing.T) (*world, *fakePasswords) {
	t.Helper()
	w := runningWorld(t)
	f := &fakePasswords{takes: map[string]map[string]bool{
		mysql.AccountOperator: {"o": true}, mysql.AccountReplication: {"r": true}, mysql.AccountSidecar: {"s": true}, mysql.AccountClone: {"c": true},
		mysql.AccountProbe: {mysql.ProbePassword("s"): true},
	}, down: map[string]bool{}}
	w.r.passwords = accounts.New(w.r.base, accounts.Options{Access: passwordAccess{}, Server: f, Runner: w.r.runner, Wake: w.r.Wake}) // nobody pauses here
	w.r.runner.Lead(w.ctx)
	w.reconcile()
	w.settle("a", "b", "c")
	w.facts.Open("a")
	w.facts.Under(1)
	for site, host := range map[string]string{"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"} {
		w.facts.Change(site, func(s *scope.SiteFacts) { s.AdminAddr, s.PasswordSerial, s.ReceiverSerial = host+":33062", 1, 1 })
	}
	return w, f
}

func (w *world) accounts() map[string]string {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.get(secret, v1alpha1.AccountsSecret("orders"))
	out := map[string]string{}
	for key, value := range secret.Data {
		out[key] = string(value)
	}
	return out
}

// until reconciles until it is so, and has everything that was asked of the servers answered in between.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for range 60 {
		again := w.reconcile()
		w.r.runner.Wait()
		if w.phase() != "" && again > scope.WhenMoving {
			w.t.Fatalf("a replacement that is under way is looked at again in %v only: nobody else wakes the group", again)
		}
		if is() {
			return
		}
	}
	w.t.Fatalf("never: %s; status %+v", what, w.group().Status.Passwords)
}

func (w *world) phase() v1alpha1.PasswordPhase {
	if p := w.group().Status.Passwords; p != nil {
		return p.Phase
	}
	return ""
}

func (w *world) waitsFor(reason v1alpha1.Reason) func() bool {
	return func() bool { p := w.group().Status.Passwords; return p != nil && p.Reason == reason }
}

func TestPasswordsAreReplacedI21(t *testing.T) {
	w, f := passwordWorld(t)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationRotatePasswords: "all"}
	})
	f.down["10.0.0.3"] = true
	w.until("it waits for a site that is gone", w.waitsFor("SiteUnreachable"))
	if got := w.accounts(); got["operator"] != "o" || got["operator-next"] == "" || w.phase() != v1alpha1.PasswordsIntroducing {
		t.Errorf("I21: the password in use was replaced before every site takes the next: phase %s", w.phase())
	}
	if id := w.group().Annotations[v1alpha1.RequestRotatePasswords.IDAnnotation()]; id == "" || w.accounts()["order"] != id {
		t.Errorf("I21: what was made for the order %q bears the name %q", id, w.accounts()["order"])
	}
	f.mu.Lock()
	f.down = map[string]bool{}
	f.mu.Unlock()
	w.until("it waits for the sidecars", w.waitsFor("SidecarBehind"))
	got := w.accounts()
	if got["operator"] == "o" || got["operator-previous"] != "o" || got["operator-known"] != got["operator"] || got["serial"] != "2" {
		t.Errorf("everybody is to use the new ones: serial %s", got["serial"])
	}
	for _, site := range []string{"a", "b", "c"} {
		w.facts.Change(site, func(s *scope.SiteFacts) { s.PasswordSerial, s.ReceiverSerial = 2, 2 })
	}
	w.until("it waits until nobody remembers the former ones", w.waitsFor("Settling"))
	if !f.takes[mysql.AccountOperator]["o"] {
		t.Error("I21: the former password is refused while it may be used")
	}
	// Half a minute later, in another operator: it has nothing but the Secret.
	w.r.passwords.Forget(scopetest.Key)
	secret := &corev1.Secret{}
	w.get(secret, v1alpha1.AccountsSecret(scopetest.Key.Name))
	w.waitedSince(time.Now().Add(-accounts.SettledAfter), accounts.Settling(secret))
	w.until("it is over", func() bool { _, asked := w.group().Annotations[v1alpha1.AnnotationRotatePasswords]; return !asked })
	w.reconcile()
	now := w.accounts()
	for user, key := range map[string]string{
		mysql.AccountOperator: "operator", mysql.AccountReplication: "replication", mysql.AccountSidecar: "sidecar", mysql.AccountClone: "clone",
	} {
		if len(f.takes[user]) != 1 || !f.takes[user][now[key]] || now[key+"-previous"] != "" || now[key+"-next"] != "" {
			t.Errorf("%s does not take the new password alone", user)
		}
	}
	if !f.takes[mysql.AccountProbe][mysql.ProbePassword(now["sidecar"])] || len(f.takes[mysql.AccountProbe]) != 1 {
		t.Error("the account of the write probe has not followed")
	}
	if words := w.last(v1alpha1.RequestRotatePasswords); !strings.Contains(words, ": Done (Completed): the passwords of") {
		t.Errorf("answered with %q", words)
	}
	if _, noted := now["order"]; noted {
		t.Error("what comes next would bear the name of an order that is over")
	}
	if p := w.group().Status.Passwords; p == nil || p.Phase != "" || p.FinishedAt == nil || w.said.Count(v1alpha1.ReasonPasswordsRotated) != 1 {
		t.Errorf("status %+v", p)
	}
	for _, said := range w.said.List {
		for _, secret := range now {
			if len(secret) > 8 && strings.Contains(said, secret) {
				t.Errorf("an event shows a password")
			}
		}
	}
}

// TestAnEditedPasswordIsOneToChangeToI21: what a person writes into the Secret is given to the servers, and until they have it everybody goes
// on with the one before.
// Servers that were asked a moment ago are not asked again at once, and the step that is due is not forgotten for that.
func TestAStepThatHasToWaitIsTakenLater(t *testing.T) {
	w, _ := passwordWorld(t)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationRotatePasswords: "all"}
	})
	w.until("it is begun", func() bool { return w.phase() == v1alpha1.PasswordsIntroducing })
	for range 3 {
		again := w.reconcile()
		w.r.runner.Wait()
		if again > scope.WhenMoving {
			t.Fatalf("the next step is taken in %v only", again)
		}
	}
}

func TestAnEditedPasswordIsOneToChangeToI21(t *testing.T) {
	w, f := passwordWorld(t)
	secret := &corev1.Secret{}
	w.get(secret, v1alpha1.AccountsSecret("orders"))
	secret.Data["clone"] = []byte("of-a-person")
	w.must(w.c.Update(w.ctx, secret))
	w.until("the edit is seen", func() bool { return w.accounts()["clone-next"] != "" })
	if got := w.accounts(); got["clone"] != "c" || got["clone-next"] != "of-a-person" || w.said.Count(v1alpha1.ReasonPasswordEdited) != 1 {
		t.Errorf("I21: what no server knows is in use: %d events", w.said.Count(v1alpha1.ReasonPasswordEdited))
	}
	w.until("everybody changes", func() bool { return w.accounts()["clone"] == "of-a-person" })
	if !f.takes[mysql.AccountClone]["c"] || !f.takes[mysql.AccountClone]["of-a-person"] {
		t.Error("both have to be valid")
	}
}

// TestPasswordsOfAnEarlierVersion: its Secret has no copies; they are made once the active site has taken what there is.
func TestPasswordsOfAnEarlierVersion(t *testing.T) {
	w, f := passwordWorld(t)
	secret := &corev1.Secret{}
	w.get(secret, v1alpha1.AccountsSecret("orders"))
	for key := range secret.Data {
		if strings.HasSuffix(key, "-known") || key == "serial" {
			delete(secret.Data, key)
		}
	}
	w.must(w.c.Update(w.ctx, secret))
	f.takes[mysql.AccountClone] = map[string]bool{"other": true}
	w.until("it is told", w.waitsFor("PasswordRefused"))
	if w.said.Count(v1alpha1.ReasonPasswordRotationStuck) != 1 || w.accounts()["operator-known"] != "" {
		t.Errorf("events %v", w.said.List)
	}
	f.mu.Lock()
	f.takes[mysql.AccountClone] = map[string]bool{"c": true}
	f.mu.Unlock()
	w.until("they are known", func() bool { a := w.accounts(); return a["clone-known"] == "c" && a["serial"] == "1" })
}

func TestAnOrderForRootIsRefused(t *testing.T) {
	w, _ := passwordWorld(t)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationRotatePasswords: "root"}
	})
	w.reconcile()
	if words := w.last(v1alpha1.RequestRotatePasswords); !strings.HasPrefix(words, "root: Refused (UnknownAccount): there is no account") || w.said.Count(v1alpha1.ReasonPasswordRotationRefused) != 1 {
		t.Errorf("answered with %q", words)
	}
}
