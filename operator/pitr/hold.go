// SPDX-License-Identifier: Apache-2.0

package pitr

import "time"

// HoldLeast is the least age of the latest recoverable point at which the sites stop purging binary logs, so that none are purged by age
// before the archive has them.
const HoldLeast = 10 * time.Minute

// logShare is the part of a site's volume that binary logs may take while they are kept for the archive: the rest is purged, even if the
// archive lacks it. A full volume stops the group.
const logShare = 4

// Logs are the binary logs of a site.
type Logs struct {
	// Bytes is how much they take, and Volume the size of the site's volume by the specification.
	Bytes, Volume int64
	// Purges is true while mysqld purges what is older than it keeps.
	Purges bool
}

// HoldAction is what to do about the purging of a site.
type HoldAction string

// The actions.
const (
	// HoldNothing leaves it as it is.
	HoldNothing HoldAction = ""
	// HoldLogs makes mysqld purge nothing by age.
	HoldLogs HoldAction = "Hold"
	// ReleaseLogs makes it purge again.
	ReleaseLogs HoldAction = "Release"
)

// HoldOf decides about one site. behind is true while the archive is far behind. full is true if logs should be kept and there is no room.
// Once the room was used up (released), logs are not kept again until the archive has caught up.
func HoldOf(l Logs, behind, released bool) (action HoldAction, full bool) {
	full = behind && (released || l.Volume > 0 && l.Bytes > l.Volume/logShare)
	keep := behind && !full
	switch {
	case keep && l.Purges:
		return HoldLogs, false
	case !keep && !l.Purges:
		return ReleaseLogs, full
	}
	return HoldNothing, full
}

// IsBehind is true if the archive is so far behind that logs could be purged before it has them.
func IsBehind(lag, interval time.Duration) bool { return lag > max(HoldLeast, 10*interval) }

// segmentsMost is about how many files of an open log the archive should have: one for each interval with a write.
const segmentsMost = 2000

// OpenFor returns how long a log may stay open that is archived at this interval.
func OpenFor(interval time.Duration) time.Duration {
	return min(24*time.Hour, max(time.Hour, segmentsMost*interval))
}
