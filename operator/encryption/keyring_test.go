// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

// recorded is a store of keyrings that says what it was asked for.
type recorded struct {
	client   client.Client
	calls    []string
	fails    map[string]error
	versions []keyring.Version
}

func (e *recorded) do(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	e.calls = append(e.calls, call)
	return e.fails[call]
}

func (e *recorded) Versions(_ context.Context, _, _, site string) ([]keyring.Version, error) {
	return e.versions, e.fails["versions "+site]
}

func (e *recorded) Digest(ctx context.Context, namespace, name string) (string, error) {
	secret := &corev1.Secret{}
	if err := e.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return wire.KeyringDigest(secret.Data[v1alpha1.KeyringKey]), nil
}

func (e *recorded) Prune(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, site, name string) error {
	return e.do("prune %s %s", site, name)
}

func (e *recorded) RenewToken(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, site string, round int64) error {
	return e.do("token %s %d", site, round)
}

func (e *recorded) DropToken(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, site string) error {
	return e.do("drop %s", site)
}

// rest is the rest of the reconcile.
type rest struct {
	told int
	// observes is what comes of a look.
	observes error
}

func (*rest) NewScope(g *v1alpha1.MysqlFailoverGroup) *scope.Scope {
	return &scope.Scope{Group: g, Key: scope.KeyOf(g), Now: time.Now()}
}
func (r *rest) Observe(context.Context, *scope.Scope) error       { return r.observes }
func (*rest) Ensure(types.NamespacedName)                         {}
func (r *rest) TellIgnoredKeys(*scope.Scope)                      { r.told++ }
func (*rest) CloneWish(*scope.Scope, string) (none keyring.Clone) { return none }

// shell is an Encryption over an API server of the test.
type shell struct {
	*Encryption
	escrow *recorded
	said   *scopetest.Events
	rest   *rest
	// refuses has writes of status fail.
	refuses error
}

func newShell(t *testing.T, group *v1alpha1.MysqlFailoverGroup) *shell {
	t.Helper()
	t.Cleanup(func() { metrics.ForgetGroup(scopetest.Key.Namespace, scopetest.Key.Name) })
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	sh := &shell{said: &scopetest.Events{}, rest: &rest{}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(group).
		WithTypeConverters(applyconfiguration.NewTypeConverter(scheme), clientgoapply.NewTypeConverter(clientgoscheme.Scheme),
			managedfields.NewDeducedTypeConverter()).
		WithObjects(group).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceApply: func(ctx context.Context, c client.Client, name string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			if sh.refuses != nil {
				return sh.refuses
			}
			return c.SubResource(name).Apply(ctx, o, opts...)
		},
	}).Build()
	sh.escrow = &recorded{client: c, fails: map[string]error{}}
	register := work.New()
	base := &scope.Base{Client: c, Live: c, Recorder: events.NewRecorder(sh.said)}
	sh.Encryption = New(base, Options{
		Port: sh.rest, Work: register, Runner: &work.Runner{}, Escrow: sh.escrow, EscrowURL: "https://operator:8443", Wake: func(types.NamespacedName) {},
	})
	return sh
}

// look is a look at the group as it is now.
func (sh *shell) look(t *testing.T) *scope.Scope {
	t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := sh.Client.Get(t.Context(), scopetest.Key, g); err != nil {
		t.Fatal(err)
	}
	return &scope.Scope{Group: g, Key: scopetest.Key, Now: time.Now(), Provisioned: map[string]bool{}, Again: time.Hour}
}

func site(name string) scope.SiteKey { return scope.SiteKey{Group: scopetest.Key, Site: name} }

var errAway = errors.New("the API server is away")

// What is decided is carried out, each in its own way, and what was read of the escrow before it is not used again.
func TestWhatIsDecidedIsCarriedOut(t *testing.T) {
	for name, tt := range map[string]struct {
		effect  keyring.Effect
		calls   []string
		forgets bool
	}{
		"make a token":        {keyring.MakeToken{Site: "c", Round: 3}, []string{"token c 3"}, true},
		"drop a token":        {keyring.DropToken{Site: "c"}, []string{"drop c"}, true},
		"prune":               {keyring.Prune{Site: "c", Names: []string{"v1", "v2"}}, []string{"prune c v1", "prune c v2"}, true},
		"take a mark off":     {keyring.Unprovision{Site: "c"}, nil, false},
		"say":                 {keyring.Say{Site: "c", What: keyring.EventEscrowed, Text: "It is in escrow."}, nil, false},
		"an order of another": {keyring.Answer{Site: "c"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
			s := sh.look(t)
			s.Provisioned["c"] = true
			sh.escrows.keep(site("c"), 0, look{hash: "before"})
			if err := sh.performKeyring(t.Context(), s, tt.effect); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.calls, sh.escrow.calls); diff != "" {
				t.Errorf("asked of the store:\n%s", diff)
			}
			if _, known := sh.escrows.last(site("c")); known == tt.forgets {
				t.Errorf("the look of before is kept: %t", known)
			}
			_, unprovision := tt.effect.(keyring.Unprovision)
			if s.Provisioned["c"] == unprovision || (s.Again == scope.WhenMoving) != unprovision {
				t.Errorf("provisioned %t, looked at again in %s", s.Provisioned["c"], s.Again)
			}
			if _, says := tt.effect.(keyring.Say); (sh.said.Count(v1alpha1.ReasonKeyringEscrowed) == 1) != says || len(sh.said.List) > 1 {
				t.Errorf("said %v", sh.said.List)
			}
		})
	}
}

// Each version is given up on its own: one that cannot be is tried again, and keeps no other.
func TestEachVersionIsPrunedOnItsOwn(t *testing.T) {
	sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
	sh.escrow.fails["prune c v1"] = errAway
	err := sh.performKeyring(t.Context(), sh.look(t), keyring.Prune{Site: "c", Names: []string{"v1", "v2"}})
	if !errors.Is(err, errAway) || len(sh.escrow.calls) != 2 {
		t.Errorf("%v after %v", err, sh.escrow.calls)
	}
}

// A rotation that is decided begins, in the process that decided it.
func TestARotationThatIsDecidedBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		sh := &Encryption{rotator: r}
		if err := sh.performKeyring(t.Context(), &scope.Scope{Group: scopetest.Group(scopetest.Running, scopetest.WithEncryption), Key: scopetest.Key}, keyring.Rotate{Site: "b"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-pl.ended:
		case <-time.After(time.Hour):
			t.Error("no rotation began")
		}
		pl.stop()
		synctest.Wait()
	})
}

// The first effect that fails ends the others: they stand as long as they are needed, and their order counts.
func TestEffectsEndAtTheFirstThatFails(t *testing.T) {
	sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
	sh.escrow.fails["drop b"] = errAway
	d := keyring.Decision{Sites: []keyring.Next{
		{Name: "a", Effects: []keyring.Effect{keyring.DropToken{Site: "a"}}}, {Name: "b", Effects: []keyring.Effect{keyring.DropToken{Site: "b"}}},
		{Name: "c", Effects: []keyring.Effect{keyring.DropToken{Site: "c"}}},
	}}
	if err := sh.performKeyrings(t.Context(), sh.look(t), d); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(sh.escrow.calls, ", "); got != "drop a, drop b" {
		t.Errorf("done: %s", got)
	}
}

// An order is answered with what came of it, once; a refusal is counted.
func TestAnOrderToRotateIsAnswered(t *testing.T) {
	ordered := func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationRotateKeyring: "c"}
	}
	for name, tt := range map[string]struct {
		answer  keyring.Answer
		want    v1alpha1.RequestOutcome
		stands  bool
		refused float64
	}{
		"done":       {keyring.Answer{Site: "c", Done: true, Why: "rotated"}, v1alpha1.RequestDone, false, 0},
		"refused":    {keyring.Answer{Site: "c", Reason: v1alpha1.AnswerUnknownSite, Why: "there is none"}, v1alpha1.RequestRefused, false, 1},
		"of another": {keyring.Answer{Site: "b", Done: true, Why: "rotated"}, "", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption, ordered))
			before := testutil.ToFloat64(Rotations.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, RotationRefused))
			if err := sh.performKeyring(t.Context(), sh.look(t), tt.answer); err != nil {
				t.Fatal(err)
			}
			g := sh.look(t).Group
			_, stands := g.Annotations[v1alpha1.AnnotationRotateKeyring]
			var got v1alpha1.LastRequest
			if last := g.Status.LastRequest(v1alpha1.RequestRotateKeyring); last != nil {
				got = *last
			}
			if stands != tt.stands || got.Outcome != tt.want || tt.want != "" && got.Message != tt.answer.Why {
				t.Errorf("stands %t, answered %+v", stands, got)
			}
			if n := testutil.ToFloat64(Rotations.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, RotationRefused)) - before; n != tt.refused {
				t.Errorf("counted %v refusals", n)
			}
		})
	}
	sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption, ordered))
	s, before := sh.look(t), testutil.ToFloat64(Rotations.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, RotationRefused))
	sh.refuses = errAway
	if err := sh.performKeyring(t.Context(), s, keyring.Answer{Site: "c", Reason: v1alpha1.AnswerUnknownSite}); !errors.Is(err, errAway) {
		t.Errorf("an answer that was not written: %v", err)
	}
	if n := testutil.ToFloat64(Rotations.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, RotationRefused)) - before; n != 0 {
		t.Errorf("counted %v refusals that nobody was told of", n)
	}
}

// A refusal to encrypt a group that serves stands at every look, and is said once. All else is said when it happens.
func TestARefusalThatStandsIsSaidOnce(t *testing.T) {
	sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
	for range 2 {
		sh.sayKeyring(sh.look(t), keyring.Say{What: keyring.EventAdoptionRefused, Text: "It serves."})
		sh.sayKeyring(sh.look(t), keyring.Say{Site: "c", What: keyring.EventNotEscrowed, Text: "It is not in escrow."})
	}
	if a, b := sh.said.Count(v1alpha1.ReasonEncryptionAdoptionRefused), sh.said.Count(v1alpha1.ReasonKeyringNotEscrowed); a != 1 || b != 2 {
		t.Errorf("said %v", sh.said.List)
	}
}

// I18: only the pod of a site that is not sealed is made with the escrow token.
func TestHowAPodIsMadeI18(t *testing.T) {
	w := keyring.Wish{Encrypted: true, Work: v1alpha1.KeyringBootstrap, Secret: "s", Version: 4, Digest: "d", Round: 7, AcceptPlain: true}
	want := render.Keyring{Work: v1alpha1.KeyringBootstrap, Secret: "s", Version: 4, Digest: "d", Round: "7", AcceptPlain: true,
		Token: v1alpha1.KeyringTokenSecret("orders", "c")}
	if diff := cmp.Diff(want, renderKeyring("orders", "c", w)); diff != "" {
		t.Errorf("unsealed:\n%s", diff)
	}
	w.Sealed = true
	want.Sealed, want.Token, want.Round, want.AcceptPlain = true, "", "", false
	if diff := cmp.Diff(want, renderKeyring("orders", "c", w)); diff != "" {
		t.Errorf("I18: sealed:\n%s", diff)
	}
}

// What a round began from is persisted, also if it was found in a pod, and is no version (I16: that answers no order).
func TestWhatARoundBeganFromIsPersisted(t *testing.T) {
	for what, st := range map[string]v1alpha1.SiteKeyringStatus{
		"a fresh keyring": {}, "a version": {SeedVersion: 3, SeedDigest: "d"}, "one that was found": {SeedDigest: "d"},
	} {
		out := keyringApply(st)
		if version, digest := ptr.Deref(out.SeedVersion, 0), ptr.Deref(out.SeedDigest, ""); version != st.SeedVersion || digest != st.SeedDigest {
			t.Errorf("%s: version %d, digest %q", what, version, digest)
		}
	}
}

// What was decided is handed on: how pods are made, which must not be replaced, which cannot be read, and when to look again.
func TestWhatIsHandedOn(t *testing.T) {
	sealed := v1alpha1.SiteKeyringStatus{Name: "c", Phase: v1alpha1.KeyringSealed}
	for name, tt := range map[string]struct {
		next    keyring.Next
		refused string
		again   time.Duration
	}{
		"sealed, and nothing moved": {next: keyring.Next{Status: sealed, Wish: keyring.Wish{Encrypted: true, Sealed: true}}, again: time.Hour},
		"sealed just now":           {next: keyring.Next{Status: sealed, Moved: true, Wish: keyring.Wish{Encrypted: true, Sealed: true}}, again: scope.WhenMoving},
		"under way":                 {next: keyring.Next{Status: v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringUnsealed}, Wish: keyring.Wish{Encrypted: true}}, again: scope.WhenMoving},
		"for a person":              {next: keyring.Next{Status: v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringFailed}, Missing: true, Wish: keyring.Wish{Encrypted: true, Kept: "alone"}}, again: scope.WhenWaiting},
		"lost":                      {next: keyring.Next{Status: v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringUnsealed}, Lost: true, Wish: keyring.Wish{Encrypted: true}}, again: scope.WhenMoving},
		"not encrypted":             {next: keyring.Next{}, refused: "it serves", again: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
			s := sh.look(t)
			tt.next.Name = "c"
			sh.wishKeyrings(s, keyring.Decision{Sites: []keyring.Next{tt.next}, Refused: tt.refused})
			if s.Again != tt.again {
				t.Errorf("looked at again in %s, want %s", s.Again, tt.again)
			}
			if got := s.Keyrings; got.Kept["c"] != tt.next.Wish.Kept || got.Missing["c"] != tt.next.Missing || got.Unreadable["c"] != (tt.next.Missing || tt.next.Lost) {
				t.Errorf("handed on %+v", got)
			}
			if k, made := s.In.Keyrings["c"]; made != tt.next.Wish.Encrypted || k.Sealed != tt.next.Wish.Sealed {
				t.Errorf("made %t: %+v", made, k)
			}
		})
	}
}

// What is known of a rotation is kept until status tells of it: forgotten too soon it would begin once more.
func TestARotationIsKnownUntilStatusTellsOfIt(t *testing.T) {
	for name, tt := range map[string]struct {
		status v1alpha1.SiteKeyringStatus
		known  bool
	}{
		"under way":       {v1alpha1.SiteKeyringStatus{Work: v1alpha1.KeyringRotation}, true},
		"status tells":    {v1alpha1.SiteKeyringStatus{Work: v1alpha1.KeyringRotation, Rotated: true}, false},
		"another work":    {v1alpha1.SiteKeyringStatus{Work: v1alpha1.KeyringClone}, false},
		"nothing is left": {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringSealed}, false},
	} {
		sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
		sh.Work.BeginRotation(site("c"), func() {}).Finish(nil)
		sh.wishKeyrings(sh.look(t), keyring.Decision{Sites: []keyring.Next{{Name: "c", Status: tt.status}}})
		if got := sh.Work.Rotation(site("c"), "").Done; got != tt.known {
			t.Errorf("%s: known %t", name, got)
		}
	}
}

// Only who pushes keyrings has to believe the endpoint.
func TestTrustIsKeptForThoseWhoPush(t *testing.T) {
	var trusted []string
	sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
	s := sh.look(t)
	s.In.Keyrings = map[string]render.Keyring{"a": {Token: "of a"}, "b": {Sealed: true}, "c": {Token: "of c"}}
	if err := sh.keepTrust(t.Context(), s); err != nil {
		t.Errorf("nobody makes the certificate, and %v", err)
	}
	sh.KeepTrust = func(_ context.Context, g *v1alpha1.MysqlFailoverGroup, site string) error {
		if trusted = append(trusted, g.Name+"/"+site); site == "c" {
			return errAway
		}
		return nil
	}
	if err := sh.keepTrust(t.Context(), s); !errors.Is(err, errAway) || !slices.Equal(trusted, []string{"orders/a", "orders/c"}) {
		t.Errorf("%v; %v", err, trusted)
	}
	delete(s.In.Keyrings, "c")
	if err := sh.keepTrust(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// I17: before a pod is replaced the escrow is read at this very moment, and what was read before is not used again.
func TestEscrowIsReadRightBeforeAPodIsReplacedI17(t *testing.T) {
	const name = "mysql-orders-c-keyring-v1"
	st := v1alpha1.SiteKeyringStatus{Name: "c", Phase: v1alpha1.KeyringSealed, KeyringSecret: name, KeyringVersion: 1, KeyringDigest: "d"}
	group := func() *v1alpha1.MysqlFailoverGroup {
		g := scopetest.Group(scopetest.Running, scopetest.WithEncryption)
		g.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{st}}
		return g
	}
	there := keyring.Version{Name: name, Number: 1, Digest: "d"}
	for what, tt := range map[string]struct {
		change func(*shell, *scope.Scope)
		gone   bool
		err    error
	}{
		"it is there":    {func(sh *shell, _ *scope.Scope) { sh.escrow.versions = []keyring.Version{there} }, false, nil},
		"it is gone":     {func(*shell, *scope.Scope) {}, true, nil},
		"nobody can say": {func(sh *shell, _ *scope.Scope) { sh.escrow.fails["versions c"] = errAway }, false, errAway},
		"no listener":    {func(sh *shell, _ *scope.Scope) { sh.Escrow = nil }, false, nil},
		"not encrypted":  {func(_ *shell, s *scope.Scope) { s.Group.Spec.EncryptionAtRest.Enabled = false }, false, nil},
	} {
		t.Run(what, func(t *testing.T) {
			sh := newShell(t, group())
			s := sh.look(t)
			tt.change(sh, s)
			// A moment ago it was there.
			sh.escrows.keep(site("c"), 0, look{at: s.Now, versions: []keyring.Version{there}, rendered: keyring.Rendered{Secret: name}})
			gone, err := sh.EscrowIsGone(t.Context(), s, "c")
			if gone != tt.gone || !errors.Is(err, tt.err) {
				t.Errorf("I17: gone %t, %v", gone, err)
			}
		})
	}
}

// A group whose keyrings could not be brought into escrow has no pods made; one that runs goes on as it is made.
func TestWithoutAListener(t *testing.T) {
	for name, tt := range map[string]struct {
		runs      bool
		escrow    bool
		escrowURL string
	}{
		"a new group": {false, false, ""}, "without an address": {false, true, ""}, "without a store": {false, false, "https://operator:8443"},
		"one that runs": {true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := scopetest.Group(scopetest.Running, scopetest.WithEncryption)
			g.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{
				{Name: "a", Phase: v1alpha1.KeyringSealed, KeyringSecret: "s", KeyringVersion: 5}, {Name: "b", Phase: v1alpha1.KeyringUnsealed, Work: v1alpha1.KeyringBootstrap, Round: 2},
			}}
			sh := newShell(t, g)
			if !tt.escrow {
				sh.Escrow = nil
			}
			sh.EscrowURL = tt.escrowURL
			s := sh.look(t)
			if tt.runs {
				s.Deployments = map[string]*appsv1.Deployment{"a": {}}
			}
			if err := sh.Keep(t.Context(), s); errors.Is(err, scope.ErrStop) == tt.runs || err != nil && tt.runs {
				t.Errorf("got %v", err)
			}
			if i := slices.IndexFunc(s.Conditions, func(c conditions.Condition) bool { return c.Reason == v1alpha1.ReasonEscrowListenerMissing }); i < 0 ||
				s.Conditions[i].Type != v1alpha1.ConditionEncryptionReady {
				t.Errorf("conditions %+v", s.Conditions)
			}
			if p := s.Progressing; p == nil || p.Reason != v1alpha1.ReasonEscrowListenerMissing || s.Again != scope.WhenWaiting {
				t.Errorf("progressing %+v, looked at again in %s", p, s.Again)
			}
			if !tt.runs {
				return
			}
			if got := scope.Sorted(s.In.Keyrings); !slices.Equal(got, []string{"a", "b"}) || s.In.Keyrings["a"].Version != 5 || s.In.Keyrings["b"].Round != "2" {
				t.Errorf("made as %+v", s.In.Keyrings)
			}
			for _, name := range []string{"a", "b", "c"} {
				if s.Keyrings.Kept[name] == "" {
					t.Errorf("the pod of %s may be replaced", name)
				}
			}
			if got := testutil.ToFloat64(EscrowVersion.WithLabelValues("shop", "orders", "a")); got != 5 {
				t.Errorf("version 5 is shown as %v", got)
			}
		})
	}
}

// A group that is not encrypted has nothing to rotate, and is asked for nothing else.
func TestAnOrderForAGroupWithoutKeyrings(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		sh := newShell(t, scopetest.Group(scopetest.Running, func(g *v1alpha1.MysqlFailoverGroup) {
			if ordered {
				g.Annotations = map[string]string{v1alpha1.AnnotationRotateKeyring: "c"}
			}
		}))
		before := testutil.ToFloat64(Rotations.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, RotationRefused))
		if err := sh.Keep(t.Context(), sh.look(t)); err != nil {
			t.Fatal(err)
		}
		if n := testutil.ToFloat64(Rotations.WithLabelValues(scopetest.Key.Namespace, scopetest.Key.Name, RotationRefused)) - before; (n == 1) != ordered || n > 1 {
			t.Errorf("ordered %t, counted %v refusals", ordered, n)
		}
		g := sh.look(t).Group
		last := g.Status.LastRequest(v1alpha1.RequestRotateKeyring)
		if (last != nil) != ordered || ordered && (last.Reason != v1alpha1.AnswerNotEncrypted || last.Outcome != v1alpha1.RequestRefused || last.Target != "c") {
			t.Errorf("ordered %t, answered %+v", ordered, last)
		}
		if len(g.Annotations) > 0 || g.Status.EncryptionAtRest != nil || sh.rest.told != 0 {
			t.Errorf("annotations %v, status %+v", g.Annotations, g.Status.EncryptionAtRest)
		}
	}
	sh := newShell(t, scopetest.Group(scopetest.Running, func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationRotateKeyring: "c"}
	}))
	s := sh.look(t)
	sh.refuses = errAway
	if err := sh.Keep(t.Context(), s); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
}

// What is decided is durable before it is carried out, and carried out in its order: who was overtaken does nothing, and looks again.
func TestKeepPersistsBeforeItActs(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "mysqlfailovergroups"}, "orders", errors.New("somebody wrote"))
	for name, tt := range map[string]struct {
		change  func(*shell)
		err     error
		again   time.Duration
		durable bool
		acts    bool
		shown   bool
		told    bool
	}{
		"all is well":               {func(*shell) {}, nil, scope.WhenMoving, true, true, true, true},
		"somebody wrote meanwhile":  {func(sh *shell) { sh.refuses = conflict }, scope.ErrStop, scope.WhenOvertaken, false, false, false, false},
		"it cannot be written":      {func(sh *shell) { sh.refuses = errAway }, errAway, time.Hour, false, false, false, false},
		"the escrow cannot be read": {func(sh *shell) { sh.escrow.fails["versions a"] = errAway }, errAway, time.Hour, false, false, false, false},
		"no token can be made":      {func(sh *shell) { sh.escrow.fails["token a 1"] = errAway }, errAway, scope.WhenMoving, true, true, true, false},
		"trust cannot be kept": {func(sh *shell) {
			sh.KeepTrust = func(context.Context, *v1alpha1.MysqlFailoverGroup, string) error { return errAway }
		}, errAway, scope.WhenMoving, true, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, scopetest.Group(scopetest.WithEncryption))
			s := sh.look(t)
			tt.change(sh)
			if err := sh.Keep(t.Context(), s); !errors.Is(err, tt.err) || tt.err == nil && err != nil {
				t.Errorf("got %v", err)
			}
			if at := sh.look(t).Group.Status.EncryptionAtRest; (at != nil && len(at.Sites) == 3) != tt.durable {
				t.Errorf("status %+v", at)
			}
			if acted := len(sh.escrow.calls) > 0; acted != tt.acts {
				t.Errorf("asked of the store: %v", sh.escrow.calls)
			}
			if s.Again != tt.again || len(s.Conditions) > 0 != tt.shown || (sh.rest.told == 1) != tt.told {
				t.Errorf("looked at again in %s; conditions %v; told %d times", s.Again, s.Conditions, sh.rest.told)
			}
			if made := len(slices.Collect(maps.Keys(s.In.Keyrings))); (made == 3) != tt.shown {
				t.Errorf("%d pods are made with a keyring", made)
			}
		})
	}
}
