// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hit is where a needle was found.
type hit struct{ file, needle string }

// finder looks for many needles at once: one after the other would take an hour for all spellings of all keys.
type finder struct {
	// begins tells of two bytes whether a needle begins with them, by of eight bytes which needles do.
	begins  [1 << 16]bool
	by      map[string][]string
	what    map[string]string
	longest int
}

// headLen is how many bytes of a needle tell it from almost everything. Shorter needles would be found everywhere.
const headLen = 8

// readSize is how much of a file is looked at at once.
const readSize = 1 << 20

func newFinder(t *testing.T, needles map[string]string) *finder {
	t.Helper()
	f := &finder{by: map[string][]string{}, what: needles}
	for needle, what := range needles {
		if len(needle) < headLen {
			t.Fatalf("%s has only %d bytes: that is no needle", what, len(needle))
		}
		f.begins[int(needle[0])<<8|int(needle[1])] = true
		f.by[needle[:headLen]] = append(f.by[needle[:headLen]], needle)
		f.longest = max(f.longest, len(needle))
	}
	return f
}

// in calls found for every needle in a text, and for the same one as often as it is there.
func (f *finder) in(text []byte, found func(needle string)) {
	for at := 0; at+headLen <= len(text); at++ {
		if !f.begins[int(text[at])<<8|int(text[at+1])] {
			continue
		}
		for _, needle := range f.by[string(text[at:at+headLen])] {
			if bytes.HasPrefix(text[at:], []byte(needle)) {
				found(needle)
			}
		}
	}
}

// file reads every byte of a file. What is removed meanwhile holds nothing any more.
func (f *finder) file(path string) ([]hit, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, ignoreGone(err)
	}
	defer func() { _ = file.Close() }()
	var hits []hit
	met := map[string]bool{}
	buf := make([]byte, readSize)
	for kept := 0; ; {
		n, err := io.ReadFull(file, buf[kept:])
		window := buf[:kept+n]
		f.in(window, func(needle string) {
			if !met[needle] {
				met[needle] = true
				hits = append(hits, hit{path, f.what[needle]})
			}
		})
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return hits, ignoreGone(err)
		}
		// A needle may lie across two reads.
		kept = copy(buf, window[len(window)-f.longest:])
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// search reads the files below a directory that take lets through, and names that hold a needle.
func search(t *testing.T, root string, needles map[string]string, take func(string, fs.FileInfo) bool) (hits []hit, names []string) {
	t.Helper()
	files, finder := 0, newFinder(t, needles)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		for needle := range needles {
			if strings.Contains(entry.Name(), needle) {
				names = append(names, path)
			}
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreGone(err)
		}
		if entry.IsDir() {
			if !take(path, info) {
				return fs.SkipDir
			}
			return nil
		}
		if !info.Mode().IsRegular() || !take(path, info) {
			return nil
		}
		files++
		found, err := finder.file(path)
		hits = append(hits, found...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("searched %d files below %s", files, root)
	return hits, names
}

func everything(string, fs.FileInfo) bool { return true }
