// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration"
)

const (
	rotate   = v1alpha1.RequestRotateKeyring
	reclone  = v1alpha1.RequestRecloneSite
	planned  = v1alpha1.RequestPlannedFailover
	rotateID = v1alpha1.AnnotationRotateKeyring + "-id"
)

// world is an API server with one group. It can be made to fail.
type world struct {
	t                *testing.T
	c                client.WithWatch
	persist, takes   error
	applied, patched int
}

func newWorld(t *testing.T, annotations map[string]string, last ...v1alpha1.LastRequest) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u", Annotations: annotations}}
	group.Status.LastRequests = last
	w := &world{t: t}
	w.c = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(group).WithObjects(group).
		WithTypeConverters(applyconfiguration.NewTypeConverter(scheme), managedfields.NewDeducedTypeConverter()).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceApply: func(ctx context.Context, c client.Client, name string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
				if w.applied++; w.persist != nil {
					return w.persist
				}
				return c.SubResource(name).Apply(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if w.patched++; w.takes != nil {
					return w.takes
				}
				return c.Patch(ctx, o, p, opts...)
			},
		}).Build()
	return w
}

func (w *world) group() *v1alpha1.MysqlFailoverGroup {
	w.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "orders"}, g); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// annotate is what a person does.
func (w *world) annotate(change map[string]string) {
	w.t.Helper()
	g := w.group()
	g.Annotations = change
	if err := w.c.Update(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) answer(writer Writer, g *v1alpha1.MysqlFailoverGroup, a Answer) error {
	writer.Client, writer.Owner = w.c, v1alpha1.ManagerController
	q, _ := Of(g, rotate)
	return writer.Answer(w.t.Context(), g, q, a)
}

// last is the answer to a kind, without its time.
func (w *world) last(kind v1alpha1.RequestKind) v1alpha1.LastRequest {
	w.t.Helper()
	g := w.group()
	if last := g.Status.LastRequest(kind); last != nil {
		if last.AnsweredAt.IsZero() {
			w.t.Errorf("no time: %+v", last)
		}
		last.AnsweredAt = metav1.MicroTime{}
		return *last
	}
	return v1alpha1.LastRequest{}
}

func asks(site, id string) map[string]string {
	return map[string]string{rotate.Annotation(): site, rotateID: id, "mine": "stays"}
}

// An answer is in status, the request is off the group, and everything else is as it was.
func TestARequestIsAnswered(t *testing.T) {
	earlier := v1alpha1.LastRequest{Kind: reclone, ID: "theirs", Target: "c", Outcome: v1alpha1.RequestRefused, Reason: "Because", AnsweredAt: metav1.NowMicro()}
	for name, writer := range map[string]Writer{"of what was read": {}, "anew": {Anew: true}} {
		w := newWorld(t, asks("b", "1"), earlier)
		g := w.group()
		if err := w.answer(writer, g, Done("it is sealed")); err != nil {
			t.Fatal(name, err)
		}
		want := v1alpha1.LastRequest{Kind: rotate, ID: "1", Target: "b", Outcome: v1alpha1.RequestDone, Reason: v1alpha1.AnswerCompleted, Message: "it is sealed"}
		if got := w.last(rotate); got != want {
			t.Errorf("%s: %+v", name, got)
		}
		if got := w.last(reclone); got.ID != "theirs" {
			t.Errorf("%s: the answer to another kind is %+v", name, got)
		}
		now := w.group()
		if !maps.Equal(now.Annotations, map[string]string{"mine": "stays"}) {
			t.Errorf("%s: annotations %v", name, now.Annotations)
		}
		if !maps.Equal(g.Annotations, now.Annotations) || g.ResourceVersion != now.ResourceVersion || g.Status.LastRequest(rotate) == nil {
			t.Errorf("%s: the group in memory is not what was written: %+v", name, g)
		}
		w.annotate(asks("c", "2"))
		if err := w.answer(writer, w.group(), Refused("Because", "no")); err != nil || w.last(rotate).ID != "2" || len(w.group().Status.LastRequests) != 2 {
			t.Errorf("%s: the next one: %v, %+v", name, err, w.group().Status.LastRequests)
		}
		w.annotate(asks("d", "3"))
		g = w.group()
		if err := w.answer(writer, g, Done("x")); err != nil || len(g.Status.LastRequests) != 2 || g.Status.LastRequest(rotate).Target != "d" {
			t.Errorf("%s: in memory: %v, %+v", name, err, g.Status.LastRequests)
		}
	}
}

// An operator that ends between the two writes leaves an answered request. Nothing is done for it again, and its answer stays.
func TestAnAnswerSurvivesItsOperator(t *testing.T) {
	w := newWorld(t, asks("b", "1"))
	w.takes = errors.New("ends here")
	if err := w.answer(Writer{}, w.group(), Done("x")); err == nil {
		t.Fatal("no error")
	}
	g := w.group()
	if _, open := Open(g, rotate); open || w.last(rotate).Outcome != v1alpha1.RequestDone {
		t.Fatalf("it is open, with the answer %+v", w.last(rotate))
	}
	if q, stands := Of(g, rotate); !stands || q.Value != "b" {
		t.Fatal("it was taken off before")
	}
	w.takes = nil
	before := w.applied
	if err := w.answer(Writer{}, w.group(), Refused("Because", "it is not as it was")); err != nil || w.last(rotate).Outcome != v1alpha1.RequestDone || w.applied != before {
		t.Errorf("answered twice: %v, %+v", err, w.last(rotate))
	}
	if _, stands := Of(w.group(), rotate); stands {
		t.Error("the second operator leaves it on the group")
	}
}

// Without an answer in status a request stays: somebody waits for it.
func TestARequestIsTakenOffOnlyOnceItsAnswerIsDurable(t *testing.T) {
	w := newWorld(t, asks("b", "1"))
	w.persist = errors.New("away")
	if err := w.answer(Writer{}, w.group(), Done("x")); err == nil {
		t.Fatal("no error")
	}
	if _, open := Open(w.group(), rotate); !open || w.patched > 0 {
		t.Error("it was taken off without an answer")
	}
}

// A request that took the place of the one that was answered stays, with or without the same value.
func TestAnotherRequestStays(t *testing.T) {
	for name, next := range map[string]map[string]string{"another site": asks("c", "2"), "the same site": asks("b", "2"), "by hand": {rotate.Annotation(): "b"}} {
		w := newWorld(t, asks("b", "1"))
		old := w.group()
		w.annotate(next)
		if err := w.answer(Writer{}, old.DeepCopy(), Done("x")); err == nil || w.last(rotate).ID != "" {
			t.Errorf("%s: a writer of what it read: %v, %+v", name, err, w.last(rotate))
		}
		if err := w.answer(Writer{Anew: true}, old.DeepCopy(), Done("x")); err != nil || w.last(rotate).ID != "1" {
			t.Errorf("%s: answered anew: %v, %+v", name, err, w.last(rotate))
		}
		if q, open := Open(w.group(), rotate); !open || q.Value != next[rotate.Annotation()] {
			t.Errorf("%s: it is gone", name)
		}
	}
}

// Only a request with an id is told from the one before.
func TestARequestWithoutAnIDIsNeverAnswered(t *testing.T) {
	w := newWorld(t, map[string]string{rotate.Annotation(): "b"}, v1alpha1.LastRequest{Kind: rotate, Target: "b", Outcome: v1alpha1.RequestDone})
	if _, open := Open(w.group(), rotate); !open {
		t.Error("what a person asks for by hand passes for what was answered before")
	}
	if _, open := Open(w.group(), reclone); open {
		t.Error("what nobody asked for is open")
	}
}

// What is left of requests is cleared away, and those that are to be carried out get a name.
func TestTidy(t *testing.T) {
	done := v1alpha1.LastRequest{Kind: rotate, ID: "1", Target: "b", Outcome: v1alpha1.RequestDone, Reason: "x", AnsweredAt: metav1.NowMicro()}
	for name, tc := range map[string]struct {
		has, want map[string]string
		named     bool
	}{
		"as it has to be":            {asks("b", "2"), asks("b", "2"), false},
		"answered before":            {asks("b", "1"), map[string]string{"mine": "stays"}, false},
		"answered, for another":      {asks("c", "1"), asks("c", "1"), false},
		"taken back":                 {map[string]string{rotateID: "2"}, nil, false},
		"by hand":                    {map[string]string{rotate.Annotation(): "b"}, map[string]string{rotate.Annotation(): "b"}, true},
		"by hand, another's to name": {map[string]string{planned.Annotation(): "b"}, map[string]string{planned.Annotation(): "b"}, false},
	} {
		w := newWorld(t, tc.has, done)
		g := w.group()
		if err := (Writer{Client: w.c, Owner: v1alpha1.ManagerController}).Tidy(t.Context(), g, rotate, reclone); err != nil {
			t.Fatal(name, err)
		}
		got := w.group().Annotations
		if !maps.Equal(got, g.Annotations) {
			t.Errorf("%s: in memory %v, written %v", name, g.Annotations, got)
		}
		if id := got[rotateID]; tc.named {
			if delete(got, rotateID); id == "" {
				t.Errorf("%s: it has no id", name)
			}
		}
		if !maps.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		if maps.Equal(tc.has, tc.want) && !tc.named && w.patched > 0 {
			t.Errorf("%s: written without need", name)
		}
	}
}

// Without an id nothing may be begun.
func TestARequestThatCannotBeNamed(t *testing.T) {
	w := newWorld(t, map[string]string{rotate.Annotation(): "b"})
	w.takes = errors.New("away")
	if err := (Writer{Client: w.c}).Tidy(t.Context(), w.group(), rotate); err == nil {
		t.Error("no error")
	}
}

// An annotation may have any size, status has not.
func TestAnswersAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 100_000)
	w := newWorld(t, asks(long, long))
	if err := w.answer(Writer{}, w.group(), Refused(long, long)); err != nil {
		t.Fatal(err)
	}
	got := w.last(rotate)
	for what, size := range map[string]int{"id": len(got.ID), "target": len(got.Target), "reason": len(got.Reason), "message": len(got.Message)} {
		if size == 0 || size > maxMessage || what != "message" && size > maxTarget {
			t.Errorf("%s has %d bytes", what, size)
		}
	}
	if _, stands := Of(w.group(), rotate); stands {
		t.Error("it stays, and is answered for ever")
	}
}

// Each kind is asked for by an annotation of its own.
func TestEachKindHasAnAnnotation(t *testing.T) {
	var seen []string
	for _, kind := range v1alpha1.RequestKinds() {
		if key := kind.Annotation(); key == "" || slices.Contains(seen, key) || v1alpha1.RequestOf(key) != kind || kind.IDAnnotation() != key+"-id" {
			t.Errorf("%s is asked for by %q", kind, key)
		}
		seen = append(seen, kind.Annotation())
	}
	if len(seen) != 8 || v1alpha1.RequestOf("mine") != "" {
		t.Errorf("kinds %v", seen)
	}
}

// The operator asks by an annotation as people do, and takes the place of nobody's request.
func TestTheOperatorAsksAndWithdraws(t *testing.T) {
	id := planned.IDAnnotation()
	mine := map[string]string{planned.Annotation(): "b", id: "1"}
	for name, tc := range map[string]struct {
		has, want map[string]string
		do        func(Writer, *v1alpha1.MysqlFailoverGroup) error
	}{
		"asks": {map[string]string{"x": "y"}, map[string]string{"x": "y", planned.Annotation(): "b", id: "1"},
			func(w Writer, g *v1alpha1.MysqlFailoverGroup) error {
				return w.Ask(t.Context(), g, Request{planned, "b", "1"})
			}},
		"asks beside another": {map[string]string{planned.Annotation(): "c"}, map[string]string{planned.Annotation(): "c"},
			func(w Writer, g *v1alpha1.MysqlFailoverGroup) error {
				return w.Ask(t.Context(), g, Request{planned, "b", "1"})
			}},
		"withdraws": {mine, nil, func(w Writer, g *v1alpha1.MysqlFailoverGroup) error { return w.Withdraw(t.Context(), g, planned, "1") }},
		"withdraws another's": {mine, mine, func(w Writer, g *v1alpha1.MysqlFailoverGroup) error {
			return w.Withdraw(t.Context(), g, planned, "2")
		}},
		"withdraws nothing": {nil, nil, func(w Writer, g *v1alpha1.MysqlFailoverGroup) error { return w.Withdraw(t.Context(), g, planned, "") }},
	} {
		w := newWorld(t, tc.has)
		g := w.group()
		if err := tc.do(Writer{Client: w.c, Owner: v1alpha1.ManagerController}, g); err != nil {
			t.Fatal(name, err)
		}
		if got := w.group(); !maps.Equal(got.Annotations, tc.want) || !maps.Equal(g.Annotations, tc.want) || got.ResourceVersion != g.ResourceVersion {
			t.Errorf("%s: %v, in memory %v, want %v", name, got.Annotations, g.Annotations, tc.want)
		}
		w = newWorld(t, tc.has)
		w.takes = errors.New("away")
		if err := tc.do(Writer{Client: w.c}, w.group()); (err != nil) != !maps.Equal(tc.has, tc.want) {
			t.Errorf("%s: without an API server: %v", name, err)
		}
	}
}

// The note of an older plugin goes once all sites are asked for, and not while that plugin may use it.
func TestTheNoteOfAnOlderPlugin(t *testing.T) {
	for value, want := range map[string]bool{"*": false, "*:replicas": false, "b": true} {
		has := asks(value, "1")
		has[v1alpha1.AnnotationRotation] = "2026-11-03T12:00:00Z b=1"
		w := newWorld(t, has)
		if err := (Writer{Client: w.c}).Tidy(t.Context(), w.group(), rotate); err != nil {
			t.Fatal(err)
		}
		now := w.group().Annotations
		if _, stays := now[v1alpha1.AnnotationRotation]; stays != want || now[rotate.Annotation()] != value || now["mine"] != "stays" {
			t.Errorf("%s: %v", value, now)
		}
	}
}

// A request that is as it should be has nothing written: without a note of an older plugin there is none to take off.
func TestATidyRequestIsLeftAlone(t *testing.T) {
	g := &v1alpha1.MysqlFailoverGroup{}
	if g.Annotations = asks("*", "1"); len(untidy(g, nil)) != 0 {
		t.Errorf("%v", untidy(g, nil))
	}
}

func TestAnswerInWords(t *testing.T) {
	if got := Refused(v1alpha1.AnswerUnknownSite, "no").String(); got != "refused (UnknownSite): no" {
		t.Error(got)
	}
}
