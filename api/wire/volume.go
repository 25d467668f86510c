// SPDX-License-Identifier: Apache-2.0

package wire

// VolumeUse is how full a data volume is, as df counts.
type VolumeUse struct {
	UsedBytes  int64 `json:"usedBytes"`
	TotalBytes int64 `json:"totalBytes"`
}

// Percent is how much of it is used, rounded up as df does; 100 for one that has no room at all. It is none below 0, whatever a site reports.
func (v VolumeUse) Percent() int64 {
	if v.TotalBytes <= 0 {
		return 100
	}
	return int64(max(0, min(100, (float64(v.UsedBytes)*100+float64(v.TotalBytes)-1)/float64(v.TotalBytes))))
}
