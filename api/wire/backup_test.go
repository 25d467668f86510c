// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"
)

// Whoever can run a program in a pod can write its termination message.
func TestParseBackupResult(t *testing.T) {
	good, err := ParseBackupResult(`{"reason":"Succeeded","backup":"monday","gtidExecuted":"a:1-3","seconds":3.5,"later":1}`)
	if err != nil || good.Backup != "monday" || good.GTIDExecuted != "a:1-3" || good.Seconds != 3.5 {
		t.Errorf("%+v, %v", good, err)
	}
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "killed", "no reason": `{"seconds":1}`, "words": `{"reason":"it failed"}`, "small": `{"reason":"failed"}`,
		"a long word": `{"reason":"A` + strings.Repeat("a", 80) + `"}`, "a long name": `{"reason":"Failed","backup":"` + strings.Repeat("a", 64) + `"}`,
		"negative": `{"reason":"Failed","bytes":-1}`, "negative time": `{"reason":"Failed","seconds":-1}`,
		"too much": `{"reason":"Failed","message":"` + strings.Repeat("a", 5000) + `"}`,
	} {
		if r, err := ParseBackupResult(text); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	odd, err := ParseBackupResult(`{"reason":"Failed","message":"a\n\u001b[31m b\u0085c ` + strings.Repeat("x", 2000) + `"}`)
	if err != nil || strings.ContainsAny(odd.Message, "\n\x1b\u0085") || len(odd.Message) > backupMessageMax || !strings.HasPrefix(odd.Message, "a [31m b c x") {
		t.Errorf("%q, %v", odd.Message, err)
	}
}
