// SPDX-License-Identifier: Apache-2.0

package keyrings

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

const key = `{"elements":[{"data":"5EC2E7"}]}`

func group() (*v1alpha1.MysqlFailoverGroup, v1alpha1.SiteKeyringStatus) {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "group-uid"}}
	return g, v1alpha1.SiteKeyringStatus{Name: "paris", KeyringVersion: 3, KeyringSecret: "mysql-orders-paris-keyring-v3", KeyringDigest: wire.KeyringDigest([]byte(key))}
}

// TestCompletion: a Secret is given exactly what it lacks, and only in the version that was looked at.
func TestCompletion(t *testing.T) {
	g, st := group()
	tests := map[string]struct {
		change func(*corev1.Secret)
		lacks  []string
		owner  bool
	}{
		"Nothing":     {func(*corev1.Secret) {}, nil, true},
		"Immutable":   {func(s *corev1.Secret) { s.Immutable = nil }, []string{"immutable"}, true},
		"OneLabel":    {func(s *corev1.Secret) { s.Labels[v1alpha1.LabelSite] = "rome" }, []string{"label " + v1alpha1.LabelSite}, true},
		"Digest":      {func(s *corev1.Secret) { s.Annotations = nil }, []string{"annotation " + v1alpha1.AnnotationKeyringDigest}, true},
		"Owner":       {func(s *corev1.Secret) { s.OwnerReferences = nil }, []string{"owner"}, true},
		"OtherOwner":  {func(s *corev1.Secret) { s.OwnerReferences[0].UID = "other" }, []string{"owner"}, true},
		"NoOwnerLeft": {func(s *corev1.Secret) { s.OwnerReferences = nil }, []string{"owner"}, false},
		"Unprotected": {func(s *corev1.Secret) { s.Labels[v1alpha1.LabelAllowDeletion] = "true" }, []string{"protection (label " + v1alpha1.LabelAllowDeletion + ")"}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want, have := Secret(g, st, nil), Secret(g, st, []byte(key))
			have.ResourceVersion = "7"
			tc.change(have)
			if diff := cmp.Diff(tc.lacks, Lacks(want, have)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			patch := Completion(want, have, tc.owner)
			if due := len(tc.lacks) > 0 && (tc.owner || tc.lacks[0] != "owner"); (patch != nil) != due {
				t.Fatalf("patch %v", patch)
			}
			if patch == nil {
				return
			}
			meta, _ := patch["metadata"].(map[string]any)
			if meta["resourceVersion"] != "7" {
				t.Errorf("it would change another version than the one that was hashed: %v", meta)
			}
			if _, has := patch["data"]; has {
				t.Error("the content is changed")
			}
			if owners, has := meta["ownerReferences"]; has != (tc.lacks[0] == "owner") {
				t.Errorf("owners %v", owners)
			}
		})
	}
}

// TestDeletingGroupOwnsNothing: what is restored while a group is deleted must stay with its data.
func TestDeletingGroupOwnsNothing(t *testing.T) {
	g, st := group()
	g.DeletionTimestamp = &metav1.Time{}
	if s := Secret(g, st, nil); len(s.OwnerReferences) > 0 {
		t.Errorf("owners %v", s.OwnerReferences)
	}
}

// TestRedacted: I11, a shown Secret holds no byte of a key.
func TestRedacted(t *testing.T) {
	g, st := group()
	raw, err := json.Marshal(Redacted(Secret(g, st, []byte(key)), st.KeyringDigest))
	if err != nil || strings.Contains(string(raw), "5EC2E7") || strings.Contains(string(raw), "NUVDMkU3") || !strings.Contains(string(raw), st.KeyringDigest) {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestSealedPatch: it applies only while status still speaks of the same keyring at the same place, as Failed.
func TestSealedPatch(t *testing.T) {
	_, st := group()
	patch := SealedPatch(st, 1)
	tested := map[any]any{}
	for _, op := range patch[:len(patch)-1] {
		if op["op"] != "test" {
			t.Errorf("%v before all is tested", op)
		}
		tested[op["path"]] = op["value"]
	}
	at := func(field string) string { return "/status/encryptionAtRest/sites/1/" + field }
	want := map[any]any{at("name"): "paris", at("phase"): "Failed", at("keyringSecret"): st.KeyringSecret, at("keyringDigest"): st.KeyringDigest}
	if diff := cmp.Diff(want, tested); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := fmt.Sprint(patch[len(patch)-1]); last != fmt.Sprint(map[string]any{"op": "replace", "path": at("phase"), "value": "Sealed"}) {
		t.Errorf("changes %s", last)
	}
}

func TestWritable(t *testing.T) {
	for name, tc := range map[string]struct {
		st   v1alpha1.SiteKeyringStatus
		want bool
	}{
		"Sealed":   {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringSealed}, false},
		"Lost":     {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringFailed}, false},
		"Pending":  {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringPending, Work: v1alpha1.KeyringRotation}, false},
		"Sealing":  {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringEscrowed, Work: v1alpha1.KeyringClone, Stage: v1alpha1.KeyringSealing}, false},
		"Unsealed": {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringUnsealed, Work: v1alpha1.KeyringClone}, true},
		"Late":     {v1alpha1.SiteKeyringStatus{Phase: v1alpha1.KeyringFailed, Work: v1alpha1.KeyringBootstrap}, true},
	} {
		if got := Writable(tc.st); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
