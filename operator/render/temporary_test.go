// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"path"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// temporary sets where temporary files lie, and the memory limit of every site.
func temporary(medium v1alpha1.TemporaryMedium, size, memory string) option {
	return func(in *render.Input) {
		e := in.Group.Spec.EncryptionAtRest
		e.TemporaryFiles.Medium = medium
		if size != "" {
			e.TemporaryFiles.SizeLimit = resource.MustParse(size)
		}
		if memory != "" {
			for i := range in.Group.Spec.Sites {
				in.Group.Spec.Sites[i].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
			}
		}
	}
}

// volumeAt is the volume in which a container has a path.
func volumeAt(spec corev1.PodSpec, c corev1.Container, file string) *corev1.Volume {
	deepest := corev1.VolumeMount{}
	for _, m := range at(c, file) {
		if len(m.MountPath) > len(deepest.MountPath) {
			deepest = m
		}
	}
	return volume(spec, deepest.Name)
}

// Nothing that mysqld writes in the clear lies on a disk: what it can write to is the data volume, or in memory with a limit.
func TestTemporaryFilesAreInMemory(t *testing.T) {
	for name, k := range states() {
		t.Run(name, func(t *testing.T) {
			in := input(everything, encrypted(k))
			spec, got := pod(in), settings(t, in)
			for _, container := range []string{render.ContainerBootstrap, render.ContainerMySQL} {
				c := containers(spec)[container]
				for _, m := range c.VolumeMounts {
					v := volume(spec, m.Name)
					if m.ReadOnly || v.Name == "data" || k.Sealed && v.Secret != nil {
						continue
					}
					if v.EmptyDir == nil || v.EmptyDir.Medium != corev1.StorageMediumMemory || v.EmptyDir.SizeLimit == nil {
						t.Errorf("%s writes to %s on %+v", container, m.MountPath, v.VolumeSource)
					}
				}
				for _, key := range []string{"tmpdir", "innodb_temp_tablespaces_dir", "general_log_file", "slow_query_log_file"} {
					want := "tmp"
					if strings.HasSuffix(key, "log_file") {
						want = "logs" // which only grow, and may not take the room of transactions
					}
					if v := volumeAt(spec, c, got[key]); v == nil || v.Name != want {
						t.Errorf("%s: %s=%q is on %+v", container, key, got[key], v)
					}
				}
				file, _, _ := strings.Cut(got["innodb_temp_data_file_path"], ":")
				if v := volumeAt(spec, c, path.Clean(file)); v == nil || v.Name != "tmp" {
					t.Errorf("%s: %s is on %+v", container, file, v)
				}
			}
		})
	}
}

// The room in memory is what the user says, or a part of what the site may take; and a transaction gets a part of it.
func TestRoomOfTemporaryFiles(t *testing.T) {
	for name, tt := range map[string]struct{ size, memory, room, transaction string }{
		"nothing is said":         {"", "", "1Gi", "256Mi"},
		"an eighth of the memory": {"", "64Gi", "8Gi", "2Gi"},
		"in whole mebibytes":      {"", "3G", "357Mi", "89Mi"},
		"little memory":           {"", "256Mi", "64Mi", "16Mi"},
		"the user says":           {"4Gi", "2Gi", "4Gi", "1Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(encrypted(sealed), temporary("", tt.size, tt.memory))
			room, transaction := resource.MustParse(tt.room), resource.MustParse(tt.transaction)
			if got := volume(pod(in), "tmp").EmptyDir.SizeLimit; got.Cmp(room) != 0 {
				t.Errorf("room %s, want %s", got, &room)
			}
			if got := settings(t, in)["max_binlog_cache_size"]; got != strconv.FormatInt(transaction.Value(), 10) {
				t.Errorf("a transaction may write %s, want %d", got, transaction.Value())
			}
		})
	}
	if got := settings(t, input(encrypted(sealed), conf("max_binlog_cache_size", "8M")))["max_binlog_cache_size"]; got != "8M" {
		t.Errorf("the user's bound of transactions became %q", got)
	}
}

// On disk everything is as in a group without encryption, and the kubelet evicts nobody for it.
func TestTemporaryFilesOnDisk(t *testing.T) {
	for name, in := range map[string]render.Input{
		"asked for": input(encrypted(sealed), temporary(v1alpha1.TemporaryOnDisk, "", "8Gi")), "not encrypted": input(),
	} {
		t.Run(name, func(t *testing.T) {
			spec, got := pod(in), settings(t, in)
			if v := volume(spec, "tmp"); v == nil || v.EmptyDir == nil || v.EmptyDir.Medium != "" || v.EmptyDir.SizeLimit != nil || volume(spec, "logs") != nil {
				t.Errorf("/tmp is on %+v", v)
			}
			if got["max_binlog_cache_size"] != "" || strings.Contains(got["general_log_file"], "logs") {
				t.Errorf("settings %v", got)
			}
		})
	}
}
