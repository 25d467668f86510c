// SPDX-License-Identifier: Apache-2.0

package escape

import (
	"encoding/json"
	"fmt"
	"regexp"

	"sigs.k8s.io/yaml"
)

// unreadable are the characters that JSON may hold as they are, and that the YAML library refuses to read: all outside of c-printable
// (YAML 1.2, 5.1) that encoding/json does not escape. U+0085 is printable, but ends a line.
var unreadable = regexp.MustCompile("[\x7f\u0080-\u009f\ufffe\uffff]")

// YAML returns a value as YAML, whatever its texts hold.
func YAML(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("marshal: %w", err)
	}
	return YAMLOfJSON(raw)
}

// YAMLOfJSON returns JSON as YAML, whatever its texts hold.
func YAMLOfJSON(raw []byte) ([]byte, error) {
	// Outside of its strings JSON has none of them.
	readable := unreadable.ReplaceAllFunc(raw, func(found []byte) []byte { return fmt.Appendf(nil, `\u%04x`, []rune(string(found))[0]) })
	text, err := yaml.JSONToYAML(readable)
	if err != nil {
		return nil, fmt.Errorf("make YAML of JSON: %w", err)
	}
	return text, nil
}
