// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestRecoveredSecretIsTheOperators: what `kubectl mfg recover-keyring` restores, as its own tests recorded it, is what the
// operator makes of the same keyring.
func TestRecoveredSecretIsTheOperators(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "kubectl-mfg", "cmd", "testdata", "recover", "secret.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var recovered corev1.Secret
	if err := yaml.UnmarshalStrict(raw, &recovered); err != nil {
		t.Fatal(err)
	}
	recovered.TypeMeta = metav1.TypeMeta{}
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: testGroup, UID: "group-uid"}}
	push := pushOf(recovered.Data[v1alpha1.KeyringKey])
	push.Site = "frankfurt"
	if diff := cmp.Diff(secretOf(group, push, 3), &recovered); diff != "" {
		t.Errorf("(-the operator's +recovered):\n%s", diff)
	}
}
