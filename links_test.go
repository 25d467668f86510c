// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.*?)\s*$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	linked  = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
)

// pages are all Markdown files of the repository, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "out" || d.Name() == "testdata"):
			return fs.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		raw, err := os.ReadFile(path)
		all[path] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// prose is a page without its code blocks.
func prose(text string) []string {
	var out []string
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

// anchors are the names by which a page's headings are linked, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, line := range prose(text) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		words := linked.ReplaceAllString(m[1], "$1")
		slug := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(words), ""), " ", "-")
		name := slug
		for n := 1; all[name]; n++ {
			name = fmt.Sprintf("%s-%d", slug, n)
		}
		all[name] = true
	}
	return all
}

// broken says what is wrong with a link of a page, or nothing.
func broken(all map[string]string, page, to string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return ""
	}
	path, anchor, _ := strings.Cut(to, "#")
	target := page
	if path != "" {
		target = filepath.Join(filepath.Dir(page), path)
		if _, err := os.Stat(target); err != nil {
			return "is not there"
		}
	}
	if anchor != "" && filepath.Ext(target) == ".md" && !anchors(all[target])[anchor] {
		return "has no such heading"
	}
	return ""
}

// TestLinksLeadSomewhere: a reader at three in the morning does not search for the page that was meant.
func TestLinksLeadSomewhere(t *testing.T) {
	all, links := pages(t), 0
	for page, text := range all {
		for _, line := range prose(text) {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				links++
				if why := broken(all, page, m[1]); why != "" {
					t.Errorf("%s: the link to %s %s", page, m[1], why)
				}
			}
		}
	}
	if len(all) < 50 || links < 300 {
		t.Errorf("only %d links in %d pages were found: the search is broken", links, len(all))
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	all := map[string]string{"docs/a.md": "# A page\n## What, `it` is\n```\n# no heading\n```\n## What, `it` is\n", "README.md": ""}
	for to, want := range map[string]bool{
		"https://example.org/x": false, "#a-page": false, "#what-it-is": false, "#what-it-is-1": false, "#what-it-is-2": true, "#no-heading": true,
		"../README.md": false, "../README.md#none": true, "missing.md": true, "../charts": false,
	} {
		if got := broken(all, "docs/a.md", to) != ""; got != want {
			t.Errorf("%s is broken: %t, want %t", to, got, want)
		}
	}
}

// TestEveryPageIsInTheIndex: what the index does not name is not found. The directory of decisions is named as a whole.
func TestEveryPageIsInTheIndex(t *testing.T) {
	all := pages(t)
	index := map[string]bool{}
	for _, m := range link.FindAllStringSubmatch(all["docs/README.md"], -1) {
		path, _, _ := strings.Cut(m[1], "#")
		index[filepath.Join("docs", path)] = true
	}
	for page := range all {
		if strings.HasPrefix(page, "docs/") && !strings.HasPrefix(page, "docs/decisions/") && page != "docs/README.md" && !index[page] {
			t.Errorf("docs/README.md does not name %s", page)
		}
	}
}

// TestREADMEIsShort: what it is, for whom, and how to begin. All else has a page.
func TestREADMEIsShort(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(raw))); n > 900 {
		t.Errorf("README.md has %d words, and 900 at most", n)
	}
	if !slices.ContainsFunc(strings.Split(string(raw), "\n"), func(l string) bool { return strings.HasPrefix(l, "![") }) {
		t.Error("README.md has no picture")
	}
}
