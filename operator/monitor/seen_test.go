// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/groupstatus"
)

// shown keeps what was published last.
type shown struct{ last wire.GroupStatus }

func (s *shown) Publish(g wire.GroupStatus) { s.last = g }
func (s *shown) Remove(string, string)      {}

// TestASilentSiteKeepsWhenItWasSeen: how long a site is silent is asked while it is silent, so neither nothing nor now is an answer.
func TestASilentSiteKeepsWhenItWasSeen(t *testing.T) {
	l, board := testLoop(t, &pushes{}, nil), &shown{}
	l.m.Board = board
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var got []string
	for poll, answers := range []bool{false, true, true, false, false, true} {
		s := failover.Snapshot{Sites: []failover.Site{{Name: "west", Sidecar: failover.Sidecar{Answered: answers}}}}
		d := failover.Decision{Views: []failover.View{{Name: "west"}}}
		l.show(groupstatus.Live(&v1alpha1.MysqlFailoverGroup{}, s, d, began.Add(time.Duration(poll)*time.Second)))
		at := board.last.Sites[0].LastSeen
		if at.IsZero() {
			got = append(got, "never")
			continue
		}
		got = append(got, at.Sub(began).String())
	}
	if diff := cmp.Diff([]string{"never", "1s", "2s", "2s", "2s", "5s"}, got); diff != "" {
		t.Errorf("last seen (-want +got):\n%s", diff)
	}
	l.show(wire.GroupStatus{})
	if len(l.said.seen) != 0 {
		t.Errorf("sites that are gone are remembered: %v", l.said.seen)
	}
}
