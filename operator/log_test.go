// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// The log is what the flags ask for, and a format or level that is none is refused with what to use.
func TestLogFormat(t *testing.T) {
	for format, want := range map[string]string{"json": `"msg":"decision","site":"paris"}`, "text": `msg=decision site=paris`} {
		var out strings.Builder
		log, err := newLog(&out, "info", format)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("decision", "site", "paris")
		log.Debug("effect", "effect", "none")
		if text := strings.TrimSpace(out.String()); !strings.HasSuffix(text, want) || strings.Contains(text, "effect") {
			t.Errorf("%s: %s", format, text)
		}
	}
	for _, tc := range []struct{ level, format, want string }{{"info", "yaml", "json or text"}, {"loud", "json", "debug, info"}} {
		if _, err := newLog(&strings.Builder{}, tc.level, tc.format); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s, %s: %v", tc.level, tc.format, err)
		}
	}
}
