// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// A group apart lies on volumes that are file systems of their own, small enough to be filled.
const (
	apartName  = "chaos-small"
	smallClass = "chaos-small"
	// smallSize holds a server and what is written in a minute.
	smallSize = "900M"
)

// apartSites are two candidates: more takes time and shows no more.
var apartSites = stage.Sites[:2]

// smallVolumes is where the images of the small file systems lie, inside the lab, so that `lab down` finds them.
func smallVolumes(st *stage.Stage) string { return filepath.Join(st.Lab.Dir(), "chaos") }

// apart makes a fresh group on small volumes.
func (r *runner) apart(ctx context.Context) (*stage.Group, error) {
	old := &stage.Group{Stage: r.Stage, Namespace: apartName, Name: apartName}
	if _, err := old.Get(ctx); err == nil {
		if err := r.removeApart(ctx, old); err != nil {
			return nil, err
		}
	}
	if err := makeSmallVolumes(ctx, r.Stage); err != nil {
		return nil, err
	}
	spec := sharedSpec()
	spec.TLS = &v1alpha1.TLSSpec{SecretName: apartName + "-tls"}
	spec.Sites = spec.Sites[:len(apartSites)]
	for i := range spec.Sites {
		spec.Sites[i].Storage.StorageClassName = ptr.To(smallClass)
	}
	stage.SetLease(&spec, lease)
	g, err := r.NewGroup(ctx, apartName, apartName, spec)
	if err != nil {
		return nil, err
	}
	_, err = g.AwaitReady(ctx, bringUp)
	return g, err
}

func (r *runner) removeApart(ctx context.Context, g *stage.Group) error {
	ctx, cancel := context.WithTimeout(ctx, healLimit)
	defer cancel()
	return errors.Join(g.Delete(ctx), removeSmallVolumes(ctx, r.Stage))
}

func smallVolume(site string) string { return apartName + "-" + site }

// makeSmallVolumes makes a file system for each site and offers it to the cluster.
func makeSmallVolumes(ctx context.Context, st *stage.Stage) error {
	manifests := fmt.Sprintf(`apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %s}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Retain
`, smallClass)
	for _, site := range apartSites {
		path, err := makeFileSystem(ctx, filepath.Join(smallVolumes(st), site))
		if err != nil {
			return err
		}
		manifests += fmt.Sprintf(`---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s}
spec:
  capacity: {storage: 20Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: %s
  local: {path: %s}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions:
        - {key: kubernetes.io/hostname, operator: In, values: [%s]}
`, smallVolume(site), smallClass, path, site)
	}
	return st.Lab.Apply(ctx, manifests)
}

// makeFileSystem makes an ext4 file system in a file and mounts it.
func makeFileSystem(ctx context.Context, base string) (string, error) {
	image, path := base+imageExtension, base
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", fmt.Errorf("make small volume: %w", err)
	}
	for _, argv := range [][]string{
		{"truncate", "--size=" + smallSize, image},
		{"mkfs.ext4", "-q", "-F", "-m", "0", image},
		{"mount", "-o", "loop", image, path},
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("make small volume: %s: %w: %s", strings.Join(argv, " "), err, out)
		}
	}
	if err := os.RemoveAll(filepath.Join(path, "lost+found")); err != nil {
		return "", fmt.Errorf("make small volume: %w", err)
	}
	// Any pod's user must be able to write.
	if err := os.Chmod(path, 0o777); err != nil {
		return "", fmt.Errorf("make small volume: %w", err)
	}
	return path, nil
}

// removeSmallVolumes takes away all that makeSmallVolumes made, as far as it is there.
func removeSmallVolumes(ctx context.Context, st *stage.Stage) error {
	if _, err := os.Stat(smallVolumes(st)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	g := &stage.Group{Stage: st, Namespace: apartName, Name: apartName}
	var errs []error
	if _, err := g.Get(ctx); err == nil {
		errs = append(errs, g.Delete(ctx))
	}
	for _, site := range apartSites {
		_, err := st.Lab.Kubectl(ctx, "delete", "persistentvolume", smallVolume(site), "--ignore-not-found", "--wait=false")
		errs = append(errs, err)
	}
	_, err := st.Lab.Kubectl(ctx, "delete", "storageclass", smallClass, "--ignore-not-found")
	errs = append(errs, err, unmountAll(ctx, st))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.RemoveAll(smallVolumes(st)); err != nil {
		return fmt.Errorf("remove small volumes: %w", err)
	}
	return nil
}

// unmountAll unmounts the small file systems. A pod that is just going may hold one for a moment.
func unmountAll(ctx context.Context, st *stage.Stage) error {
	for _, site := range apartSites {
		path := filepath.Join(smallVolumes(st), site)
		if err := stage.Poll(ctx, time.Minute, path+" to be unmounted", func(ctx context.Context) error {
			mounts, err := os.ReadFile("/proc/self/mounts")
			if err != nil || !strings.Contains(string(mounts), " "+path+" ") {
				return err
			}
			if out, err := exec.CommandContext(ctx, "umount", path).CombinedOutput(); err != nil {
				return fmt.Errorf("unmount %s: %w: %s", path, err, out)
			}
			return errors.New("mounted once more")
		}); err != nil {
			return err
		}
	}
	return nil
}
