// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// whenLost are the commands of the page for a keyring that is lost; the others are on that of encryption.
var whenLost = []string{"check the keyrings", "recover with the plugin", "recover", "reclone", "roll back"}

// runbook runs commands of the documentation as a person would after having set NS, GROUP and SITE, and returns what they print.
func runbook(t *testing.T, v *vault, name, site string, more ...string) string {
	t.Helper()
	page := "encryption.md"
	if slices.Contains(whenLost, name) {
		page = "keyring-runbook.md"
	}
	return documented(t, page, name, append([]string{"NS=" + v.Namespace, "GROUP=" + v.Name, "SITE=" + site}, more...)...)
}

// withPlugin has a runbook find the plugin as kubectl finds it on a person's machine.
func withPlugin() string {
	return "PATH=" + filepath.Join(lab.Repo, "bin") + ":" + lab.Lab.Tools() + ":" + os.Getenv("PATH")
}

// documentedCommands runs those that no other story runs. The example of a new group is only shown to the API server: the
// lab has its own image and places.
func documentedCommands(t *testing.T, v *vault) {
	runbook(t, v, "install", "")
	if err := lab.AwaitOperator(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	if out := runbook(t, v, "look", ""); strings.Count(out, "\tSealed\t"+"mysql-"+v.Name) != len(stage.Sites) {
		t.Errorf("the documented commands show %q", out)
	}
	runbook(t, v, "enable", "", "GROUP=example", `BASH_FUNC_kubectl%%=() { command kubectl "$@" --dry-run=server; }`)
}

// loseSecret deletes the escrow Secret of a site, as somebody does who says that he means it.
func loseSecret(t *testing.T, v *vault, site string) v1alpha1.SiteKeyringStatus {
	t.Helper()
	k := keyringOf(v.sealed(t, comeBack), site)
	deleteEscrow(t, v, k.KeyringSecret)
	return k
}

func deleteEscrow(t *testing.T, v *vault, name string) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := v.Kube.Get(t.Context(), client.ObjectKey{Namespace: v.Namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	before := secret.DeepCopy()
	secret.Labels[v1alpha1.LabelAllowDeletion] = "true"
	if err := v.Kube.Patch(t.Context(), secret, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := v.Kube.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// failed waits until status and an event tell that a Secret is missing.
func (v *vault) failed(t *testing.T, site string) {
	t.Helper()
	if _, err := v.Await(t.Context(), 2*time.Minute, "the loss to be told", func(group *v1alpha1.MysqlFailoverGroup) error {
		if k := keyringOf(group, site); k.Phase != v1alpha1.KeyringFailed || group.Status.EncryptionAtRest.Sealed {
			return fmt.Errorf("the keyring of %s is %q", site, k.Phase)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	checkEvent(t, v.Group, "KeyringEscrowMissing", site)
}

// Nobody but the operator deletes or changes a keyring in escrow by accident.
func escrowProtected(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	for _, site := range stage.Sites {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: v.Namespace, Name: keyringOf(group, site).KeyringSecret}
		if err := v.Kube.Get(t.Context(), key, secret); err != nil {
			t.Fatal(err)
		}
		if err := v.Kube.Delete(t.Context(), secret.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("delete %s: %v, want it forbidden", secret.Name, err)
		}
		before := secret.DeepCopy()
		delete(secret.Labels, v1alpha1.LabelName)
		if err := v.Kube.Patch(t.Context(), secret, client.MergeFrom(before), client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("take the label off %s: %v, want it forbidden", secret.Name, err)
		}
	}
}

// The data of that one site is lost: it is cloned again with a fresh keyring, by a confirmed order.
func escrowLostPodGone(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	site := replicas(group)[0]
	lost := loseSecret(t, v, site)
	if err := stage.DeletePod(t.Context(), v.Group, site); err != nil {
		t.Fatal(err)
	}
	v.failed(t, site)
	reclonedByOrder(t, v, site, lost)
}

// reclonedByOrder gives a person's word that the data of a site may go: it is cloned again, with a keyring of its own.
func reclonedByOrder(t *testing.T, v *vault, site string, lost v1alpha1.SiteKeyringStatus) {
	t.Helper()
	runbook(t, v, "reclone", site)
	if outcome := answered(t, v.Group, v1alpha1.AnnotationRecloneSite, site+":confirm", 2*resealing); outcome.Outcome != v1alpha1.RequestDone {
		t.Fatalf("the order was answered: %+v", outcome)
	}
	group := v.sealed(t, resealing)
	if now := keyringOf(group, site); now.KeyringVersion <= lost.KeyringVersion || now.KeyringDigest == lost.KeyringDigest {
		t.Errorf("version %d after, %d before: it must be a keyring of its own", now.KeyringVersion, lost.KeyringVersion)
	}
	checkSealed(t, v, group, site)
	if got := query(t, v.Group, site, "SELECT COUNT(*) > 0 FROM app.writes"); got != "1" {
		t.Errorf("the rows are not there: %s", got)
	}
}

// However a group is deleted, with Retain its keyrings stay beside its volumes, and a group of the same name takes both.
func keyringsAreKept(t *testing.T, v *vault) {
	for _, cascade := range []string{"background", "foreground", "orphan"} {
		t.Run(cascade, func(t *testing.T) {
			before := v.sealed(t, comeBack)
			rows := replicated(t, v, before, cascade)
			secrets := uids(t, v.Group, &corev1.SecretList{})
			volumes := uids(t, v.Group, &corev1.PersistentVolumeClaimList{})
			if out, err := lab.Lab.Kubectl(t.Context(), "-n", v.Namespace, "delete", "mfg", v.Name, "--cascade="+cascade, "--timeout=3m"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			// The garbage collector takes a while to find what has no owner left.
			sleep(t, 15*time.Second)
			for _, site := range stage.Sites {
				name := keyringOf(before, site).KeyringSecret
				if left := uids(t, v.Group, &corev1.SecretList{}); left[name] == "" || left[name] != secrets[name] {
					t.Fatalf("%s did not stay", name)
				}
				name = v1alpha1.DataVolumeName(v.Name, site)
				if left := uids(t, v.Group, &corev1.PersistentVolumeClaimList{}); left[name] == "" || left[name] != volumes[name] {
					t.Fatalf("volume %s did not stay", name)
				}
			}
			if _, err := lab.Lab.Helm(t.Context(), "uninstall", v.Name, "--namespace", v.Namespace, "--ignore-not-found"); err != nil {
				t.Fatal(err)
			}
			if _, err := lab.NewGroup(t.Context(), v.Namespace, v.Name, stage.EncryptedSpec(v.Name)); err != nil {
				t.Fatal(err)
			}
			after := v.sealed(t, bringUp)
			for _, site := range stage.Sites {
				was, is := keyringOf(before, site), keyringOf(after, site)
				if is.KeyringSecret != was.KeyringSecret || is.KeyringDigest != was.KeyringDigest {
					t.Errorf("%s: sealed with %s, before with %s", site, is.KeyringSecret, was.KeyringSecret)
				}
				if got := query(t, v.Group, site, "SELECT COUNT(*) FROM app.writes"); got != rows {
					t.Errorf("%s: %s rows, before %s", site, got, rows)
				}
				checkSealed(t, v, after, site)
			}
		})
	}
}

// replicated writes a row that every site has when it returns, and says how many there are.
func replicated(t *testing.T, v *vault, group *v1alpha1.MysqlFailoverGroup, writer string) string {
	t.Helper()
	active := group.Status.ActiveSite
	query(t, v.Group, active, "INSERT INTO app.writes (writer, worker, seq, site) VALUES ('kept-"+writer+"', 0, 1, 'x')")
	rows := query(t, v.Group, active, "SELECT COUNT(*) FROM app.writes")
	for _, site := range replicas(group) {
		if err := stage.Poll(t.Context(), time.Minute, "the row on "+site, func(ctx context.Context) error {
			got, err := v.RootSQL(ctx, site, "SELECT COUNT(*) FROM app.writes")
			if err == nil && strings.TrimSpace(got) != rows {
				err = fmt.Errorf("%s rows, want %s", strings.TrimSpace(got), rows)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}
