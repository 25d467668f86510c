// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/keyring"
)

// sealedStill says why a clone into an encrypted site has to wait: it writes the keyring, which must be unsealed, and status
// must say so; empty if it may begin.
func (p *provisioner) sealedStill(t task) string {
	if !encrypted(t.group) {
		return ""
	}
	g, known := p.facts.Sites(t.key.group.Namespace, t.key.group.Name)
	k := g.Sites[t.key.site].Keyring
	switch {
	case !keyring.MayClone(keyringStatus(t.group, t.key.site)):
		return "the keyring is to be unsealed first"
	case !known || k == nil || k.Sealed || !k.Active:
		return "the pod with the unsealed keyring is to come first"
	}
	return ""
}

// donorWaits says why no clone from a site of an encrypted group may begin now; empty if it may.
func (p *provisioner) donorWaits(t task, source string) string {
	if !encrypted(t.group) {
		return ""
	}
	g, _ := p.facts.Sites(t.key.group.Namespace, t.key.group.Name)
	system := t.group.Spec.EncryptionAtRest.Coverage.SystemTablespace
	return keyring.DonorWaits(keyring.Donor{
		Name: source, Covered: system == nil || *system, Status: keyringStatus(t.group, source), Report: g.Sites[source].Keyring,
	})
}

// asked is an order by annotation, and what came of it.
type asked struct{ annotation, value, outcome string }

// answerOrder takes an annotation off the group and says in its place what came of it. One that has changed since it was
// read stays: it is another order.
func (r *Reconciler) answerOrder(ctx context.Context, s *scope, o asked) error {
	if value, set := s.group.Annotations[o.annotation]; !set || value != o.value {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": s.group.UID, "resourceVersion": s.group.ResourceVersion,
		"annotations": map[string]any{
			o.annotation:                   nil,
			v1alpha1.AnnotationLastRequest: fmt.Sprintf("%s=%s: %s", o.annotation, o.value, o.outcome),
		}}})
	if err != nil {
		return fmt.Errorf("answer %s: %w", o.annotation, err)
	}
	answered := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	if err := r.Client.Patch(ctx, answered, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagerController)); err != nil {
		return fmt.Errorf("answer %s: %w", o.annotation, err)
	}
	s.group.ResourceVersion = answered.ResourceVersion
	delete(s.group.Annotations, o.annotation)
	return nil
}
