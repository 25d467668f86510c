// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// hintsFile keeps by what each guard was missed when the whole table was played last with -learn. It only saves time: a
// seed means something else after a change of the model, and then the hunt goes on.
const hintsFile = "hints.json"

// hint is what was found without one guard.
type hint struct {
	Seeds []int `json:",omitempty"`
}

type hints map[string]hint

func hintsAt(root string) string { return filepath.Join(root, "e2e", "sim", "mutants", hintsFile) }

func readHints(root string) (hints, error) {
	known := hints{}
	body, err := os.ReadFile(hintsAt(root))
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(body, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read hints: %w", err)
	}
	return known, nil
}

// hintsKept is how many seeds are kept for each row, the latest first.
const hintsKept = 3

func (k hints) learn(root string, o outcome) error {
	if o.Seed == 0 || o.Scenario != "" {
		return nil
	}
	name := o.File + " " + o.Guard
	seeds := slices.DeleteFunc(k[name].Seeds, func(seed int) bool { return seed == o.Seed })
	seeds = append([]int{o.Seed}, seeds...)
	k[name] = hint{Seeds: seeds[:min(len(seeds), hintsKept)]}
	body, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return fmt.Errorf("keep hints: %w", err)
	}
	return os.WriteFile(hintsAt(root), append(body, '\n'), 0o600)
}
