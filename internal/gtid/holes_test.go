// SPDX-License-Identifier: Apache-2.0

package gtid

import "testing"

func TestUpTo(t *testing.T) {
	const a, b = "aaaaaaaa-0000-0000-0000-000000000001", "bbbbbbbb-0000-0000-0000-000000000002"
	for text, want := range map[string]string{
		"": "", a + ":1": a + ":1", a + ":5": a + ":1-5", a + ":1-3:7-9": a + ":1-9", a + ":2," + b + ":4:x:3-6": a + ":1-2," + b + ":1-4:x:1-6",
	} {
		set := MustParse(text)
		if got := set.UpTo(); !got.Equal(MustParse(want)) || !got.Contains(set) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
