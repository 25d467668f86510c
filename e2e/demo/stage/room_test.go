// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestRoom(t *testing.T) {
	volumes := func(site string, free, bound int) (all []corev1.PersistentVolume) {
		for i := range free + bound {
			v := corev1.PersistentVolume{}
			v.Labels = map[string]string{corev1.LabelHostname: site}
			v.Status.Phase = corev1.VolumeAvailable
			if i >= free {
				v.Status.Phase = corev1.VolumeBound
			}
			all = append(all, v)
		}
		return all
	}
	var enough []corev1.PersistentVolume
	for _, site := range Sites {
		enough = append(enough, volumes(site, 10, 2)...)
	}
	short := append(volumes(Sites[0], 9, 7), enough[12:]...)
	need := 10*len(Sites)*SiteMiB + spareMiB
	for name, tt := range map[string]struct {
		groups, free int
		volumes      []corev1.PersistentVolume
		fits         bool
	}{
		"just fits":                      {10, need, enough, true},
		"a MiB too little":               {10, need - 1, enough, false},
		"one group more than volumes":    {11, 10 * need, enough, false},
		"one node has a volume too few":  {10, need, short, false},
		"and fits with one group fewer":  {9, need, short, true},
		"a lab without volumes has none": {1, need, nil, false},
	} {
		if err := room(tt.groups, tt.free, tt.volumes); (err == nil) != tt.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAvailableMemoryIsRead(t *testing.T) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	if mib, err := availableMiB(string(raw)); err != nil || mib < 16 {
		t.Errorf("%d MiB, %v", mib, err)
	}
	if _, err := availableMiB("MemFree: 1 kB\n"); err == nil {
		t.Error("what the kernel does not tell is no number")
	}
}
