// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// cacheEntry matches what the lab puts into the cache and nothing else: the directory may be
// shared with others.
var cacheEntry = regexp.MustCompile(`^(kube|etcd|coredns|tools|seed|mysql|valkey)-[0-9a-f]{16}(\.tar)?(\.part)?$`)

// used tells whether something is in the cache, and notes that it is wanted.
func used(path string) bool {
	now := time.Now()
	return os.Chtimes(path, now, now) == nil
}

// pruneCache removes what no lab has used since the given time.
func pruneCache(cache string, since time.Time) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return fmt.Errorf("read cache: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !cacheEntry.MatchString(e.Name()) || info.ModTime().After(since) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(cache, e.Name())); err != nil {
			return fmt.Errorf("prune cache: %w", err)
		}
	}
	return nil
}
