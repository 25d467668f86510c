// SPDX-License-Identifier: Apache-2.0

// Package keyrings knows keyrings in escrow as a person meets them: what the Secret of a version must be like, what a
// restored one lacks, and what does not fit in a group. It is pure, and never puts a byte of a key into a text. See
// docs/encryption.md.
package keyrings

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	kind = "MysqlFailoverGroup"
	// defaultDir is the default of spec.encryptionAtRest.keyring.dataFileDir.
	defaultDir = "/run/mysql-keyring"
	fileName   = "keyring"
)

// File is where the pods of a group have their keyring.
func File(g *v1alpha1.MysqlFailoverGroup) string {
	dir := defaultDir
	if e := g.Spec.EncryptionAtRest; e != nil && e.Keyring.DataFileDir != "" {
		dir = e.Keyring.DataFileDir
	}
	return path.Join(dir, fileName)
}

// StatusOf returns what status says of the keyring of a site, and its place in the list.
func StatusOf(g *v1alpha1.MysqlFailoverGroup, site string) (st v1alpha1.SiteKeyringStatus, at int, known bool) {
	if g.Status.EncryptionAtRest != nil {
		for i, s := range g.Status.EncryptionAtRest.Sites {
			if s.Name == site {
				return s, i, true
			}
		}
	}
	return v1alpha1.SiteKeyringStatus{Name: site}, -1, false
}

// Writable is true while MySQL can change the keyring of a site: then its Secret may lack the newest keys.
func Writable(st v1alpha1.SiteKeyringStatus) bool {
	return st.Work != "" && st.Phase != v1alpha1.KeyringPending && st.Stage != v1alpha1.KeyringSealing
}

// Secret returns the escrow Secret that status names, as the operator makes it, with that content.
func Secret(g *v1alpha1.MysqlFailoverGroup, st v1alpha1.SiteKeyringStatus, content []byte) *corev1.Secret {
	s := Bare(g, st, content)
	s.Labels = map[string]string{
		v1alpha1.LabelName: v1alpha1.NameKeyring, v1alpha1.LabelInstance: g.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
		v1alpha1.LabelGroup: g.Name, v1alpha1.LabelSite: st.Name, v1alpha1.LabelKeyringVersion: strconv.FormatInt(st.KeyringVersion, 10),
	}
	s.Annotations = map[string]string{v1alpha1.AnnotationKeyringDigest: st.KeyringDigest}
	s.Immutable = new(true)
	if g.DeletionTimestamp == nil {
		// What is restored while the group is deleted must stay with the data, and not go with the group.
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(g, v1alpha1.GroupVersion.WithKind(kind))}
	}
	return s
}

// Bare returns the same before its content was checked: without a label, so that it is no keyring in escrow yet and can
// be removed again.
func Bare(g *v1alpha1.MysqlFailoverGroup, st v1alpha1.SiteKeyringStatus, content []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: st.KeyringSecret},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{v1alpha1.KeyringKey: content},
	}
}

// Digest returns the digest of a Secret's content; empty if it has none.
func Digest(s *corev1.Secret) string {
	if len(s.Data[v1alpha1.KeyringKey]) == 0 {
		return ""
	}
	return wire.KeyringDigest(s.Data[v1alpha1.KeyringKey])
}

// InEscrow is true for a Secret that the chart's admission policy keeps from people.
func InEscrow(s *corev1.Secret) bool {
	return s.Labels[v1alpha1.LabelName] == v1alpha1.NameKeyring && s.Immutable != nil && *s.Immutable
}

// MadeBy is true if a field manager is among those that made or changed a Secret.
func MadeBy(s *corev1.Secret, manager string) bool {
	return slices.ContainsFunc(s.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == manager })
}

// Lacks says in words what a Secret lacks of what the operator would have made; empty if nothing.
func Lacks(want, have *corev1.Secret) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(want.Labels)) {
		if have.Labels[key] != want.Labels[key] {
			out = append(out, "label "+key)
		}
	}
	if have.Labels[v1alpha1.LabelAllowDeletion] != "" {
		out = append(out, "protection (label "+v1alpha1.LabelAllowDeletion+")")
	}
	for _, key := range slices.Sorted(maps.Keys(want.Annotations)) {
		if have.Annotations[key] != want.Annotations[key] {
			out = append(out, "annotation "+key)
		}
	}
	if have.Immutable == nil || !*have.Immutable {
		out = append(out, "immutable")
	}
	if !owned(want, have) {
		out = append(out, "owner")
	}
	return out
}

// LacksOnlyOwner is true if nothing is missing but the group as the owner.
func LacksOnlyOwner(want, have *corev1.Secret) bool {
	return !owned(want, have) && len(Lacks(want, have)) == 1
}

// owned is true if the controller is the right one.
func owned(want, have *corev1.Secret) bool {
	owner := metav1.GetControllerOfNoCopy(want)
	if owner == nil {
		return true
	}
	is := metav1.GetControllerOfNoCopy(have)
	return is != nil && is.UID == owner.UID
}

// Completion returns the merge patch that gives a Secret what it lacks; nil if it lacks nothing. It applies only to the
// version that was read: only checked content gets the label. Without owner the operator adds the owner.
func Completion(want, have *corev1.Secret, owner bool) map[string]any {
	lacks := Lacks(want, have)
	if len(lacks) == 0 || !owner && LacksOnlyOwner(want, have) {
		return nil
	}
	labels, annotations := map[string]any{}, map[string]any{}
	for key, value := range want.Labels {
		labels[key] = value
	}
	if have.Labels[v1alpha1.LabelAllowDeletion] != "" {
		labels[v1alpha1.LabelAllowDeletion] = nil // it would not be protected
	}
	for key, value := range want.Annotations {
		annotations[key] = value
	}
	meta := map[string]any{"labels": labels, "annotations": annotations}
	if have.ResourceVersion != "" {
		meta["resourceVersion"], meta["uid"] = have.ResourceVersion, string(have.UID)
	}
	if owner && !owned(want, have) {
		owners := slices.DeleteFunc(slices.Clone(have.OwnerReferences), func(o metav1.OwnerReference) bool {
			return o.Controller != nil && *o.Controller // of a former group, or of none
		})
		meta["ownerReferences"] = append(owners, want.OwnerReferences...)
	}
	return map[string]any{"metadata": meta, "immutable": true}
}

// SealedPatch returns the JSON patch of status that changes the phase of a site from Failed to Sealed, if status still
// has the same keyring at the same place.
func SealedPatch(st v1alpha1.SiteKeyringStatus, at int) []map[string]any {
	field := func(name string) string { return fmt.Sprintf("/status/encryptionAtRest/sites/%d/%s", at, name) }
	return []map[string]any{
		{"op": "test", "path": field("name"), "value": st.Name},
		{"op": "test", "path": field("phase"), "value": string(v1alpha1.KeyringFailed)},
		{"op": "test", "path": field("keyringSecret"), "value": st.KeyringSecret},
		{"op": "test", "path": field("keyringDigest"), "value": st.KeyringDigest},
		{"op": "replace", "path": field("phase"), "value": string(v1alpha1.KeyringSealed)},
	}
}

// Redacted returns a Secret as it may be shown.
func Redacted(s *corev1.Secret, digest string) map[string]any {
	meta := map[string]any{"name": s.Name, "namespace": s.Namespace}
	for key, values := range map[string]map[string]string{"labels": s.Labels, "annotations": s.Annotations} {
		if len(values) > 0 {
			shown := map[string]any{}
			for k, v := range values {
				shown[k] = v
			}
			meta[key] = shown
		}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": string(s.Type),
		"data": map[string]any{v1alpha1.KeyringKey: "[redacted: " + digest + "]"},
	}
}
