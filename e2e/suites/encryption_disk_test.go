// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// Keys come into being in memory and go from there into Secrets. On this machine's disks they are in etcd alone, which the
// lab does not encrypt and a user has to. A file that was not touched since before the first key cannot hold one.
func noKeysOnDisk(t *testing.T, v *vault) {
	v.learn(t)
	if len(v.needles) == 0 {
		t.Fatal("no key is known: there is nothing to search for")
	}
	etcd := filepath.Join(lab.Lab.Dir(), "etcd")
	disks := map[uint64]bool{deviceOf(t, "/"): true, deviceOf(t, lab.Lab.Dir()): true}
	roots := []string{"/"}
	if deviceOf(t, lab.Lab.Dir()) != deviceOf(t, "/") {
		roots = append(roots, lab.Lab.Dir())
	}
	for _, root := range roots {
		hits, _ := search(t, root, v.needles, func(path string, info fs.FileInfo) bool {
			stat, ok := info.Sys().(*syscall.Stat_t)
			if !ok || !disks[uint64(stat.Dev)] || path == etcd {
				return false
			}
			return info.IsDir() || time.Unix(stat.Ctim.Unix()).After(v.began)
		})
		for _, h := range hits {
			t.Errorf("%s is in %s", h.needle, h.file)
		}
	}
	hits, _ := search(t, etcd, v.needles, everything)
	if len(hits) == 0 {
		t.Error("the keys are not even in etcd: the search proves nothing")
	}
}

func deviceOf(t *testing.T, path string) uint64 {
	t.Helper()
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	return uint64(stat.Dev)
}

// keysWhileUnsealed searches while a site can write its keyring, has made new keys, and nobody else has them: had they been on
// a disk, they would have gone with the pod before anybody searched a sealed group.
func keysWhileUnsealed(t *testing.T, v *vault) {
	before := v.sealed(t, comeBack)
	site := replicas(before)[0]
	lift := v.withhold(t)
	annotate(t, v.Group, v1alpha1.AnnotationRotateKeyring, site)
	v.tokenOf(t, site)
	pod, live := v.heldUnsealed(t, site)
	fresh := keysIn(t, live)
	for id := range keysIn(t, secretData(t, v, keyringOf(before, site).KeyringSecret)) {
		delete(fresh, id)
	}
	if len(fresh) < 2 {
		t.Fatalf("%d new keys in the live keyring of %s: both master keys were rotated", len(fresh), site)
	}
	held := map[string]string{}
	for id, key := range fresh {
		held[key] = id
		v.key(t, key, id+", in no escrow")
	}
	etcd := filepath.Join(lab.Lab.Dir(), "etcd")
	if hits, _ := search(t, etcd, held, everything); len(hits) > 0 {
		t.Errorf("%d new keys are in etcd: the site is not held", len(hits))
	}
	noKeysOnDisk(t, v)
	for _, s := range stage.Sites {
		keyringInMemory(t, v, s)
	}

	// All of that was about this pod and these keys.
	if now, digest := v.heldUnsealed(t, site); now.UID != pod.UID || wire.KeyringDigest(digest) != wire.KeyringDigest(live) {
		t.Error("the pod or its keyring changed while it was searched for")
	}
	lift()
	if outcome := answered(t, v.Group, v1alpha1.AnnotationRotateKeyring, site, resealing); outcome.Outcome != v1alpha1.RequestDone {
		t.Fatalf("the rotation was answered: %+v", outcome)
	}
	after := v.sealed(t, resealing)
	checkSealed(t, v, after, site)
	stored := keysIn(t, secretData(t, v, keyringOf(after, site).KeyringSecret))
	for id, key := range fresh {
		if stored[id] != key {
			t.Errorf("%s was in the live keyring, and is not in escrow", id)
		}
	}
}

// heldUnsealed waits until the keys of a site are rotated, and returns its pod and the keyring in it, which is in no escrow.
func (v *vault) heldUnsealed(t *testing.T, site string) (*corev1.Pod, []byte) {
	t.Helper()
	if _, err := v.Await(t.Context(), resealing, "the keys of "+site+" to be rotated", func(group *v1alpha1.MysqlFailoverGroup) error {
		k := keyringOf(group, site)
		// Held for long it is reported as failed; it is as unsealed as before.
		if !k.Rotated || k.Phase != v1alpha1.KeyringUnsealed && k.Phase != v1alpha1.KeyringFailed {
			return fmt.Errorf("the keyring is %q, rotated %t (%s)", k.Phase, k.Rotated, k.Message)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	pod, err := v.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	if !memoryBacked(pod.Spec) {
		t.Fatalf("the pod %s cannot write its keyring", pod.Name)
	}
	out, err := v.Exec(t.Context(), site, "cat", keyringPath)
	if err != nil {
		t.Fatal(err)
	}
	return pod, []byte(out)
}

// tmpfsMagic is what statfs(2) says of a file system in memory.
const tmpfsMagic = 0x01021994

// keyringInMemory asks the kernel where the volumes of a site's pod are that hold its keyring and its token, and finds the keys
// there: what is looked at are those directories.
func keyringInMemory(t *testing.T, v *vault, site string) {
	t.Helper()
	pod, err := v.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	live, err := v.Exec(t.Context(), site, "cat", keyringPath)
	if err != nil {
		t.Fatal(err)
	}
	volumes := podVolumes(pod)
	keys, found := map[string]string{}, map[string]bool{}
	for id, key := range keysIn(t, []byte(live)) {
		keys[key] = id
	}
	if len(keys) == 0 {
		t.Fatalf("%s has no key", site)
	}
	disks := 0
	for _, volume := range pod.Spec.Volumes {
		switch {
		case volume.Secret != nil:
			dir := filepath.Join(volumes, "kubernetes.io~secret", volume.Name)
			inMemory(t, site, dir)
			if volume.Name == keyringVolume {
				findKeys(t, dir, keys, found)
			}
		case volume.EmptyDir != nil && volume.EmptyDir.Medium == corev1.StorageMediumMemory:
			dir := filepath.Join(volumes, "kubernetes.io~empty-dir", volume.Name)
			inMemory(t, site, dir)
			findKeys(t, dir, keys, found)
		case volume.EmptyDir != nil && fileSystem(t, filepath.Join(volumes, "kubernetes.io~empty-dir", volume.Name)) != tmpfsMagic:
			disks++
		}
	}
	if len(found) != len(keys) {
		t.Errorf("%s: %d of %d keys are in the volumes of its keyring: the wrong directories were looked at", site, len(found), len(keys))
	}
	if disks == 0 {
		t.Errorf("%s: no volume of the pod is on a disk: that its keyring is in memory proves nothing", site)
	}
}

func inMemory(t *testing.T, site, dir string) {
	t.Helper()
	if kind := fileSystem(t, dir); kind != tmpfsMagic {
		t.Errorf("%s: %s is on a file system %#x, which is not in memory", site, dir, kind)
	}
}

func fileSystem(t *testing.T, dir string) int64 {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatalf("ask for the file system of %s: %v", dir, err)
	}
	return st.Type
}

func findKeys(t *testing.T, dir string, keys map[string]string, found map[string]bool) {
	t.Helper()
	hits, _ := search(t, dir, keys, everything)
	for _, h := range hits {
		found[h.needle] = true
	}
}
