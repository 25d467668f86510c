// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"strings"
)

// AnnotationKeepFenced with -SITE after it, and any value, keeps that site fenced: it is not opened and not promoted, whatever else is
// ordered, until the annotation is taken off. It stays on the group until a person takes it off.
const AnnotationKeepFenced = Domain + "/keep-fenced"

// KeepFencedSite is that annotation for one site.
func KeepFencedSite(site string) string { return AnnotationKeepFenced + "-" + site }

// KeptFenced is true if a person keeps the site fenced. The value does not matter: whatever somebody meant by it, a site that stays shut
// does no harm.
func KeptFenced(group *MysqlFailoverGroup, site string) bool {
	_, is := group.Annotations[KeepFencedSite(site)]
	return is
}

// KeptFencedSince is true of a site that a person keeps fenced by now, and that an older state of the group does not show to be.
func KeptFencedSince(known, live *MysqlFailoverGroup, site string) bool {
	return KeptFenced(live, site) && !KeptFenced(known, site)
}

// SameKeptFenced is true if the annotations of two states of a group keep the same sites fenced.
func SameKeptFenced(a, b map[string]string) bool {
	kept := func(all map[string]string) map[string]bool {
		out := map[string]bool{}
		for key := range all {
			if strings.HasPrefix(key, AnnotationKeepFenced+"-") {
				out[key] = true
			}
		}
		return out
	}
	return maps.Equal(kept(a), kept(b))
}
