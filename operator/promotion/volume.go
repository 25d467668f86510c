// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// VolumeValid is how old a site's last volume probe may be.
const VolumeValid = 30 * time.Second

// StallLasts is how long writes to a site's data volume must hang before that is held against it. One slow write under load is no broken
// volume, and the active site has much longer (spec.failover.stallTimeout).
const StallLasts = 10 * time.Second

// IsVolumeFailing says that a site's sidecar could not write to its data volume just now. Such a site cannot store a new epoch, so it
// never acknowledges one; or it could open, and no commit would end. If every candidate is like that, none takes over: a failover would
// only cost the active site its role, and each site is fit again as soon as its next probe succeeds.
func IsVolumeFailing(s facts.Snapshot, _ facts.Memory, site facts.Site) string {
	p := site.Sidecar.Report.VolumeProbe
	switch t := s.Status.Transition; {
	case t == nil && site.Name == s.Status.ActiveSite, t != nil && (t.From == site.Name || t.Kind == v1alpha1.FailoverBootstrap):
		return "" // to open the active site again, or the first one, moves no role: it is as good as it was
	case !site.Sidecar.Answered || p == nil || p.Outcome != wire.WriteFails || time.Duration(p.AgeMillis)*time.Millisecond > VolumeValid:
		// Nothing is known against it. A sidecar of an older version never probes, and must not cost the group its candidate.
		return ""
	case p.Reason == wire.WriteDiskStalled && time.Duration(p.ForMillis)*time.Millisecond < StallLasts:
		return "" // it may be slow only, and a slow candidate is better than none
	}
	return fmt.Sprintf("cannot write to its data volume (%s), so it could accept no commits", p.Reason)
}

// writeless names a site other than the active one that would be a candidate if it could write to its data volume.
func writeless(s facts.Snapshot, m facts.Memory) (string, bool) {
	for _, c := range Rank(s, m) {
		if c.Site.Name != s.Status.ActiveSite && c.Unfit.By == GuardVolumeFailing {
			return c.Site.Name, true
		}
	}
	return "", false
}

// mendVolume is what to do about a site that cannot write to its data volume: it is fit again once its sidecar can.
func mendVolume(g facts.Group, site string) []facts.Remedy {
	return []facts.Remedy{
		remedy.Advice("make room on the data volume of %s, or repair its storage", site),
		remedy.New("see what its sidecar says", remedy.SidecarLog(g, site)),
	}
}
