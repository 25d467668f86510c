// SPDX-License-Identifier: Apache-2.0

package mysql

import "testing"

func TestUnreadable(t *testing.T) {
	for name, test := range map[string]struct {
		state channelState
		want  bool
	}{
		"cannot be read":         {channelState{applier: "OFF", applierErrno: 13121}, true},
		"cannot be set up":       {channelState{applier: "OFF", applierErrno: 13124}, true},
		"cannot be opened":       {channelState{applier: "OFF", applierErrno: 13117, applierError: "Could not open log file"}, true},
		"the head is gone":       {channelState{applier: "OFF", applierErrno: 1782}, true},
		"another fatal error":    {channelState{applier: "OFF", applierErrno: 13117, applierError: "Fatal error: out of memory"}, false},
		"a duplicate key":        {channelState{applier: "OFF", applierErrno: 1062, applierError: "Could not open log file"}, false},
		"stopped by somebody":    {channelState{applier: "OFF"}, false},
		"an old error that runs": {channelState{applier: "ON", applierErrno: 13121}, false},
	} {
		t.Run("I8: "+name, func(t *testing.T) {
			if got := test.state.unreadable(); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
