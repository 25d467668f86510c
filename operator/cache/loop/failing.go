// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
)

const (
	// failingPatience is how long every look may fail to act before the condition says so. One failure heals at the next look.
	failingPatience = 10 * time.Second
	// failingLength bounds what the condition says of an error, in bytes: an admission webhook may answer with a page.
	failingLength = 300
)

// failing is a row of looks that could not be acted on.
type failing struct {
	// since is when the first of them was; zero while all goes well.
	since time.Time
	// told is what the condition says of it. It stays the same to the end of the row: errors have ports and versions in them.
	told string
}

// withFailure has the decision say that what it leads to fails at every look. Without it, CacheReady says what the engines show: they may
// all be well while the Service leads nowhere, because nobody lets the operator write labels.
func (l *loop) withFailure(d cache.Decision, failed error, now time.Time) cache.Decision {
	if failed == nil {
		l.failing = failing{}
		return d
	}
	if l.failing.since.IsZero() {
		l.failing.since = now
	}
	if now.Sub(l.failing.since) < failingPatience {
		return d
	}
	if l.failing.told == "" {
		text := failed.Error()
		if len(text) > failingLength {
			text = strings.ToValidUTF8(text[:failingLength], "") + "..."
		}
		l.failing.told = "since " + l.failing.since.UTC().Format(time.RFC3339) + " every attempt to act on the cache has failed: " + text
	}
	if !d.Ready && !d.Keep {
		d.Message += "; " + l.failing.told
		return d
	}
	d.Ready, d.Keep, d.Reason, d.Message = false, false, v1alpha1.ReasonCacheActionFails, l.failing.told
	return d
}

// pause is the time to the next look after one that failed. One that fails all the time need not be tried twice a second.
func (f failing) pause() time.Duration {
	if f.told != "" {
		return interval
	}
	return failedPause
}
