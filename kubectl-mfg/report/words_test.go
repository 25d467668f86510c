// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"testing"

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
