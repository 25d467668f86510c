// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
)

// The operator writes the names of processes into status. A long one would leave no room for what MySQL's failover writes there.
func TestTheNamesOfProcessesAreShort(t *testing.T) {
	long := strings.Repeat("x", 129)
	s := newServer(t)
	for name, tc := range map[string]struct {
		change string
		path   string
	}{
		"the master":    {"status/cache = {activeRun: " + long + "}", "status.cache.activeRun"},
		"its successor": {"status/cache = {transition: {kind: Home, to: a, toRun: " + long + ", startedAt: \"2026-01-01T00:00:00.000000Z\"}}", "status.cache.transition.toRun"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, minimal)
			edit(tc.change).apply(t, object)
			wantError(t, s, object, nil, tc.path)
		})
	}
}
