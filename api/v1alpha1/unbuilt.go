// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "slices"

// Proven says which features this version stands for. What is not proven yet is built and may be tried, and the condition UnbuiltFeatures
// names it.
type Proven struct {
	// PITR is for spec.backup.pitr and spec.initFromBackup.pointInTime: they are proven together.
	PITR bool
}

// proven is where a feature is declared proven, once its runs on the lab are in docs. Tests ask with a value of their own.
var proven = Proven{PITR: true}

// IsProven is what this version stands for.
func IsProven() Proven { return proven }

// UnbuiltFeatures returns the paths of the fields that are set in spec although this version does not stand for them yet, sorted. The
// controller raises the condition UnbuiltFeatures from it.
func UnbuiltFeatures(spec *MysqlFailoverGroupSpec) []string { return proven.Unbuilt(spec) }

// MustNotRun returns those of the UnbuiltFeatures without which the group must get no pods at all: running it anyway
// would let people take other data for what they asked for.
func MustNotRun(spec *MysqlFailoverGroupSpec) []string { return proven.MustNotRun(spec) }

// Unbuilt is UnbuiltFeatures of a version that stands for these features.
func (p Proven) Unbuilt(spec *MysqlFailoverGroupSpec) []string {
	set := map[string]bool{
		"spec.backup.pitr": spec.Backup != nil && spec.Backup.PITR != nil && spec.Backup.PITR.Enabled && !p.PITR,
		pathPointInTime:    spec.InitFromBackup != nil && spec.InitFromBackup.PointInTime != nil && !p.PITR,
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

const pathPointInTime = "spec.initFromBackup.pointInTime"

// MustNotRun is MustNotRun of a version that stands for these features.
func (p Proven) MustNotRun(spec *MysqlFailoverGroupSpec) []string {
	return slices.DeleteFunc(p.Unbuilt(spec), func(path string) bool { return path != pathPointInTime })
}
