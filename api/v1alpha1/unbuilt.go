// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "slices"

// UnbuiltFeatures returns the paths of the fields that are set in spec although the operator does not act upon them
// yet, sorted. The controller raises the condition UnbuiltFeatures from it.
func UnbuiltFeatures(spec *MysqlFailoverGroupSpec) []string {
	set := map[string]bool{
		"spec.backup.pitr":                spec.Backup != nil && spec.Backup.PITR != nil && spec.Backup.PITR.Enabled,
		"spec.initFromBackup.pointInTime": spec.InitFromBackup != nil && spec.InitFromBackup.PointInTime != nil,
	}
	var paths []string
	for path, isSet := range set {
		if isSet {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// MustNotRun returns those of the UnbuiltFeatures without which the group must get no pods at all: running it anyway
// would let people take other data for what they asked for.
func MustNotRun(spec *MysqlFailoverGroupSpec) []string {
	return slices.DeleteFunc(UnbuiltFeatures(spec), func(path string) bool {
		return path != "spec.initFromBackup.pointInTime"
	})
}
