// SPDX-License-Identifier: Apache-2.0

package escape

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"
)

// Whatever text a server sent, YAML shows the same one.
func TestYAMLKeepsEveryCharacter(t *testing.T) {
	for first := rune(0); first <= 0xff00; first += 0x100 {
		if first >= 0xd800 && first < 0xe000 {
			continue // halves of pairs: no characters
		}
		want := "before"
		for r := first; r <= first+0xff; r++ {
			want += string(r)
		}
		want += "after"
		text, err := YAML(map[string]string{"message": want})
		if err != nil {
			t.Fatalf("from U+%04X on: %v", first, err)
		}
		var got map[string]string
		if err := yaml.Unmarshal(text, &got); err != nil || got["message"] != want {
			t.Fatalf("from U+%04X on: got %q of %s: %v", first, got["message"], text, err)
		}
	}
	if text, err := YAMLOfJSON([]byte(`{"count":12345678901234567}`)); err != nil || string(text) != "count: 12345678901234567\n" {
		t.Errorf("got %s: %v", text, err)
	}
	if _, err := YAML(json.RawMessage("{")); err == nil {
		t.Error("half a value became YAML")
	}
}
