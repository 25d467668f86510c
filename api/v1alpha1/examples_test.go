// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// example is a block of YAML on a page, with the white space before it.
var example = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// around is what an example may take for granted: the profile that other examples name. A real recipient stands for the page's age1...
const around = `
spec:
  backup:
    profiles:
    - name: nightly
      method: Logical
      storage: {s3: {bucket: backups, secretName: mfg-backup-s3}}
`

// Every part of a group's specification that docs/ shows is one that the API takes.
func TestExamplesOfThePagesAreTaken(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	s, seen := newServer(t), 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range example.FindAllStringSubmatch(string(text), -1) {
			block := strings.ReplaceAll("\n"+found[2], "\n"+found[1], "\n")
			if !strings.HasPrefix(block, "\nspec:") {
				continue // another kind of object, or a part of one
			}
			seen++
			group := parse(t, minimal)
			over(group, parse(t, around))
			over(group, parse(t, strings.ReplaceAll(block, "age1...", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p")))
			if errs := s.admit(group, nil); len(errs) > 0 {
				t.Errorf("%s shows what the API refuses: %v\n%s", filepath.Base(page), errs.ToAggregate(), block)
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d examples of a specification in docs/, fewer than there are", seen)
	}
}

// over puts b over a, object by object. A list of b replaces that of a.
func over(a, b map[string]any) {
	for key, value := range b {
		below, isObject := value.(map[string]any)
		if present, ok := a[key].(map[string]any); ok && isObject {
			over(present, below)
			continue
		}
		a[key] = value
	}
}
