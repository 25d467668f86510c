// SPDX-License-Identifier: Apache-2.0

package mfg_test

import (
	"regexp"
	"strings"
	"testing"
)

// forUsers are the pages that people read while they operate a group, and mostWords is how long their sentences are on average at most.
// Long sentences hide the actor and the order of things, and a tired reader takes them for something else.
var forUsers = []string{
	"README.md", "docs/alerts.md", "docs/backups.md", "docs/cache.md", "docs/concepts.md", "docs/dashboard.md", "docs/disaster.md",
	"docs/dns-and-taints.md", "docs/encryption.md", "docs/failover.md", "docs/glossary.md", "docs/guarantees.md", "docs/install.md",
	"docs/keyring-runbook.md", "docs/kubectl-mfg.md", "docs/migrate.md", "docs/monitoring.md", "docs/point-in-time.md", "docs/quickstart.md",
	"docs/security.md", "docs/tls.md", "docs/updates.md", "docs/upgrades.md",
}

const mostWords = 18.0

var (
	item     = regexp.MustCompile(`^([-*]|\d+\.)\s+`)
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	sentence = regexp.MustCompile(`[.!?][*)_"]*(\s+|$)`)
)

// sentences are those of a page's paragraphs and lists, each as its number of words. Code, tables and headings are none; a name in
// code is one word.
func sentences(text string) (lengths []int) {
	var words []string
	end := func() {
		for _, s := range sentence.Split(code.ReplaceAllString(strings.Join(words, " "), "code"), -1) {
			if n := len(strings.Fields(linked.ReplaceAllString(s, "$1"))); n > 0 {
				lengths = append(lengths, n)
			}
		}
		words = nil
	}
	for _, line := range prose(comment.ReplaceAllString(text, "")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") {
			end()
			continue
		}
		if mark := item.FindString(line); mark != "" {
			end()
			line = line[len(mark):]
		}
		words = append(words, line)
	}
	end()
	return lengths
}

func average(lengths []int) float64 {
	sum := 0
	for _, n := range lengths {
		sum += n
	}
	return float64(sum) / float64(max(1, len(lengths)))
}

func TestSentencesAreShort(t *testing.T) {
	all := pages(t)
	for _, page := range forUsers {
		lengths := sentences(all[page])
		if len(lengths) < 5 {
			t.Errorf("%s has %d sentences: it was not read", page, len(lengths))
		}
		if got := average(lengths); got >= mostWords {
			t.Errorf("%s: its sentences have %.1f words on average: keep them under %.0f", page, got, mostWords)
		}
	}
}

// insides are what users need not know: source files, tests, and commits.
var insides = regexp.MustCompile(`\b[\w/-]*\w\.go\b|\bTest[A-Z]\w+|\b(commit|at) [0-9a-f]{7,40}\b`)

func TestUsersNeedNoSources(t *testing.T) {
	all := pages(t)
	for _, page := range forUsers {
		for _, line := range prose(all[page]) {
			if found := insides.FindString(line); found != "" {
				t.Errorf("%s names %q: that is for docs/internals", page, found)
			}
		}
	}
}

// unnamed are words that leave open who acts. Now and then that is right; a page may have one in so many words.
var unnamed = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|by itself|whatever)\b`)

const wordsForOneUnnamed = 250

func TestPagesSayWhoActs(t *testing.T) {
	all := pages(t)
	for _, page := range forUsers {
		text := strings.Join(prose(all[page]), "\n")
		most := len(strings.Fields(text))/wordsForOneUnnamed + 1
		if found := unnamed.FindAllString(text, -1); len(found) > most {
			t.Errorf("%s has %d words that name nobody, and %d at most: %v", page, len(found), most, found)
		}
	}
}

func TestSentencesAreCounted(t *testing.T) {
	text := "# A heading. Of two.\n\nOne two three. Four `five six` [seven eight](x.md).\n\n| a | table. |\n|---|---|\n\n- An item, which\n  goes on.\n- Another (one.) And one!\n\n```sh\nsome code. Here.\n```\n<!-- a\ncomment. -->\n"
	want := []int{3, 4, 5, 2, 2}
	got := sentences(text)
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got, want)
		}
	}
	for text, is := range map[string]bool{"operator/failover/decide.go": true, "`TestBackup`": true, "commit 3fa4b2c": true, "a Test": false, "orders-nightly-20261124": false, "go install": false} {
		if insides.MatchString(text) != is {
			t.Errorf("%q: %t", text, !is)
		}
	}
}
