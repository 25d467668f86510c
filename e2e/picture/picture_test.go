// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The picture in the repository is the one that the frames make, and a viewer can read it.
func TestPictureIsThatOfTheFrames(t *testing.T) {
	made := filepath.Join(t.TempDir(), "failover.svg")
	if err := run("../../docs/dashboard-failover.md", made); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/failover.svg")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("docs/failover.svg is not made from docs/dashboard-failover.md: run `make docs-picture`")
	}
	if n := strings.Count(string(want), "still\""); n != 1 {
		t.Errorf("%d chapters are shown where nothing moves, want 1", n)
	}
	for d := xml.NewDecoder(strings.NewReader(string(want))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("no viewer can read the picture: %v", err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for name, page := range map[string]string{
		"no frames":     "# A page\n",
		"one frame":     "\n## One\n\ntext\n\n```text\n" + strings.Repeat("x\n", rows) + "\n```\n",
		"a short frame": "\n## One\n\ntext\n\n```text\nx\n```\n",
	} {
		if all, err := read(page); err == nil {
			t.Errorf("%s: %d chapters and no error", name, len(all))
		}
	}
}

func TestTextIsEscapedAndHasItsPlace(t *testing.T) {
	want := `<text x="12.0" y="72" textLength="78.0">┌─&gt; * east</text>
<text class="good" x="105.6" y="72" textLength="54.6">Primary</text>
<text x="175.8" y="72" textLength="23.4">&lt;&amp;&gt;</text>
`
	if got := text(1, "┌─> * east  Primary  <&>   "); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
