// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// Writer answers requests.
type Writer struct {
	Client client.Client
	// Owner is the field manager that removes annotations.
	Owner string
	// Anew is true for a writer whose view of the group may be old: it answers whatever else was written since. A writer that reads the
	// group for each decision leaves it false, and writes only if the group is unchanged since.
	Anew bool
}

// Answer persists the answer to a request, and then removes that request from the group. It may be done again: it does not
// write what status already has, and keeps a request that came in its place. The group in memory becomes what was written.
func (w Writer) Answer(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, q Request, a Answer) error {
	if !q.IsAnswered(g) {
		if err := w.persist(ctx, g, a.entry(q, metav1.NowMicro())); err != nil {
			return fmt.Errorf("answer %s: %w", q.Kind, err)
		}
	}
	if now, _ := Of(g, q.Kind); now != q {
		return nil // it is another request
	}
	if err := w.annotate(ctx, g, map[string]any{q.Kind.Annotation(): nil, q.Kind.IDAnnotation(): nil}); err != nil {
		return fmt.Errorf("take %s off: %w", q.Kind, err)
	}
	return nil
}

// persist writes the answer. With the resource version in it, a write in between makes it fail.
func (w Writer) persist(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, entry v1alpha1.LastRequest) error {
	one := applyv1alpha1.LastRequest().WithKind(entry.Kind).WithID(entry.ID).WithTarget(entry.Target).
		WithOutcome(entry.Outcome).WithReason(entry.Reason).WithMessage(entry.Message).WithAnsweredAt(entry.AnsweredAt)
	// The uid keeps the apply from making a group again that was deleted just now.
	config := applyv1alpha1.MysqlFailoverGroup(g.Name, g.Namespace).WithUID(g.UID).
		WithStatus(applyv1alpha1.MysqlFailoverGroupStatus().WithLastRequests(one))
	if !w.Anew {
		config.WithResourceVersion(g.ResourceVersion)
	}
	owner := client.FieldOwner(v1alpha1.ManagerRequest + string(entry.Kind))
	if err := w.Client.Status().Apply(ctx, config, owner, client.ForceOwnership); err != nil {
		return err
	}
	// The response has the present state, also of the annotations.
	g.ResourceVersion, g.Annotations = ptr.Deref(config.ResourceVersion, ""), config.Annotations
	note(&g.Status, entry)
	return nil
}

// annotate changes annotations of the group as it was read.
func (w Writer) annotate(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, change map[string]any) error {
	meta := map[string]any{"uid": g.UID, "resourceVersion": g.ResourceVersion, "annotations": change}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return fmt.Errorf("encode annotations: %w", err)
	}
	written := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}}
	if err := w.Client.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(w.Owner)); err != nil {
		return err
	}
	g.ResourceVersion, g.Annotations = written.ResourceVersion, written.Annotations
	return nil
}

// Ask puts the operator's own request on the group as it was read, unless the group has one of this kind: two would share one outcome.
func (w Writer) Ask(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, q Request) error {
	if _, stands := Of(g, q.Kind); stands {
		return nil
	}
	if err := w.annotate(ctx, g, map[string]any{q.Kind.Annotation(): q.Value, q.Kind.IDAnnotation(): q.ID}); err != nil {
		return fmt.Errorf("ask for %s: %w", q.Kind, err)
	}
	return nil
}

// Withdraw removes the request with an id from the group without an answer: its author does not want it any more.
func (w Writer) Withdraw(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, kind v1alpha1.RequestKind, id string) error {
	if q, stands := Of(g, kind); !stands || q.ID != id {
		return nil
	}
	if err := w.annotate(ctx, g, map[string]any{kind.Annotation(): nil, kind.IDAnnotation(): nil}); err != nil {
		return fmt.Errorf("withdraw %s: %w", kind, err)
	}
	return nil
}

// Tidy removes requests whose operator answered them and ended before it could remove them, and ids that were left when a person
// withdrew a request. Requests of the named kinds get an id if they have none: from then on each is answered once.
func (w Writer) Tidy(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, named ...v1alpha1.RequestKind) error {
	change := untidy(g, named)
	if len(change) == 0 {
		return nil
	}
	if err := w.annotate(ctx, g, change); err != nil {
		return fmt.Errorf("tidy requests: %w", err)
	}
	return nil
}

func untidy(g *v1alpha1.MysqlFailoverGroup, named []v1alpha1.RequestKind) map[string]any {
	change := map[string]any{}
	// The notes of an older plugin on a rotation that it led mean nothing for one that the operator leads.
	if _, is := g.Annotations[v1alpha1.AnnotationRotation]; is && v1alpha1.AsksForCampaign(g.Annotations[v1alpha1.AnnotationRotateKeyring]) {
		change[v1alpha1.AnnotationRotation] = nil
	}
	for _, kind := range v1alpha1.RequestKinds() {
		q, stands := Of(g, kind)
		_, hasID := g.Annotations[kind.IDAnnotation()]
		switch {
		case !stands && hasID, q.IsAnswered(g):
			change[kind.Annotation()], change[kind.IDAnnotation()] = nil, nil
		case stands && q.ID == "" && slices.Contains(named, kind):
			change[kind.IDAnnotation()] = rand.Text()
		}
	}
	return change
}
