// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// What the lab has otherwise than the page: the names of images, which no registry has, the name of the MySQL image, and its zones.
var labInstead = []string{
	"REGISTRY=localhost", "VERSION=dev", "NEW=dev",
	`BASH_FUNC_helm%%=() { local lab=(); case "$*" in install*/mysql-failover-group*) lab=(--set image=` + stage.MySQLImage + `,imagePullPolicy=Never);; install*) lab=(--set image.repository=localhost/mfg-operator,image.pullPolicy=Never` +
		` --set sidecarImage.repository=localhost/mfg-sidecar,sidecarImage.pullPolicy=Never` +
		` --set backupImage.repository=localhost/mfg-backup,backupImage.pullPolicy=Never);; esac; command helm "$@" "${lab[@]}"; }`,
	`BASH_FUNC_kubectl%%=() { if [ "$1" = apply ]; then sed -e s/zone-1/` + stage.Sites[0] + `/ -e s/zone-2/` + stage.Sites[1] + `/` +
		` -e 's|^spec:|&\n  image: ` + stage.MySQLImage + `\n  imagePullPolicy: Never|' | command kubectl "$@"; ` +
		// A person answers the plugin's question.
		`else case "$1 $2 $3" in "mfg certificates renew" | "mfg upgrade pause" | "mfg upgrade resume") command kubectl "$@" --yes;; *) command kubectl "$@";; esac; fi; }`,
}

// The page makes its group in the namespace of README's demo, and both must be able to live on one lab: the test follows the
// page in a namespace of its own.
const pageNamespace, ownNamespace = "shop", "suite-page"

var pageWord = regexp.MustCompile(`\b` + pageNamespace + `\b`)

// onPage runs commands of docs/install.md in the test's own namespace. A page that names another one than the test knows would be
// followed into somebody's group, so it fails instead.
func onPage(t *testing.T, name string, inNamespace bool) string {
	t.Helper()
	commands := commandsOf(t, "install.md", name)
	if pageWord.MatchString(commands) != inNamespace {
		t.Fatalf("the commands %q of docs/install.md name the namespace %s: %t, want %t:\n%s", name, pageNamespace, !inNamespace, inNamespace, commands)
	}
	return onLab(t, name, pageWord.ReplaceAllString(commands, ownNamespace))
}

func onLab(t *testing.T, name, commands string, env ...string) string {
	t.Helper()
	return runDocumented(t, name, commands, slices.Concat(labInstead, []string{withPlugin()}, env)...)
}

// clearOwn removes what a run that was ended in the middle has left in the test's own namespace, and nothing else.
func clearOwn(t *testing.T, g *stage.Group) {
	t.Helper()
	err := lab.Kube.Get(t.Context(), client.ObjectKey{Name: g.Namespace}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	lab.Say("removing namespace %s, which an earlier run of this test left behind", g.Namespace)
	if err := g.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// docs/install.md is followed from a cluster without the operator to one without it. Another group, of which the page knows
// nothing, lives through that, and through what comes before: the operator's chart comes and goes, see comesAndGoes.
func TestInstallPage(t *testing.T) {
	ctx := t.Context()
	bystander, before := whole(t)
	g := &stage.Group{Stage: lab, Namespace: ownNamespace, Name: "orders"}
	clearOwn(t, g) // while there is an operator
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
	w := witnesses(t, bystander)
	at := load.Now()
	comesAndGoes(t, bystander, w)

	onPage(t, "install the operator", false)
	if _, err := bystander.AwaitReady(ctx, comeBack); err != nil {
		t.Fatal(err)
	}
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
	onPage(t, "make a group", true)
	if password := onPage(t, "password of root", true); len(password) < 16 {
		t.Errorf("the password of root is %d characters long", len(password))
	}
	applicationsPassword(t, g)
	migration(t, g)
	fullVolume(t, g)
	volumes := uids(t, g, &corev1.PersistentVolumeClaimList{})
	everydayCommands(t, g)

	onPage(t, "upgrade", false)
	if err := lab.AwaitOperator(ctx, 2*time.Minute); err != nil {
		t.Fatalf("the upgraded operator does not run: were the values of the installation kept? %v", err)
	}
	if _, err := g.AwaitReady(ctx, comeBack); err != nil {
		t.Fatal(err)
	}

	if out := onPage(t, "uninstall", true); !strings.Contains(out, crd) {
		t.Errorf("helm uninstall does not say that the CustomResourceDefinition stays: %q", out)
	}
	if _, err := g.Get(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("the group is still there: %v", err)
	}
	if got := uids(t, g, &corev1.PersistentVolumeClaimList{}); len(volumes) == 0 || !maps.Equal(got, volumes) {
		t.Errorf("volumes before %v, after %v: the page says that they stay", volumes, got)
	}
	asBefore(t, before)
}

// asBefore fails the test if a group has another active site, or another epoch, than it had.
func asBefore(t *testing.T, before *v1alpha1.MysqlFailoverGroup) {
	t.Helper()
	now := before.DeepCopy()
	if err := lab.Kube.Get(t.Context(), client.ObjectKeyFromObject(before), now); err != nil {
		t.Fatal(err)
	}
	if now.Status.Epoch != before.Status.Epoch || now.Status.ActiveSite != before.Status.ActiveSite {
		t.Errorf("the other group went from %s under epoch %d to %s under epoch %d",
			before.Status.ActiveSite, before.Status.Epoch, now.Status.ActiveSite, now.Status.Epoch)
	}
}
