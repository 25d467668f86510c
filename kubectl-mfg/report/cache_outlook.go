// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// SessionsFate is what happens to the sessions in the cache.
type SessionsFate string

// What can happen to sessions.
const (
	// SessionsStay: the master stays where it is.
	SessionsStay SessionsFate = "Stay"
	// SessionsKept: the cache of the site that takes over receives every change. If the old master is gone, what it had not sent yet is lost.
	SessionsKept SessionsFate = "Kept"
	// SessionsLost: that cache does not have them.
	SessionsLost SessionsFate = "Lost"
	// SessionsNone: there is no master that could have any.
	SessionsNone SessionsFate = "None"
)

// CacheOutlook is what a failover of MySQL would do to the sessions.
type CacheOutlook struct {
	// Site would take over; empty if none would.
	Site string `json:"site,omitempty"`
	// Emergency is what happens to the sessions if the active site is lost, Planned what a planned failover to that site does to them.
	Emergency SessionsFate `json:"emergency"`
	Planned   SessionsFate `json:"planned"`
	// Message tells people the first, PlannedMessage the second.
	Message        string `json:"message"`
	PlannedMessage string `json:"plannedMessage,omitempty"`
}

// outlook returns nil while it is unknown which site would take over.
func (c Cache) outlook(spec *v1alpha1.CacheSpec, active string, next *Forecast) *CacheOutlook {
	switch {
	case c.MasterSite == "":
		return &CacheOutlook{Emergency: SessionsNone, Planned: SessionsNone, Message: "no cache is the master, so there are no sessions to keep"}
	case next == nil:
		return nil
	case next.Site == "":
		return &CacheOutlook{Emergency: SessionsStay, Planned: SessionsStay, Message: "no site would take over, so the cache's master is not moved on purpose; it is lost with " + c.MasterSite + " if it is lost there"}
	case next.Site == c.MasterSite:
		return &CacheOutlook{Site: next.Site, Emergency: SessionsStay, Planned: SessionsStay, Message: "they stay: the cache's master is on " + next.Site + " already"}
	}
	out := &CacheOutlook{Site: next.Site}
	s, _ := c.Site(next.Site)
	if s.Synced() {
		out.Emergency, out.Planned = SessionsKept, SessionsKept
		out.Message = fmt.Sprintf("kept, if the cache of %s still answers within %s; else all but what the cache of %s has not received (%s)",
			c.MasterSite, spec.EmergencyBudget.Duration, next.Site, behindWords(s))
		out.PlannedMessage = "kept: the cache of " + next.Site + " takes over with every key"
		return out
	}
	out.Emergency, out.Planned = SessionsLost, SessionsLost
	out.Message = "lost: " + whyNotSynced(s)
	if c.MasterSite != active {
		out.Message = "lost, or left on " + c.MasterSite + ": " + whyNotSynced(s)
	}
	out.PlannedMessage = fmt.Sprintf("waits up to %s for the cache of %s to catch up, then ", spec.Planned.SyncTimeout.Duration, next.Site)
	if spec.Planned.OnTimeout == v1alpha1.CacheRefuse {
		out.Planned = SessionsStay
		out.PlannedMessage += "changes nothing (planned.onTimeout is Refuse)"
	} else {
		out.PlannedMessage += "moves all the same, and sessions may be lost (planned.onTimeout is Proceed)"
	}
	return out
}

func behindWords(s CacheSite) string {
	if s.Behind() == "" {
		return "how much is not known"
	}
	return s.Behind() + " now"
}

// whyNotSynced says why a cache does not have the sessions.
func whyNotSynced(s CacheSite) string {
	words := "the cache of " + s.Name + " does not answer"
	switch {
	case s.Role == string(v1alpha1.CacheMaster):
		words = "the cache of " + s.Name + " is a master of its own, and does not follow"
	case s.Link == CacheLinkSyncing:
		words = "the cache of " + s.Name + " is still being copied"
	case s.Role != "":
		words = "the cache of " + s.Name + " does not receive changes (link " + orWord(s.Link, "unknown") + ")"
	}
	if s.Message != "" {
		words += ": " + s.Message
	}
	return words
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

// Bytes formats a number of bytes for people.
func Bytes(n int64) string {
	units := []string{"Ki", "Mi", "Gi", "Ti"}
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value := float64(n)
	for i, unit := range units {
		if value /= 1024; value < 1024 || i == len(units)-1 {
			if value < 10 {
				return fmt.Sprintf("%.1f%s", value, unit)
			}
			return fmt.Sprintf("%.0f%s", value, unit)
		}
	}
	return ""
}

// cacheProblems returns the problem of a cache that is not ready. It counts against health, but prevents no failover.
func cacheProblems(r MysqlFailoverGroupReport) []Problem {
	if r.Cache == nil {
		return nil
	}
	return matching(r.Conditions, []badCondition{{v1alpha1.ConditionCacheReady, metav1.ConditionFalse}})
}

// CacheHints returns the next steps for a cache that is not as it should be: where its pods are, and what they say.
func CacheHints(namespace, group string, c *Cache) []Hint {
	if c == nil || c.Transition != nil {
		return nil // while the master moves, changes of its pods are part of that
	}
	hints, pod := []Hint{}, func(verb, site string) string {
		return fmt.Sprintf("kubectl %s -n %s -l %s=%s,%s=%s,%s=%s", verb, namespace, v1alpha1.LabelGroup, group, v1alpha1.LabelName, v1alpha1.NameCache, v1alpha1.LabelSite, site)
	}
	for _, s := range c.Sites {
		switch {
		case s.Role == "":
			hints = append(hints, Hint{"see whether the cache pod of " + s.Name + " runs, and on which node", pod("get pods -o wide", s.Name)})
		case s.Role == string(v1alpha1.CacheReplica) && s.Link == CacheLinkDown:
			hints = append(hints, Hint{"see what the cache of " + s.Name + " says of its master", pod("logs --tail=100", s.Name)})
		}
	}
	return append(hints, Hint{"see what is wrong around the cache: its Service, image, memory, certificate and Secret", fmt.Sprintf("kubectl mfg doctor %s -n %s", group, namespace)})
}
