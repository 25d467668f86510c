// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// orders is a group, and claim the volume claim as it wishes it, with the group as its owner.
var orders = &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "orders-uid"}}

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "mysql-orders-a-data", Labels: map[string]string{v1alpha1.LabelGroup: "orders", v1alpha1.LabelSite: "a"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(orders, v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))},
		},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
}

// found is the same as people prepared it.
func found() *corev1.PersistentVolumeClaim {
	v := claim()
	v.UID, v.Labels, v.OwnerReferences = "claim-uid", nil, nil
	return v
}

// cluster is an API server that merges what is applied, by its owners. writes are the field managers that applied something, in order.
type cluster struct {
	client.Client
	t      *testing.T
	writes []string
	// fails has the applies of a manager fail.
	fails string
}

var errAway = errors.New("the API server is away")

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	c := &cluster{t: t}
	c.Client = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithTypeConverters(clientgoapply.NewTypeConverter(clientgoscheme.Scheme)).
		WithReturnManagedFields().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, store client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			options := client.ApplyOptions{}
			options.ApplyOptions(opts)
			if options.FieldManager == c.fails {
				return errAway
			}
			c.writes = append(c.writes, options.FieldManager)
			return store.Apply(ctx, o, opts...)
		},
	}).Build()
	return c
}

func (c *cluster) get() *corev1.PersistentVolumeClaim {
	c.t.Helper()
	v := &corev1.PersistentVolumeClaim{}
	if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(claim()), v); err != nil {
		c.t.Fatal(err)
	}
	return v
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// olderApplies is an operator that knows nothing of the mark, or said it itself under the main manager.
func (c *cluster) olderApplies(annotations map[string]string) {
	c.t.Helper()
	older := claim()
	older.Annotations, older.OwnerReferences = annotations, nil
	config, err := configuration(older)
	c.must(err)
	c.must(c.Apply(c.t.Context(), client.ApplyConfigurationFromUnstructured(config), client.FieldOwner(v1alpha1.ManagerController), client.ForceOwnership))
}

// marksOf are the managers that own the mark.
func marksOf(v *corev1.PersistentVolumeClaim) (all []string) {
	for _, entry := range v.ManagedFields {
		if entry.FieldsV1 != nil && strings.Contains(string(entry.FieldsV1.GetRawBytes()), v1alpha1.AnnotationPrepared) {
			all = append(all, entry.Manager)
		}
	}
	return all
}

// The mark of what people prepared stays whatever the main manager says later: an older operator, after a rollback, does not say it.
func TestTheMarkOutlivesARollback(t *testing.T) {
	for name, prepare := range map[string]func(*cluster){
		"found":                          func(*cluster) {},
		"marked by the main manager":     func(c *cluster) { c.olderApplies(map[string]string{v1alpha1.AnnotationPrepared: "true"}) },
		"marked by a person, and by all": func(c *cluster) { annotate(c, "yes") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, found())
			prepare(c)
			a := NewApplier(c, c)
			for range 2 {
				c.must(a.Apply(t.Context(), orders, claim()))
			}
			v := c.get()
			if got := marksOf(v); !slices.Equal(got, []string{v1alpha1.ManagerPrepared}) {
				t.Errorf("the mark is owned by %v", got)
			}
			if v.Annotations[v1alpha1.AnnotationPrepared] != "true" || v.Labels[v1alpha1.LabelGroup] != "orders" || len(v.OwnerReferences) != 0 {
				t.Errorf("annotations %v, labels %v, owners %v", v.Annotations, v.Labels, v.OwnerReferences)
			}
			c.olderApplies(nil)
			if v := c.get(); !IsPrepared(v) || v.Annotations[v1alpha1.AnnotationPrepared] != "true" {
				t.Errorf("an older operator took it for its own: annotations %v", v.Annotations)
			}
			c.writes = nil
			c.must(a.Apply(t.Context(), orders, claim()))
			before := c.get().ResourceVersion
			c.must(a.Apply(t.Context(), orders, claim()))
			if after := c.get().ResourceVersion; after != before {
				t.Errorf("it is written again and again: %v", c.writes)
			}
		})
	}
}

// annotate is what a person does; no value takes the mark off.
func annotate(c *cluster, value string) {
	v := c.get()
	before := v.DeepCopy()
	v.Annotations = map[string]string{v1alpha1.AnnotationPrepared: value}
	if value == "" {
		v.Annotations = nil
	}
	c.must(c.Patch(c.t.Context(), v, client.MergeFrom(before), client.FieldOwner("kubectl-annotate")))
}

// A person who takes the mark off gives the object to the group.
func TestAPersonTakesTheMarkOff(t *testing.T) {
	c := newCluster(t, found())
	a := NewApplier(c, c)
	c.must(a.Apply(t.Context(), orders, claim()))
	annotate(c, "")
	c.must(a.Apply(t.Context(), orders, claim()))
	if v := c.get(); IsPrepared(v) || len(v.OwnerReferences) != 1 {
		t.Errorf("annotations %v, owners %v", v.Annotations, v.OwnerReferences)
	}
}

// What was found is marked before it gets the labels of the group: with them alone it would count as the group's own.
func TestTheMarkComesFirst(t *testing.T) {
	c := newCluster(t, found())
	a := NewApplier(c, c)
	c.fails = v1alpha1.ManagerPrepared
	if err := a.Apply(t.Context(), orders, claim()); !errors.Is(err, errAway) || !IsPrepared(c.get()) || len(c.writes) != 0 {
		t.Errorf("%v, written by %v", err, c.writes)
	}
	c.fails = v1alpha1.ManagerController
	if err := a.Apply(t.Context(), orders, claim()); !errors.Is(err, errAway) || !IsPrepared(c.get()) {
		t.Errorf("%v, written by %v", err, c.writes)
	}
	c.fails = ""
	c.must(a.Apply(t.Context(), orders, claim()))
	if v := c.get(); !IsPrepared(v) || v.Labels[v1alpha1.LabelGroup] != "orders" {
		t.Errorf("annotations %v, labels %v", v.Annotations, v.Labels)
	}
}

// The mark names the very object that was looked at: one that went meanwhile is not made again, empty and with a mark.
func TestTheMarkNamesTheObject(t *testing.T) {
	c := newCluster(t, found())
	var uid types.UID
	store := interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			if named, is := o.(interface{ GetUID() types.UID }); is && uid == "" {
				uid = named.GetUID()
			}
			return apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), claim().Name, errAway)
		},
	})
	if err := NewApplier(store, store).Apply(t.Context(), orders, claim()); !apierrors.IsConflict(err) || uid != found().UID {
		t.Errorf("%v; it names %q", err, uid)
	}
}
