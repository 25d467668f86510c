// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	vaultNamespace = "suite-vault"
	vaultName      = "vault"
	keyringPath    = "/run/mysql-keyring/keyring"
	// resealing is how long one site may take until it is sealed again after a rotation.
	resealing = 6 * time.Minute
)

// vaultStory is one of data-at-rest encryption.
type vaultStory struct {
	name string
	play func(*testing.T, *vault)
	// short stories are part of every run; `make test-encryption` plays all.
	short bool
}

// encryptionStories are played in this order on one group: what one leaves behind the next one finds.
var encryptionStories = []vaultStory{
	{"a new group is sealed", newGroupIsSealed, true},
	{"the documented commands", documentedCommands, true},
	{"no marker on any data volume", noMarkerOnVolumes, true},
	{"keys are nowhere on a disk", noKeysOnDisk, false},
	{"keys are nowhere on a disk while a site is unsealed", keysWhileUnsealed, false},
	{"rotation of all sites under load", rotationUnderLoad, false},
	{"kubectl mfg rotates all sites under load", pluginRotatesAll, false},
	{"rotation is refused", rotationRefused, true},
	{"escrow endpoint under abuse", escrowAbused, false},
	{"as many keyrings are retained as specified", versionsRetained, false},
	{"emergency failover between sealed sites", sealedEmergency, false},
	{"planned failover between sealed sites", sealedPlanned, false},
	{"escrow Secret cannot be deleted by accident", escrowProtected, true},
	{"escrow Secret lost while the pod runs", escrowLostPodRuns, false},
	{"escrow Secret lost and the pod gone", escrowLostPodGone, false},
	{"escrow Secret lost before the pod is unsealed", seedLostBeforeItsPod, false},
	{"escrow Secret lost while the pod is unsealed", seedLostWithItsPod, false},
	{"keyring recovered by the plugin, lost at every step", recoverInterrupted, false},
	{"keyring recovered by the plugin, with a wrong digest", recoverWrongDigest, false},
	{"keyring recovered by the plugin, without rights", recoverRights, false},
	{"keyring recovered by the plugin, the pod gone", recoverPodGone, false},
	{"keyring recovered by the plugin, the active site's pod gone", recoverActiveGone, false},
	{"rolled back to an older keyring", rolledBack, false},
	{"the whole namespace is lost", namespaceLost, false},
	{"a deleted group is made again", keyringsAreKept, false},
	{"each marker is found where a flag is off", markerWhereFlagIsOff, false},
	{"a marker is found in the undo log alone, where its flag is off", markerInUndoLogAlone, false},
	{"keys are nowhere on a disk, after all of that", noKeysOnDisk, false},
	{"no key and no token in any log", nothingInLogs, true},
}

// TestEncryptionAtRest plays the stories of data-at-rest encryption.
func TestEncryptionAtRest(t *testing.T) {
	t.Parallel()
	v := &vault{needles: map[string]string{}, began: time.Now()}
	t.Cleanup(func() {
		if v.Group == nil {
			return
		}
		if t.Failed() {
			v.Diagnose(context.Background(), "encryption")
		}
		if err := v.Delete(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	keepLogs(t)
	// They cannot be skipped: in the lab part a skipped test is a failed one, and it has to be, or nobody would miss them.
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Logf("%d of %d stories were left out, only `make test-encryption` has time for them: %s",
				len(left), len(encryptionStories), strings.Join(left, "; "))
		}
	}()
	for _, s := range encryptionStories {
		if !s.short && !allStories {
			left = append(left, s.name)
			continue
		}
		if t.Run(s.name, func(t *testing.T) { s.play(t, v) }) {
			continue
		}
		if v.Group == nil {
			t.Fatal("without the group there is nothing to go on with")
		}
		// The next story must not fail for what this one has left.
		v.Diagnose(t.Context(), "encryption-"+strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(s.name))
		if err := lab.Restore(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// vault is the encrypted group, and what must be found nowhere.
type vault struct {
	*stage.Group
	// began is before the first key was made.
	began time.Time
	// needles are keys and tokens in every spelling, with what they are.
	needles map[string]string
}

// learn remembers the keys and tokens that there are now. They must never be printed.
func (v *vault) learn(t *testing.T) {
	t.Helper()
	var secrets corev1.SecretList
	if err := v.Kube.List(t.Context(), &secrets, client.InNamespace(v.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		if token := string(s.Data["token"]); token != "" {
			v.token(token, "the token in "+s.Name)
		}
		if len(s.Data["keyring"]) == 0 {
			continue
		}
		for id, key := range keysIn(t, s.Data["keyring"]) {
			v.key(t, key, id+" of "+s.Name)
		}
	}
}

// keysIn are the keys of a keyring as it holds them, by name.
func keysIn(t *testing.T, content []byte) map[string]string {
	t.Helper()
	var file struct {
		Elements []struct {
			ID   string `json:"data_id"`
			Data string `json:"data"`
		} `json:"elements"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal("an escrow Secret holds no JSON") // not the error: it may repeat parts of it
	}
	keys := map[string]string{}
	for _, e := range file.Elements {
		if len(e.Data) >= 64 { // what is shorter is no key but the number of the newest one
			keys[e.ID] = e.Data
		}
	}
	return keys
}

func keyringOf(group *v1alpha1.MysqlFailoverGroup, site string) v1alpha1.SiteKeyringStatus {
	if group.Status.EncryptionAtRest != nil {
		for _, s := range group.Status.EncryptionAtRest.Sites {
			if s.Name == site {
				return s
			}
		}
	}
	return v1alpha1.SiteKeyringStatus{}
}

// notSealed says which site's keyring is not sealed.
func notSealed(group *v1alpha1.MysqlFailoverGroup) error {
	for _, site := range group.Spec.Sites {
		if k := keyringOf(group, site.Name); k.Phase != v1alpha1.KeyringSealed {
			return fmt.Errorf("the keyring of %s is %q (%s)", site.Name, k.Phase, k.Message)
		}
	}
	if !group.Status.EncryptionAtRest.Sealed {
		return errors.New("all sites are sealed, and the group is not")
	}
	return nil
}

// sealed waits until the group is whole and sealed.
func (v *vault) sealed(t *testing.T, limit time.Duration) *v1alpha1.MysqlFailoverGroup {
	t.Helper()
	group, err := v.Await(t.Context(), limit, "group "+v.Name+" to be ready and sealed", func(group *v1alpha1.MysqlFailoverGroup) error {
		for _, order := range []string{v1alpha1.AnnotationRotateKeyring, v1alpha1.AnnotationRecloneSite} {
			if group.Annotations[order] != "" {
				return fmt.Errorf("the order %s=%s is not carried out yet", order, group.Annotations[order])
			}
		}
		missing := notSealed(group)
		if missing != nil {
			v.learn(t) // a token is gone by the time its site is sealed
		}
		return errors.Join(missing, stage.NotUpdated(group))
	})
	if err != nil {
		t.Fatal(err)
	}
	v.learn(t)
	return group
}

func newGroupIsSealed(t *testing.T, v *vault) {
	began := time.Now()
	spec := stage.EncryptedSpec(vaultName)
	// Under load a replica whose pod was just replaced may take its time on a busy machine, and that is not the subject.
	spec.Failover.PlannedLagTimeout = metav1.Duration{Duration: 10 * time.Minute}
	g, err := lab.NewGroup(t.Context(), vaultNamespace, vaultName, spec)
	if err != nil {
		t.Fatal(err)
	}
	v.Group = g
	v.sealed(t, bringUp)
	// `make bench-keyring` judges the time.
	t.Logf("three sites are sealed %s after the group was created", time.Since(began).Round(time.Second))
	group, err := g.Await(t.Context(), time.Minute, "status to say that all is covered", notCovered)
	if err != nil {
		t.Error(err)
	}
	for _, site := range stage.Sites {
		checkSealed(t, v, group, site)
	}
	// MySQL checks for read-only before it looks for a key: the active site is where the keyring has to refuse.
	for site, want := range map[string]string{group.Status.ActiveSite: "ERROR 3185", replicas(group)[0]: "ERROR 1290"} {
		if _, err := g.RootSQL(t.Context(), site, "ALTER INSTANCE ROTATE INNODB MASTER KEY"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rotation on %s: %v, want %s", site, err, want)
		}
		if _, err := g.RootSQL(t.Context(), site, "ALTER INSTANCE ROTATE BINLOG MASTER KEY"); err == nil || !strings.Contains(err.Error(), "ERROR 3807") {
			t.Errorf("rotation of the binary log's key on %s: %v, want ERROR 3807", site, err)
		}
	}
	plugin(t, "doctor", v.Name, "-n", v.Namespace).says(t, "the sites believe the endpoint mfg-auxiliary.mfg-system.svc")
}

// notCovered says which site is not encrypted in full.
func notCovered(group *v1alpha1.MysqlFailoverGroup) error {
	want := v1alpha1.CoverageStatus{
		KeyringComponent: "component_keyring_file", KeyringReadOnly: true, SystemTablespaceEncrypted: true,
		RedoLogEncrypted: true, UndoLogEncrypted: true, BinlogEncrypted: true,
	}
	for _, site := range group.Spec.Sites {
		if got := keyringOf(group, site.Name).Coverage; got != want {
			return fmt.Errorf("%s: coverage %+v", site.Name, got)
		}
	}
	if c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionEncryptionReady); c == nil || c.Status != metav1.ConditionTrue {
		return fmt.Errorf("condition %+v", c)
	}
	return nil
}

// checkSealed looks at all that a sealed site has to be.
func checkSealed(t *testing.T, v *vault, group *v1alpha1.MysqlFailoverGroup, site string) {
	t.Helper()
	k := keyringOf(group, site)
	secret := &corev1.Secret{}
	if err := v.Kube.Get(t.Context(), client.ObjectKey{Namespace: v.Namespace, Name: k.KeyringSecret}, secret); err != nil {
		t.Fatal(err)
	}
	owner := metav1.GetControllerOf(secret)
	if secret.Immutable == nil || !*secret.Immutable || owner == nil || owner.UID != group.UID {
		t.Errorf("%s: immutable %v, owner %+v", secret.Name, secret.Immutable, owner)
	}
	if secret.Name != v1alpha1.KeyringSecret(v.Name, site, k.KeyringVersion) || wire.KeyringDigest(secret.Data["keyring"]) != k.KeyringDigest {
		t.Errorf("%s is not version %d with the digest %s", secret.Name, k.KeyringVersion, k.KeyringDigest)
	}
	if live := v.liveDigest(t, site); live != k.KeyringDigest {
		t.Errorf("%s: the pod has %s, status says %s", site, live, k.KeyringDigest)
	}
	if out, err := v.Exec(t.Context(), site, "touch", keyringPath+".x"); err == nil {
		t.Errorf("%s: the keyring's directory can be written: %s", site, out)
	}
	token := client.ObjectKey{Namespace: v.Namespace, Name: v1alpha1.KeyringTokenSecret(v.Name, site)}
	if err := v.Kube.Get(t.Context(), token, &corev1.Secret{}); err == nil {
		t.Errorf("%s is sealed and still has a token", site)
	}
	pod, err := v.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	for _, volume := range pod.Spec.Volumes {
		if slices.Contains([]string{"run", "tmp", "logs"}, volume.Name) {
			continue // the socket, the watchdog's deadline and temporary files; no keyring path may lie in them (admission)
		}
		if volume.Secret != nil && volume.Secret.SecretName == token.Name || volume.EmptyDir != nil && volume.EmptyDir.Medium != "" {
			t.Errorf("%s: volume %s in a sealed pod (I18)", site, volume.Name)
		}
	}
}

// liveDigest is that of the keyring as the pod has it.
func (v *vault) liveDigest(t *testing.T, site string) string {
	t.Helper()
	out, err := v.Exec(t.Context(), site, "cat", keyringPath)
	if err != nil {
		t.Fatal(err)
	}
	return wire.KeyringDigest([]byte(out))
}
