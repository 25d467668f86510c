// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const glossary = "docs/glossary.md"

// code is a name in a sentence: those of MySQL are as they are.
var code = regexp.MustCompile("`[^`]*`")

// banned are the words that the glossary has another word for, with that word.
func banned(text string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "| "), cells[0] == "Word":
			continue
		case len(cells) == 3:
			for _, word := range strings.Split(cells[2], ", ") {
				out[word] = cells[0]
			}
		case len(cells) == 2: // words that are never used: the word comes first
			for _, word := range strings.Split(cells[0], ", ") {
				out[word] = cells[1]
			}
		}
	}
	delete(out, "")
	return out
}

// judge finds banned words in a text.
type judge struct {
	words   *regexp.Regexp
	instead map[string]string
}

func newJudge(words map[string]string) judge {
	var all []string
	for word := range words {
		all = append(all, regexp.QuoteMeta(word))
	}
	slices.Sort(all)
	// Letters, digits, dots, slashes, dashes and underscores around it make it a name of something: a file, a flag, a metric.
	return judge{regexp.MustCompile(`(?i)(?:^|[^\w./-])(` + strings.Join(all, "|") + `)(?:[^\w/-]|$)`), words}
}

func (j judge) find(text string) (all []string) {
	for _, m := range j.words.FindAllStringSubmatch(text, -1) {
		all = append(all, fmt.Sprintf("%q: the glossary has %q", m[1], j.instead[strings.ToLower(m[1])]))
	}
	return all
}

// spoken are the texts that people read: pages, alerts, messages of policies, help and what commands print, and the dashboard.
// CHANGELOG.md and decisions are history, and internals quote what the tests call things.
func spoken(path string) bool {
	switch {
	case path == glossary, strings.HasPrefix(path, "docs/decisions/"), strings.HasPrefix(path, "docs/internals/"):
		return false
	case strings.HasPrefix(path, "docs/"), strings.HasPrefix(path, "charts/") && !strings.Contains(path, "testdata"):
		return slices.Contains([]string{".md", ".yaml", ".txt"}, filepath.Ext(path))
	case path == "README.md", path == "SECURITY.md":
		return true
	case strings.Contains(path, "testdata"):
		return strings.HasPrefix(path, "kubectl-mfg/") || strings.HasPrefix(path, "tui/")
	default:
		return false
	}
}

// says are the packages whose text in quotes reaches people: help, screens, conditions, events and messages.
var says = []string{"kubectl-mfg/", "tui/", "operator/"}

func TestOneWordForEachIdea(t *testing.T) {
	raw, err := os.ReadFile(glossary)
	if err != nil {
		t.Fatal(err)
	}
	words := banned(string(raw))
	if len(words) < 20 {
		t.Fatalf("the glossary bans only %d words: its tables were not read", len(words))
	}
	j, texts := newJudge(words), 0
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if filepath.Ext(path) == ".go" {
			if slices.ContainsFunc(says, func(p string) bool { return strings.HasPrefix(path, p) }) && !strings.HasSuffix(path, "_test.go") {
				texts++
				return quoted(t, j, path)
			}
			return nil
		}
		if !spoken(path) {
			return nil
		}
		text, err := os.ReadFile(path)
		texts++
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "#") && filepath.Ext(path) == ".yaml" {
				continue // a comment in a chart is for the people who change it
			}
			for _, found := range j.find(code.ReplaceAllString(line, "")) {
				t.Errorf("%s:%d: %s", path, i+1, found)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts < 300 {
		t.Errorf("only %d texts were read: the search is broken", texts)
	}
}

// quoted looks at the strings of a program.
func quoted(t *testing.T, j judge, path string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, is := n.(*ast.BasicLit)
		if is && s.Kind == token.STRING && strings.Contains(s.Value, " ") { // one word is a name, often one of MySQL or the cache
			for _, found := range j.find(strings.Trim(s.Value, "`\"")) {
				t.Errorf("%s: %s", files.Position(s.Pos()), found)
			}
		}
		return true
	})
	return nil
}

func TestJudgeFindsWords(t *testing.T) {
	j := newJudge(banned("| Word | Meaning | Not |\n|---|---|---|\n| replica | A copy. | slave, secondary |\n| fence | To stop. | |\n\n| Word | Instead |\n|---|---|\n| anew | again |\n"))
	for text, want := range map[string]int{
		"The slave lags.": 1, "Slave, or secondary": 2, "begin anew": 1, "anew": 1, "a replica": 0, "fence": 0, "renewed": 0,
		"docs/slave.md": 0, "--secondary-host": 0, "slave_rows": 0, "a (slave)": 1,
	} {
		if got := j.find(text); len(got) != want {
			t.Errorf("%q: %v, want %d", text, got, want)
		}
	}
}
