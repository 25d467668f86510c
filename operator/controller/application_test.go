// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/application"
	"github.com/mysql-mfg/mfg/operator/accounts"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// fakeApplication are the servers of the sites, by host.
type fakeApplication struct {
	mu       sync.Mutex
	password string
	has      map[string]bool
	made     []string
	fails    error
}

func (f *fakeApplication) See(_ context.Context, t mysql.Target, _ string) (application.Look, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	host, _, _ := net.SplitHostPort(t.Addr)
	taken := f.password != "" && t.User == "app" && t.Password == f.password && strings.HasSuffix(t.Addr, ":3306")
	return application.Look{Accepts: taken, Database: taken && f.has[host]}, nil
}

func (f *fakeApplication) Make(_ context.Context, t mysql.Target, database string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	host, _, _ := net.SplitHostPort(t.Addr)
	f.made = append(f.made, host+"/"+database)
	if f.fails != nil {
		return f.fails
	}
	f.has[host] = true
	return nil
}

func (f *fakeApplication) change(do func(*fakeApplication)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f)
}

// applicationWorld is a group that runs, with an application, before anything of it was made.
func applicationWorld(t *testing.T) (*world, *fakeApplication) {
	t.Helper()
	w := runningWorld(t)
	f := &fakeApplication{has: map[string]bool{}}
	w.r.apps = accounts.NewApplication(w.r.base, accounts.ApplicationOptions{Access: passwordAccess{}, Server: f, Runner: w.r.runner, Wake: w.r.Wake, Secret: w.r.once})
	w.r.runner.Lead(w.ctx)
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Application = &v1alpha1.ApplicationSpec{Database: "shop", User: "app"}
	})
	w.reconcile()
	w.settle("a", "b", "c")
	for site, host := range map[string]string{"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"} {
		w.facts.Change(site, func(s *scope.SiteFacts) { s.AdminAddr = host + ":33062" })
	}
	return w, f
}

func (w *world) applicationSecret() map[string][]byte {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.get(secret, v1alpha1.ApplicationSecret("orders"))
	return secret.Data
}

// turns reconciles some times, and has everything that was asked of the servers answered in between.
func (w *world) turns(n int) *metav1.Condition {
	w.t.Helper()
	for range n {
		w.reconcile()
		w.r.runner.Wait()
	}
	return meta.FindStatusCondition(w.group().Status.Conditions, v1alpha1.ConditionApplicationReady)
}

func TestTheDatabaseOfAnApplicationIsMadeOnce(t *testing.T) {
	w, f := applicationWorld(t)
	data := w.applicationSecret()
	if string(data["username"]) != "app" || string(data["database"]) != "shop" || string(data["host"]) != "mysql-orders-primary."+scopetest.Key.Namespace+".svc" || string(data["port"]) != "3306" {
		t.Errorf("the Secret holds %q", data)
	}
	if !strings.Contains(string(data["uri"]), "mysql://app:"+string(data["password"])+"@mysql-orders-primary.") || !strings.HasSuffix(string(data["uri"]), ":3306/shop") {
		t.Errorf("uri %q", data["uri"])
	}
	if c := w.turns(3); c == nil || c.Reason != string(v1alpha1.ReasonActiveSiteNotOpen) || len(f.made) != 0 {
		t.Fatalf("nothing is asked of a group that is not open: %+v, %v", c, f.made)
	}
	w.facts.Open("a")
	w.facts.Under(1)
	if c := w.turns(4); c == nil || c.Reason != string(v1alpha1.ReasonApplicationRefused) || !strings.Contains(c.Message, "kubectl mfg mysql orders") || len(f.made) != 0 {
		t.Fatalf("an account that is not there: %+v, %v", c, f.made)
	}
	f.change(func(f *fakeApplication) { f.password, f.fails = string(data["password"]), errors.New("disk full") })
	if c := w.turns(6); c == nil || c.Reason != string(v1alpha1.ReasonApplicationFailed) || !strings.Contains(c.Message, "disk full") {
		t.Fatalf("a database that is not made: %+v", c)
	}
	f.change(func(f *fakeApplication) { f.fails, f.made = nil, nil })
	if c := w.turns(8); c == nil || c.Reason != string(v1alpha1.ReasonSiteBehind) || w.group().Status.Application != nil {
		t.Fatalf("only the active site has it, and could be lost with it: %+v, %+v", c, w.group().Status.Application)
	}
	for _, where := range f.made {
		if where != "10.0.0.1/shop" {
			t.Errorf("made at %s", where)
		}
	}
	f.change(func(f *fakeApplication) { f.has["10.0.0.2"] = true })
	c := w.turns(6)
	status := w.group().Status.Application
	if c == nil || c.Status != metav1.ConditionTrue || status == nil || status.MadeAt == nil || status.Database != "shop" || status.User != "app" || w.said.Count(v1alpha1.ReasonApplicationMade) != 1 {
		t.Fatalf("it is there: %+v, %+v", c, status)
	}
	// Somebody drops it, and takes the account away: they want it gone.
	f.change(func(f *fakeApplication) { f.has, f.password, f.made = map[string]bool{}, "", nil })
	if c := w.turns(6); c == nil || c.Status != metav1.ConditionTrue || len(f.made) != 0 {
		t.Errorf("it was made again: %+v, %v", c, f.made)
	}
	// And a Secret that is lost is not made again with a password that fits no server.
	secret := &corev1.Secret{}
	w.get(secret, v1alpha1.ApplicationSecret("orders"))
	w.must(w.c.Delete(w.ctx, secret))
	if c := w.turns(2); c == nil || c.Reason != string(v1alpha1.ReasonApplicationSecret) || c.Status != metav1.ConditionFalse {
		t.Errorf("the Secret is gone: %+v", c)
	}
	for _, said := range w.said.List {
		if strings.Contains(said, string(data["password"])) {
			t.Error("I11: an event shows the password")
		}
	}
}

func TestASecretThatAPersonHasMadeIsKept(t *testing.T) {
	w := runningWorld(t)
	w.must(w.c.Create(w.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: v1alpha1.ApplicationSecret("orders")},
		Data:       map[string][]byte{"username": []byte("other"), "password": []byte("p@ss")},
	}))
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Application = &v1alpha1.ApplicationSpec{Database: "app"} })
	c := w.turns(2)
	data := w.applicationSecret()
	if string(data["username"]) != "other" || string(data["password"]) != "p@ss" || string(data["database"]) != "app" || !strings.Contains(string(data["uri"]), "p%40ss@") {
		t.Errorf("the Secret holds %q", data)
	}
	if c == nil || c.Reason != string(v1alpha1.ReasonApplicationSecret) {
		t.Errorf("it is for another user: %+v", c)
	}
}

// TestTheLinesOfASecretFollowItsKeys: the operator made them of what was there when it looked, and a person corrects that afterwards. What a
// person wrote stays.
func TestTheLinesOfASecretFollowItsKeys(t *testing.T) {
	w := worldOf(t, fake.NewClientBuilder().WithReturnManagedFields(), scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Application = &v1alpha1.ApplicationSpec{Database: "app"}
	}))
	person := client.FieldOwner("kubectl-edit")
	write := func(who client.FieldOwner, name, value string) {
		secret := &corev1.Secret{}
		w.get(secret, v1alpha1.ApplicationSecret("orders"))
		before := secret.DeepCopy()
		secret.Data[name] = []byte(value)
		w.must(w.c.Patch(w.ctx, secret, client.MergeFrom(before), who))
		w.turns(2)
	}
	holds := func(when, uri, jdbc string) {
		t.Helper()
		data := w.applicationSecret()
		if !strings.HasPrefix(string(data["uri"]), uri) || !strings.HasSuffix(string(data["jdbc-uri"]), jdbc) {
			t.Errorf("%s: uri %q, jdbc-uri %q", when, data["uri"], data["jdbc-uri"])
		}
	}
	w.must(w.c.Create(w.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: v1alpha1.ApplicationSecret("orders")},
		Data:       map[string][]byte{"username": []byte("other"), "password": []byte("p1")},
	}, person))
	w.turns(2)
	holds("as it was made", "mysql://other:p1@", "?password=p1&user=other")
	write(person, "username", "app")
	holds("with another username", "mysql://app:p1@", "?password=p1&user=app")
	write(person, "password", "p2")
	holds("with another password", "mysql://app:p2@", "?password=p2&user=app")
	write(v1alpha1.ManagerPlugin, "uri", "mysql://app:p3@mysql-orders-primary.shop.svc:3306/app")
	write(person, "password", "p3")
	write(person, "username", "other")
	holds("after the plugin wrote it", "mysql://other:p3@", "?password=p3&user=other")
	write(person, "username", "app")
	write(person, "uri", "mysql://reader:p3@elsewhere/app")
	write(person, "password", "p4")
	holds("with a uri of a person's own", "mysql://reader:p3@elsewhere/app", "?password=p4&user=app")
}

// somebodysSecret has the name of an application's Secret, and another owner, as one that an operator of external secrets has made.
func somebodysSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: scopetest.Key.Namespace, Name: v1alpha1.ApplicationSecret("orders"),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "external-secrets.io/v1", Kind: "ExternalSecret", Name: "app", UID: "another", Controller: new(true)}},
		},
		Data: map[string][]byte{"username": []byte("app"), "password": []byte("p")},
	}
}

// TestTheSecretOfAnApplicationHoldsUpNothing: a group that runs goes on with its certificates, its updates and its sites, whatever is wrong with
// a Secret that MySQL does not need.
func TestTheSecretOfAnApplicationHoldsUpNothing(t *testing.T) {
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "mysql-orders-app", nil)
	for name, c := range map[string]struct {
		reason string
		begin  func(*world)
	}{
		"somebody else's": {"what another operator owns is not the group's", func(w *world) { w.must(w.c.Create(w.ctx, somebodysSecret())) }},
		"immutable": {"the keys that it lacks cannot be added", func(w *world) {
			secret := somebodysSecret()
			secret.OwnerReferences, secret.Immutable = nil, new(true)
			w.must(w.c.Create(w.ctx, secret))
			w.fail["*v1.Secret"] = refused
		}},
		"quota": {"the namespace may have no more Secrets", func(w *world) {
			w.r.apps.Secret = func(context.Context, *scope.Scope, string, func() (*corev1.Secret, error)) (*corev1.Secret, error) {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "mysql-orders-app", errors.New("exceeded quota"))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			w.facts.Open("a")
			w.reconcile()
			w.settle("a", "b", "c")
			w.reconcile()
			c.begin(w)
			old := w.deployments()
			w.change(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Spec.Application = &v1alpha1.ApplicationSpec{Database: "app"}
				g.Spec.Image = "mysql:9.8"
			})
			said := w.turns(3)
			if said == nil || said.Status != metav1.ConditionFalse || said.Reason != string(v1alpha1.ReasonApplicationSecret) || !strings.Contains(said.Message, "mysql-orders-app") {
				t.Errorf("%s: it is not said: %+v", c.reason, said)
			}
			if w.deployments()["c"] == old["c"] {
				t.Errorf("%s: no pod is updated", c.reason)
			}
			if n := w.said.Count(v1alpha1.ReasonApplicationSecret); n != 1 {
				t.Errorf("%s: %d events", c.reason, n)
			}
		})
	}
}

// TestANewGroupWaitsForTheSecretOfItsApplication: its sites make the account with their data directories, and never again.
func TestANewGroupWaitsForTheSecretOfItsApplication(t *testing.T) {
	w := newWorld(t, scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Application = &v1alpha1.ApplicationSpec{Database: "app"} }), somebodysSecret())
	w.reconcile()
	for _, kind := range []string{v1alpha1.ConditionApplicationReady, v1alpha1.ConditionProgressing} {
		if c := w.condition(kind); c.Reason != v1alpha1.ReasonApplicationSecret || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "ExternalSecret app") {
			t.Errorf("%s: %+v", kind, c)
		}
	}
	if n := len(w.deployments()); n != 0 {
		t.Errorf("%d sites were made", n)
	}
}

// TestALostPasswordIsNotMadeUp: another one would fit no server, and the application would be told it.
func TestALostPasswordIsNotMadeUp(t *testing.T) {
	w, _ := applicationWorld(t)
	w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
		s.Application = &v1alpha1.ApplicationStatus{Database: "shop", User: "app"}
	})
	secret := &corev1.Secret{}
	w.get(secret, v1alpha1.ApplicationSecret("orders"))
	delete(secret.Data, "password")
	delete(secret.Data, "uri")
	w.must(w.c.Update(w.ctx, secret))
	c := w.turns(2)
	if data := w.applicationSecret(); len(data["password"])+len(data["uri"]) != 0 {
		t.Errorf("the Secret holds a password again: %q", data)
	}
	if c == nil || c.Reason != string(v1alpha1.ReasonApplicationSecret) || c.Status != metav1.ConditionFalse {
		t.Errorf("it is not said: %+v", c)
	}
}

// TestAPasswordThatNoSiteTakesIsSaid: the sites made no account of it, and the Secret is what is to be corrected.
func TestAPasswordThatNoSiteTakesIsSaid(t *testing.T) {
	w, _ := applicationWorld(t)
	w.facts.Open("a")
	w.facts.Under(1)
	secret := &corev1.Secret{}
	w.get(secret, v1alpha1.ApplicationSecret("orders"))
	secret.Data["password"] = []byte("secret\n")
	w.must(w.c.Update(w.ctx, secret))
	if c := w.turns(4); c == nil || c.Reason != string(v1alpha1.ReasonApplicationSecret) || !strings.Contains(c.Message, "line break") || strings.Contains(c.Message, "secret\n") {
		t.Errorf("it is not said: %+v", c)
	}
}

// TestASecretOfSomebodyElseOutlivesTheGroup: who may make groups, and no Secrets, must not be able to delete one by its name.
func TestASecretOfSomebodyElseOutlivesTheGroup(t *testing.T) {
	w := newWorld(t, scopetest.Group(deletePolicy, func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Application = &v1alpha1.ApplicationSpec{Database: "app"} }), somebodysSecret())
	w.reconcile()
	w.must(w.c.Delete(w.ctx, w.group()))
	w.reconcile()
	w.get(&corev1.Secret{}, v1alpha1.ApplicationSecret("orders"))
}
