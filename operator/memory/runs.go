// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
)

// RunsKept is how long the node must rule out that anything is left of a run whose pod is gone: it is Ready, and its kubelet ends
// what has no pod; or it was taken out of the cluster, or is another machine now, which Kubernetes too takes for the run's end.
const RunsKept = 6 * time.Minute

// runsMost is how many runs of a site are told apart.
const runsMost = 16

// WithRuns fills in which runs of each site may be left.
func WithRuns(s facts.Snapshot, old facts.Memory) (facts.Snapshot, facts.Runs) {
	now := facts.Runs{Of: map[string][]facts.Run{}, Quiet: map[string]time.Time{}, Over: map[string]bool{}, EndedAt: maps.Clone(old.Runs.EndedAt)}
	if now.EndedAt == nil {
		now.EndedAt = map[string]time.Time{}
	}
	s.Sites = slices.Clone(s.Sites)
	for i := range s.Sites {
		site := &s.Sites[i]
		site.Runs = fold(s, *site, old.Runs, now)
		now.Of[site.Name] = site.Runs
	}
	return s, now
}

// fold is the list of a site's runs: those that were known, and those that are seen, without those that have ended.
func fold(s facts.Snapshot, site facts.Site, old, now facts.Runs) []facts.Run {
	holder := holder(site)
	var left []facts.Run
	for _, r := range everyRun(s, site, old) {
		seen, exists := seenOf(site, r)
		r.Elsewhere = !exists && r.UID == site.Pod.UID
		r.Ended = seen.Ended || s.EndedPods[r.UID]
		if exists && r.UID == site.Pod.UID {
			r = current(s, site, r)
		}
		locked := excludes(holder, r, exists)
		over := r.Ended || s.Nodes[r.Node].OutOfService || !exists && quiet(s, r, old, now)
		if over && !locked {
			if now.Over[r.Key()] = true; !old.Over[r.Key()] {
				now.EndedAt[site.Name] = s.Now
			}
		}
		if (over || locked) && !exists {
			continue
		}
		// A pod that the kubelet of a Ready node has not reported as begun reads the epoch from the volume once it begins (I5).
		r.Idle = over || locked || exists && !seen.Started && s.Nodes[r.Node].Ready && r.UID != holder.UID
		left = append(left, r)
	}
	return bounded(left, site)
}

// everyRun is the list of the runs that are in status, remembered or seen.
func everyRun(s facts.Snapshot, site facts.Site, old facts.Runs) []facts.Run {
	all := slices.Clone(s.Status.Runs[site.Name])
	for _, r := range old.Of[site.Name] {
		if !slices.ContainsFunc(all, func(k facts.Run) bool { return k.Key() == r.Key() }) {
			all = append(all, r)
		}
	}
	for _, p := range site.Pod.Runs {
		all = see(all, p)
	}
	return all
}

// see adds a pod that is seen to the list, or updates its run. A pod that is seen on another machine than before is another run.
func see(all []facts.Run, p facts.SeenRun) []facts.Run {
	for i := range all {
		if all[i].UID == p.UID && (all[i].Machine == p.Machine || all[i].Machine == "" || p.Machine == "") {
			if all[i].Machine == "" {
				all[i].Machine = p.Machine
			}
			all[i].Lease = max(all[i].Lease, p.Lease)
			return all
		}
	}
	return append(all, facts.Run{UID: p.UID, Node: p.Node, Machine: p.Machine, Lease: p.Lease})
}

func seenOf(site facts.Site, r facts.Run) (facts.SeenRun, bool) {
	for _, p := range site.Pod.Runs {
		if p.UID == r.UID && (p.Machine == r.Machine || p.Machine == "") {
			return p, true
		}
	}
	return facts.SeenRun{}, false
}

// current updates the run of the pod that was asked.
func current(s facts.Snapshot, site facts.Site, r facts.Run) facts.Run {
	if id := site.Sidecar.Report.VolumeID; site.Sidecar.Answered && id != "" {
		r.Volume = id
	}
	if site.Name == s.Status.ActiveSite && !NotPassed(s.Status.Transition) {
		r.Closed = false // it may be let open
	}
	return r
}

// holder is the run whose sidecar answered: it has the lock of its volume.
func holder(site facts.Site) facts.Run {
	for _, p := range site.Pod.Runs {
		if p.UID == site.Pod.UID && site.Sidecar.Answered {
			return facts.Run{UID: p.UID, Machine: p.Machine, Volume: site.Sidecar.Report.VolumeID}
		}
	}
	return facts.Run{}
}

// excludes is true for another run on the same machine and volume. A machine has one kernel at a time, and a kernel gives the lock to one
// run at a time, so the other has ended, if only with its kernel. A pod that is still there, and has not reported its volume, waits for the
// lock, since no claim is replaced while a pod with it is there.
func excludes(r, other facts.Run, exists bool) bool {
	same := r.Volume != "" && (other.Volume == r.Volume || exists && other.Volume == "")
	return r.UID != "" && other.UID != r.UID && r.Machine != "" && other.Machine == r.Machine && same
}

// quiet is true once nothing can be left of a run whose pod is gone.
func quiet(s facts.Snapshot, r facts.Run, old, now facts.Runs) bool {
	node := s.Nodes[r.Node]
	if replaced := r.Machine != "" && node.Machine != "" && node.Machine != r.Machine; !node.Ready && !node.Gone && !replaced {
		return false // also if nothing is known of the node
	}
	since := OrNow(old.Quiet[r.Key()], s.Now)
	now.Quiet[r.Key()] = since
	return s.Now.Sub(since) >= RunsKept
}

// bounded folds runs into one once there are too many: those whose pods are gone and that were on one machine with one volume. What
// is known of the machine then holds for all of them. So there are never more than machines on which the site ever ran.
func bounded(all []facts.Run, site facts.Site) []facts.Run {
	if len(all) <= runsMost {
		return all
	}
	var left []facts.Run
	for _, r := range all {
		_, exists := seenOf(site, r)
		i := slices.IndexFunc(left, func(k facts.Run) bool {
			return k.UID == several && k.Machine == r.Machine && k.Node == r.Node && k.Volume == r.Volume
		})
		switch {
		case exists:
			left = append(left, r)
		case i < 0:
			r.UID = several // else the end of one would count for all
			left = append(left, r)
		default:
			left[i].Lease, left[i].Closed = max(left[i].Lease, r.Lease), left[i].Closed && r.Closed
		}
	}
	return left
}

// several stands for the pods of runs that are no longer told apart.
const several = "several"

// NotPassed is true while a transition may not open any site yet.
func NotPassed(t *facts.Transition) bool { return t != nil && t.Step == v1alpha1.TransitionFencing }

// Named names sites for people, and adds the earlier pod of one that may be left, if it counts because of that.
func Named(s facts.Snapshot, sites []string) string {
	var all []string
	for _, name := range sites {
		site, _ := s.Site(name)
		if r, more := site.Beside(site.Pod.UID); more && site.Sidecar.Answered {
			name = fmt.Sprintf("%s (%s)", name, r)
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}
