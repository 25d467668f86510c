// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// What the lab has otherwise than the page: the names of images, which no registry has, the name of the MySQL image, and its zones.
var labInstead = []string{
	"REGISTRY=localhost", "VERSION=dev", "NEW=dev",
	`BASH_FUNC_helm%%=() { local lab=(); [ "$1" != install ] || lab=(--set image.repository=localhost/mfg-operator,image.pullPolicy=Never` +
		` --set sidecarImage.repository=localhost/mfg-sidecar,sidecarImage.pullPolicy=Never); command helm "$@" "${lab[@]}"; }`,
	`BASH_FUNC_kubectl%%=() { if [ "$1" = apply ]; then sed -e s/zone-1/` + stage.Sites[0] + `/ -e s/zone-2/` + stage.Sites[1] + `/` +
		` -e 's|^spec:|&\n  image: ` + stage.MySQLImage + `\n  imagePullPolicy: Never|' | command kubectl "$@"; else command kubectl "$@"; fi; }`,
}

// docs/install.md is followed from a cluster without the operator to one without it. Another group, of which the page knows
// nothing, lives through that.
func TestInstallPage(t *testing.T) {
	ctx := t.Context()
	_, before := whole(t)
	g := &stage.Group{Stage: lab, Namespace: "shop", Name: "orders"}
	t.Cleanup(func() {
		if t.Failed() {
			g.Diagnose(context.Background(), t.Name())
		}
		// With the lab's own operator again, which also ends what the page has left.
		if err := lab.InstallOperator(context.Background()); err != nil {
			t.Errorf("install the lab's operator again: %v", err)
		}
		if err := g.Delete(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if _, err := lab.Lab.Helm(ctx, "uninstall", stage.OperatorRelease, "--namespace", stage.OperatorNamespace, "--wait", "--timeout", "2m"); err != nil {
		t.Fatal(err)
	}

	documented(t, "install.md", "install the operator", labInstead...)
	documented(t, "install.md", "make a group", labInstead...)
	if password := documented(t, "install.md", "password of root", labInstead...); len(password) < 16 {
		t.Errorf("the password of root is %d characters long", len(password))
	}
	volumes := uids(t, g, &corev1.PersistentVolumeClaimList{})

	documented(t, "install.md", "upgrade", labInstead...)
	if err := lab.AwaitOperator(ctx, 2*time.Minute); err != nil {
		t.Fatalf("the upgraded operator does not run: were the values of the installation kept? %v", err)
	}
	if _, err := g.AwaitReady(ctx, comeBack); err != nil {
		t.Fatal(err)
	}

	if out := documented(t, "install.md", "uninstall", labInstead...); !strings.Contains(out, crd) {
		t.Errorf("helm uninstall does not say that the CustomResourceDefinition stays: %q", out)
	}
	if _, err := g.Get(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("the group is still there: %v", err)
	}
	if got := uids(t, g, &corev1.PersistentVolumeClaimList{}); len(volumes) == 0 || !maps.Equal(got, volumes) {
		t.Errorf("volumes before %v, after %v: the page says that they stay", volumes, got)
	}
	other := before.DeepCopy()
	if err := lab.Kube.Get(ctx, client.ObjectKeyFromObject(before), other); err != nil {
		t.Fatal(err)
	}
	if other.Status.Epoch != before.Status.Epoch || other.Status.ActiveSite != before.Status.ActiveSite {
		t.Errorf("the other group went from %s under epoch %d to %s under epoch %d",
			before.Status.ActiveSite, before.Status.Epoch, other.Status.ActiveSite, other.Status.Epoch)
	}
}
