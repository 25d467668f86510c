// SPDX-License-Identifier: Apache-2.0

package pitr

import "time"

// HoldLeast is how old the latest recoverable point is at least when the sites stop purging binary logs, so that none are purged by age before
// the archive has them.
const HoldLeast = 10 * time.Minute

// logShare is the part of a site's volume that binary logs may take while they are kept for the archive: what is beyond is purged, whatever
// the archive lacks. A full volume stops the group.
const logShare = 4

// Logs are the binary logs of a site.
type Logs struct {
	// Bytes they take, and Volume is how large the site's volume is by the specification.
	Bytes, Volume int64
	// Purges is true while mysqld purges what is older than it keeps.
	Purges bool
}

// HoldAction is what is done about the purging of a site.
type HoldAction string

// The actions.
const (
	// HoldNothing leaves it as it is.
	HoldNothing HoldAction = ""
	// HoldLogs has mysqld purge nothing by age.
	HoldLogs HoldAction = "Hold"
	// ReleaseLogs has it purge again.
	ReleaseLogs HoldAction = "Release"
)

// HoldOf decides about one site. behind is true while the archive is far behind. full is true if logs would be kept, and there is no room.
// Once the room was used up the logs are not kept again before the archive has caught up: released tells that.
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

// segmentsMost is about how many files the archive is to have of a log that is open: one for each interval in which something was written.
const segmentsMost = 2000

// OpenFor is how long a log may be open that is archived in such an interval.
func OpenFor(interval time.Duration) time.Duration {
	return min(24*time.Hour, max(time.Hour, segmentsMost*interval))
}
