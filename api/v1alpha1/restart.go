// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "time"

// AnnotationRestartedAt on a group has the operator replace the pods of MySQL of all its sites, in the order of an update; with a time as in
// RFC 3339, which the pods carry then. It stays on the group.
const AnnotationRestartedAt = Domain + "/restarted-at"

// RestartedAtSite is the annotation that does the same for one site.
func RestartedAtSite(site string) string { return AnnotationRestartedAt + "-" + site }

// RestartedAt is what the group orders for a site by both: the later time; empty if none was ordered. What is no time orders nothing.
func RestartedAt(group *MysqlFailoverGroup, site string) string {
	var latest time.Time
	for _, key := range []string{AnnotationRestartedAt, RestartedAtSite(site)} {
		if at, err := time.Parse(time.RFC3339, group.Annotations[key]); err == nil && at.After(latest) {
			latest = at
		}
	}
	if latest.IsZero() {
		return ""
	}
	return latest.UTC().Format(time.RFC3339)
}

// RestartOf is what the pod of a site is to carry, if the one in place was made with carried. An order that was taken off, or spoilt, since then
// replaces no pod; one that names an earlier time does only after a slip into the future.
func RestartOf(group *MysqlFailoverGroup, site, carried string, now time.Time) string {
	ordered := RestartedAt(group, site)
	was, err := time.Parse(time.RFC3339, carried)
	if err != nil {
		return ordered
	}
	if at, err := time.Parse(time.RFC3339, ordered); err != nil || was.After(at) && !was.After(now) {
		return carried
	}
	return ordered
}
