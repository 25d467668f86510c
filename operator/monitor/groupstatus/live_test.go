// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/views"
)

// TestHowFullAVolumeIsComesFromTheSidecar: of one that is silent it is not known.
func TestHowFullAVolumeIsComesFromTheSidecar(t *testing.T) {
	use := &wire.VolumeUse{UsedBytes: 1, TotalBytes: 2}
	var s failover.Snapshot
	for _, name := range []string{"a", "b"} {
		site := failover.Site{Name: name}
		site.Sidecar.Answered, site.Sidecar.Report.Volume = name == "a", use
		s.Sites = append(s.Sites, site)
	}
	live := Live(&v1alpha1.MysqlFailoverGroup{}, s, failover.Decision{Views: []views.View{{Name: "a"}, {Name: "b"}}}, time.Now())
	if live.Sites[0].Volume != use || live.Sites[1].Volume != nil {
		t.Errorf("%+v, %+v", live.Sites[0].Volume, live.Sites[1].Volume)
	}
}
