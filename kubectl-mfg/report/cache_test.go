// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestHowFarACacheIsBehind: Valkey counts bytes and Dragonfly changes, and neither is told as the other.
func TestHowFarACacheIsBehind(t *testing.T) {
	one, many := int64(1), int64(1536)
	for want, tc := range map[string]struct {
		engine v1alpha1.CacheEngine
		offset *int64
	}{
		"1.5Ki":        {v1alpha1.CacheValkey, &many},
		"1536 changes": {v1alpha1.CacheDragonfly, &many},
		"1 change":     {"", &one}, // Dragonfly is the default
		"":             {v1alpha1.CacheValkey, nil},
	} {
		var site CacheSite
		if site.BehindBytes, site.BehindChanges = tc.engine.Behind(tc.offset); site.Behind() != want {
			t.Errorf("%s: %q, want %q", tc.engine, site.Behind(), want)
		}
	}
}
