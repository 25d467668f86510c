// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// RunsKept is how long it must be so that nothing can be left of a run whose pod is gone: its node is Ready, and its kubelet ends
// what has no pod; or its node was taken out of the cluster, or is another machine now, which Kubernetes too takes for its end.
const RunsKept = 6 * time.Minute

// runsMost is how many runs of a site are told apart.
const runsMost = 16

// withRuns fills in which runs of each site may be left.
func withRuns(s Snapshot, old Memory) (Snapshot, runs) {
	now := runs{Of: map[string][]Run{}, Quiet: map[string]time.Time{}, Over: map[string]bool{}, EndedAt: maps.Clone(old.Runs.EndedAt)}
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
func fold(s Snapshot, site Site, old, now runs) []Run {
	holder := holder(site)
	var left []Run
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
		// A pod of which the kubelet of a Ready node has not told that it began reads the epoch from the volume once it does (I5).
		r.Idle = over || locked || exists && !seen.Started && s.Nodes[r.Node].Ready && r.UID != holder.UID
		left = append(left, r)
	}
	return bounded(left, site)
}

// everyRun is the list of the runs that are in status, remembered or seen.
func everyRun(s Snapshot, site Site, old runs) []Run {
	all := slices.Clone(s.Status.Runs[site.Name])
	for _, r := range old.Of[site.Name] {
		if !slices.ContainsFunc(all, func(k Run) bool { return k.Key() == r.Key() }) {
			all = append(all, r)
		}
	}
	for _, p := range site.Pod.Runs {
		all = see(all, p)
	}
	return all
}

// see adds a pod that is seen to the list, or what is new of it. One that is seen on another machine than before is another run.
func see(all []Run, p SeenRun) []Run {
	for i := range all {
		if all[i].UID == p.UID && (all[i].Machine == p.Machine || all[i].Machine == "" || p.Machine == "") {
			if all[i].Machine == "" {
				all[i].Machine = p.Machine
			}
			all[i].Lease = max(all[i].Lease, p.Lease)
			return all
		}
	}
	return append(all, Run{UID: p.UID, Node: p.Node, Machine: p.Machine, Lease: p.Lease})
}

func seenOf(site Site, r Run) (SeenRun, bool) {
	for _, p := range site.Pod.Runs {
		if p.UID == r.UID && (p.Machine == r.Machine || p.Machine == "") {
			return p, true
		}
	}
	return SeenRun{}, false
}

// current is the run of the pod that was asked.
func current(s Snapshot, site Site, r Run) Run {
	if id := site.Sidecar.Report.VolumeID; site.Sidecar.Answered && id != "" {
		r.Volume = id
	}
	if site.Name == s.Status.ActiveSite && !notPassed(s.Status.Transition) {
		r.Closed = false // it may be let open
	}
	return r
}

// holder is the run whose sidecar answered: it has the lock of its volume.
func holder(site Site) Run {
	for _, p := range site.Pod.Runs {
		if p.UID == site.Pod.UID && site.Sidecar.Answered {
			return Run{UID: p.UID, Machine: p.Machine, Volume: site.Sidecar.Report.VolumeID}
		}
	}
	return Run{}
}

// excludes is true for a run on the same machine and the same volume. A machine has one kernel at a time, and a kernel gives the lock to
// one at a time, so that run has ended, with its kernel if not by itself; a pod that is still there, and has not told its volume, waits for
// the lock, since no claim is replaced while a pod with it is there.
func excludes(r, other Run, exists bool) bool {
	same := r.Volume != "" && (other.Volume == r.Volume || exists && other.Volume == "")
	return r.UID != "" && other.UID != r.UID && r.Machine != "" && other.Machine == r.Machine && same
}

// quiet is true once nothing can be left of a run whose pod is gone.
func quiet(s Snapshot, r Run, old, now runs) bool {
	node := s.Nodes[r.Node]
	if replaced := r.Machine != "" && node.Machine != "" && node.Machine != r.Machine; !node.Ready && !node.Gone && !replaced {
		return false // also of a node of which nothing is known
	}
	since := orNow(old.Quiet[r.Key()], s.Now)
	now.Quiet[r.Key()] = since
	return s.Now.Sub(since) >= RunsKept
}

// bounded folds runs into one whose pods are gone and that were on one machine with one volume, once there are too many: then what is
// known of the machine holds for all of them. So there are never more than machines on which the site ever ran.
func bounded(all []Run, site Site) []Run {
	if len(all) <= runsMost {
		return all
	}
	var left []Run
	for _, r := range all {
		_, exists := seenOf(site, r)
		i := slices.IndexFunc(left, func(k Run) bool {
			return k.UID == several && k.Machine == r.Machine && k.Node == r.Node && k.Volume == r.Volume
		})
		switch {
		case exists:
			left = append(left, r)
		case i < 0:
			r.UID = several // one of them alone may be told to have ended
			left = append(left, r)
		default:
			left[i].Lease, left[i].Closed = max(left[i].Lease, r.Lease), left[i].Closed && r.Closed
		}
	}
	return left
}

// several stands for the pods of runs that are not told apart any more.
const several = "several"

// noteRuns makes durable which runs there are, so that the next operator knows those whose pods are gone by then (I9).
func (d Decision) noteRuns(s Snapshot, n runs) Decision {
	d.Status.Runs = n.Kept()
	if t := d.Status.Transition; t != nil && notPassed(s.Status.Transition) && !notPassed(t) {
		d = d.close(s)
	}
	d.Persist = d.Persist || !maps.EqualFunc(d.Status.Runs, s.Status.Runs, slices.Equal[[]Run])
	return d
}

// notPassed is true while nobody may be opened by a transition.
func notPassed(t *Transition) bool { return t != nil && t.Step == v1alpha1.TransitionFencing }

// close notes that the gate has passed with every run but the one that is to be opened.
func (d Decision) close(s Snapshot) Decision {
	target, _ := s.Site(d.Status.ActiveSite)
	all := map[string][]Run{}
	for site, list := range d.Memory.Runs.Of {
		list = slices.Clone(list)
		for i := range list {
			list[i].Closed = list[i].UID != target.Pod.UID || list[i].Elsewhere
		}
		all[site] = list
	}
	d.Memory.Runs.Of = all
	d.Status.Runs = d.Memory.Runs.Kept()
	return d
}

// named names sites for people, and which earlier pod of one may be left, if it is for that.
func named(s Snapshot, sites []string) string {
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

// earlierPod says of a site whose pod answers that another one may be left, and what to do; empty normally.
func earlierPod(site Site) (reason Reason, message string) {
	r, more := site.Beside(site.Pod.UID)
	if !more || !site.Sidecar.Answered {
		return "", ""
	}
	return v1alpha1.ReasonEarlierPodMayRun, fmt.Sprintf("%s: what this one says proves nothing of it. It counts as ended once its node is Ready for %s, "+
		"is taken out of the cluster, or is tainted %s because it is down", r, RunsKept, v1alpha1.OutOfServiceTaint)
}
