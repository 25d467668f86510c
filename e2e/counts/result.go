// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// result is what one part did.
type result struct {
	Passed  int      `json:"passed"`
	Failed  []string `json:"failed,omitempty"`
	Skipped []string `json:"skipped,omitempty"`
}

func path(dir, part string) string { return filepath.Join(dir, part+".json") }

// record leaves a part's counts for total, and fails with it.
func record(dir, part string, r result) error {
	if part == "" {
		return errors.New("record result: the part has no name")
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("record result: %w", err)
	}
	if err := os.WriteFile(path(dir, part), raw, 0o600); err != nil {
		return fmt.Errorf("record result: %w", err)
	}
	if len(r.Failed) > 0 {
		return errFailed
	}
	return nil
}

// total adds up the parts and prints the closing line. A part that left no counts has failed: it was killed, or never
// ran.
func total(out io.Writer, dir string, parts []string) error {
	var sum result
	for _, part := range parts {
		raw, err := os.ReadFile(path(dir, part))
		if errors.Is(err, fs.ErrNotExist) {
			sum.Failed = append(sum.Failed, part+" (did not finish)")
			continue
		}
		var r result
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil {
			return fmt.Errorf("read result of %s: %w", part, err)
		}
		sum.Passed += r.Passed
		for _, name := range r.Failed {
			sum.Failed = append(sum.Failed, part+": "+name)
		}
		for _, name := range r.Skipped {
			sum.Skipped = append(sum.Skipped, part+": "+name)
		}
	}
	for _, name := range sum.Skipped {
		_, _ = fmt.Fprintln(out, "skipped", name)
	}
	for _, name := range sum.Failed {
		_, _ = fmt.Fprintln(out, "failed", name)
	}
	_, _ = fmt.Fprintf(out, "%d passed, %d failed\n", sum.Passed, len(sum.Failed))
	if len(sum.Failed) > 0 {
		return errFailed
	}
	return nil
}
