// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestWordsOfTheOperator: the words on which programs act are those that the operator says.
func TestWordsOfTheOperator(t *testing.T) {
	for said, read := range map[string]string{
		string(failover.VerdictNothing): wire.VerdictNothing, string(failover.VerdictBlocked): wire.VerdictBlocked,
		string(failover.VerdictAlert): wire.VerdictAlert, string(failover.TopologyTransition): wire.TopologyTransition,
	} {
		if said != read {
			t.Errorf("the operator says %s, and programs wait for %s", said, read)
		}
	}
}

// A pause whose time is over, and which a silent operator has not ended, is told as that. The operator's time counts for more than this machine's.
func TestAPauseWhoseTimeIsOver(t *testing.T) {
	end := time.Date(2026, 11, 3, 12, 30, 0, 0, time.UTC)
	g := &v1alpha1.MysqlFailoverGroup{}
	g.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: end.Format(time.RFC3339)}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue}}
	for name, tc := range map[string]struct {
		view LiveView
		over bool
	}{
		"before its end":                {LiveView{Now: end.Add(-time.Second)}, false},
		"at its end":                    {LiveView{Now: end}, true},
		"without a clock":               {LiveView{}, false},
		"an operator whose clock is so": {LiveView{Now: end.Add(time.Hour), Status: wire.StatusList{IssuedAt: end.Add(-time.Second)}}, false},
	} {
		notes := Build(g, tc.view).Notes
		if len(notes) != 1 || notes[0].Kind != NotePause || strings.Contains(notes[0].Text, "the time of the pause ended at 2026-11-03T12:30:00Z") != tc.over ||
			strings.HasPrefix(notes[0].Text, "paused until") == tc.over {
			t.Errorf("%s: %+v", name, notes)
		}
	}
}

// TestNotesAreText: what a note is about is for the screen; programs get the words.
func TestNotesAreText(t *testing.T) {
	raw, err := json.Marshal([]Note{{Kind: NotePause, Text: "paused"}})
	if err != nil || string(raw) != `["paused"]` {
		t.Errorf("%s, %v", raw, err)
	}
	var back []Note
	if err := json.Unmarshal(raw, &back); err != nil || len(back) != 1 || back[0].Text != "paused" {
		t.Errorf("%+v, %v", back, err)
	}
}
