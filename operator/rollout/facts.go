// SPDX-License-Identifier: Apache-2.0

package rollout

// fact is a predicate on a site.
type fact func(Site) bool

func exists(s Site) bool    { return s.Exists }
func upToDate(s Site) bool  { return s.UpToDate }
func outdated(s Site) bool  { return s.Exists && !s.UpToDate && s.Kept == "" }
func settled(s Site) bool   { return s.Settled }
func starting(s Site) bool  { return s.Starting && !s.Settled }
func broken(s Site) bool    { return s.Broken }
func mayServe(s Site) bool  { return s.MayServe != "" }
func busy(s Site) bool      { return s.Busy }
func loading(s Site) bool   { return s.Loading }
func active(s Site) bool    { return s.Active }
func moving(s Site) bool    { return s.Moving }
func candidate(s Site) bool { return s.Candidate }
func diverged(s Site) bool  { return s.Diverged }
func kept(s Site) bool      { return s.Kept != "" }
func fenced(s Site) bool    { return s.Fenced != "" }
func doomed(s Site) bool    { return s.Doomed != "" }
func uncloned(s Site) bool  { return s.Uncloned }
func held(s Site) bool      { return s.Held && !s.Active }

func not(f fact) fact { return func(s Site) bool { return !f(s) } }

func and(facts ...fact) fact {
	return func(s Site) bool {
		for _, f := range facts {
			if !f(s) {
				return false
			}
		}
		return true
	}
}

// turn orders the sites for updates: first those that are never promoted, so that a bad update shows on a site that no
// failover needs, and the active site last.
func turn(s Site) int {
	switch {
	case s.Active:
		return 2
	case s.Candidate:
		return 1
	}
	return 0
}

// find returns the first site that a fact is true of, in the order of their turns.
func find(sites []Site, f fact) (Site, bool) {
	for t := range 3 {
		for _, s := range sites {
			if turn(s) == t && f(s) {
				return s, true
			}
		}
	}
	return Site{}, false
}
