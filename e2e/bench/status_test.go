// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestStatusRow(t *testing.T) {
	for name, tc := range map[string]struct {
		row statusRow
		met bool
	}{
		"within":  {statusRow{TargetMillis: 300, SamplesMillis: []float64{100, 300, 200}}, true},
		"missed":  {statusRow{TargetMillis: 300, SamplesMillis: []float64{100, 301, 200}}, false},
		"nothing": {statusRow{TargetMillis: 300}, false},
		"no goal": {statusRow{SamplesMillis: []float64{9000}}, true},
	} {
		tc.row.sum()
		if tc.row.Met != tc.met || tc.row.Calls != len(tc.row.SamplesMillis) {
			t.Errorf("%s: %+v", name, tc.row)
		}
	}
	f := statusFigures{Commands: []statusRow{{Command: "kubectl mfg status", TargetMillis: 300, P99Millis: 412, Calls: 50}}}
	var out bytes.Buffer
	f.print(&out)
	if !strings.Contains(out.String(), "412") || !strings.Contains(out.String(), "MISSED") {
		t.Errorf("%s", out.String())
	}
}

func TestPluginPath(t *testing.T) {
	env := []string{"PATH=/usr/bin", "A=1", "PATH=/lab:/usr/bin"}
	got := pluginPath(env, "/repo/bin")
	if !slices.Equal(got, []string{"PATH=/usr/bin", "A=1", "PATH=/repo/bin:/lab:/usr/bin"}) || env[2] != "PATH=/lab:/usr/bin" {
		t.Errorf("%v, given %v", got, env)
	}
	if got := pluginPath(nil, "/repo/bin"); !slices.Equal(got, []string{"PATH=/repo/bin"}) {
		t.Errorf("%v", got)
	}
}
