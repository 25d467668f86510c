// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// IsKeptFenced says that a person keeps the site fenced (I29). No order overrides it: the same person ends it with one command, and until
// then people need not think of every way in which a site may come to be opened.
func IsKeptFenced(s facts.Snapshot, _ facts.Memory, site facts.Site) string {
	if !site.KeptFenced {
		return ""
	}
	return "is kept fenced by a person; to end that: " + remedy.EndFence(s.Group, site.Name)
}

// endable names a site other than the active one that would take over if no person kept it fenced.
func endable(s facts.Snapshot, m facts.Memory) (string, bool) {
	for _, c := range Rank(s, m) {
		site := c.Site
		if site.Name == s.Status.ActiveSite || c.Unfit.By != GuardKeptFenced {
			continue
		}
		if site.KeptFenced = false; UnfitOf(s, m, site).By == "" {
			return site.Name, true
		}
	}
	return "", false
}
