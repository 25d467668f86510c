// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/pace"
	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// UpgradeState is where a group is on its way to the pods of the operator's version.
type UpgradeState string

// The states of a group.
const (
	// UpgradeUpToDate: no pod waits for a turn.
	UpgradeUpToDate UpgradeState = "UpToDate"
	// UpgradeUnderWay: the group has the turn, and its pods are being replaced or start.
	UpgradeUnderWay UpgradeState = "UnderWay"
	// UpgradeSettling: the group has the turn and all its new pods, and the pause runs.
	UpgradeSettling UpgradeState = "Settling"
	// UpgradeWaiting: only other groups, or a pause or a stop of all, are in the way.
	UpgradeWaiting UpgradeState = "Waiting"
	// UpgradeHeld: something about the group itself is in the way.
	UpgradeHeld UpgradeState = "Held"
	// UpgradePinned: a person keeps the group's pods as they are.
	UpgradePinned UpgradeState = "Pinned"
	// UpgradeNotSeen: the operator that leads has not looked at the group yet.
	UpgradeNotSeen UpgradeState = "NotSeen"
	// UpgradeElsewhere: another release of the operator operates the group, and has turns of its own.
	UpgradeElsewhere UpgradeState = "Elsewhere"
)

// UpgradeReport is `kubectl mfg upgrade status`.
type UpgradeReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Lease is where the turn is, as namespace/name.
	Lease string `json:"lease"`
	// Paced says in words how turns are paced.
	Paced string `json:"paced,omitempty"`
	// Turn is the group that has the turn, as namespace/name, and Since is since when.
	Turn  string     `json:"turn,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	// Paused says since when a person has paused further turns, in that person's words.
	Paused string `json:"paused,omitempty"`
	// Stopped says why no further turn begins until a person allows it.
	Stopped string `json:"stopped,omitempty"`
	// Behind is how many of the groups below have pods that wait for a turn.
	Behind int            `json:"behind"`
	Groups []UpgradeGroup `json:"groups"`
	// Note says what is missing in this report.
	Note string `json:"note,omitempty"`
	// Flags are those that commands about the same operator need.
	Flags string `json:"-"`
	// NotSeen is how many of the groups the operator that leads has not looked at yet.
	NotSeen int `json:"-"`
}

// UpgradeGroup is one group of it.
type UpgradeGroup struct {
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	State     UpgradeState `json:"state"`
	// Behind are the sites whose pods are of an older version of the operator.
	Behind []string `json:"behind,omitempty"`
	// Why says what is in the way, or what is under way.
	Why string `json:"why,omitempty"`
	// Opens is when a closed window opens next.
	Opens *time.Time `json:"opens,omitempty"`
}

// Upgrade builds the report of some groups from the Lease of the turn.
func Upgrade(lease *coordinationv1.Lease, groups []v1alpha1.MysqlFailoverGroup, now time.Time) UpgradeReport {
	a := lease.Annotations
	r := UpgradeReport{
		APIVersion: APIVersion, Kind: "MfgUpgradeReport", Lease: lease.Namespace + "/" + lease.Name, Groups: []UpgradeGroup{},
		Paced: spoken(a[v1alpha1.AnnotationUpgradePolicy]), Paused: spoken(a[v1alpha1.AnnotationUpgradePaused]), Stopped: spoken(a[v1alpha1.AnnotationUpgradeStopped]),
	}
	turn := turnOf{now: now}
	if h := lease.Spec.HolderIdentity; h != nil && *h != "" {
		r.Turn = *h
		if at := lease.Spec.AcquireTime; at != nil {
			r.Since = &at.Time
		}
		if at := lease.Spec.RenewTime; at != nil {
			turn.settled = &at.Time
		}
	}
	// An operator can read what it wrote; another version's words may be unreadable.
	turn.window, _ = pace.ParseWindow(a[v1alpha1.AnnotationUpgradeWindow])
	sorted := slices.SortedFunc(slices.Values(groups), func(x, y v1alpha1.MysqlFailoverGroup) int {
		return cmp.Compare(x.Namespace+"/"+x.Name, y.Namespace+"/"+y.Name)
	})
	own := lease.Namespace + "/" + strings.TrimSuffix(lease.Name, v1alpha1.UpgradeLeaseSuffix)
	for i := range sorted {
		if why := pace.Elsewhere(&sorted[i], own); why != "" {
			r.Groups = append(r.Groups, UpgradeGroup{Namespace: sorted[i].Namespace, Name: sorted[i].Name, State: UpgradeElsewhere, Why: why})
			continue
		}
		seen := pace.See(&sorted[i], a[v1alpha1.AnnotationUpgradeRevision])
		g := turn.group(&sorted[i], seen, r)
		if seen.Unseen {
			r.NotSeen++
		}
		if seen.Behind {
			r.Behind++
		}
		r.Groups = append(r.Groups, g)
	}
	return r
}

// longestSpoken is how much of an annotation's words is shown, which anyone may have written, in runes.
const longestSpoken = 300

// spoken returns such words on one line, without what a terminal would act on.
func spoken(words string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, words))
	if len(runes) > longestSpoken {
		return string(runes[:longestSpoken]) + "..."
	}
	return string(runes)
}

// turnOf is what the groups of one report share.
type turnOf struct {
	now    time.Time
	window pace.Window
	// settled is since when the group that has the turn is done and healthy.
	settled *time.Time
	// next is true once the next group was found.
	next bool
}

func (t *turnOf) group(cr *v1alpha1.MysqlFailoverGroup, seen pace.Group, r UpgradeReport) UpgradeGroup {
	g := UpgradeGroup{Namespace: cr.Namespace, Name: cr.Name}
	if cr.Status.Upgrade != nil && !seen.Unseen {
		for _, site := range cr.Status.Upgrade.Sites {
			if site.Behind {
				g.Behind = append(g.Behind, site.Name)
			}
		}
	}
	say := func(state UpgradeState, why string) UpgradeGroup {
		g.State, g.Why = state, why
		return g
	}
	held := pace.WhyNot(seen, t.window, t.now)
	switch {
	case r.Turn == seen.Name && seen.Behind && seen.Pinned:
		return say(UpgradePinned, spoken(cr.Annotations[v1alpha1.AnnotationUpgradePin])+"; it keeps the turn until it has been healthy for the pause")
	case r.Turn == seen.Name && seen.Behind && seen.Kept != "" && seen.Why == "":
		return say(UpgradeHeld, seen.Kept+"; it keeps the turn until it has been healthy for the pause")
	case r.Turn == seen.Name && seen.Behind:
		return say(UpgradeUnderWay, "still to be replaced: "+strings.Join(g.Behind, ", "))
	case r.Turn == seen.Name && seen.Why != "":
		return say(UpgradeUnderWay, seen.Why)
	case r.Turn == seen.Name:
		return say(UpgradeSettling, t.settling())
	case seen.Unseen:
		return say(UpgradeNotSeen, seen.Why)
	case !seen.Behind:
		return say(UpgradeUpToDate, "")
	case seen.Pinned:
		return say(UpgradePinned, spoken(cr.Annotations[v1alpha1.AnnotationUpgradePin]))
	case held != "":
		if opens := seen.Within(t.window).Next(t.now); !seen.Closed && seen.Why == "" && seen.Kept == "" && opens.After(t.now) {
			g.Opens = &opens
			held += "; it opens " + opens.Format("Mon 2006-01-02 15:04") + " UTC"
		}
		return say(UpgradeHeld, held)
	case r.Stopped != "":
		return say(UpgradeWaiting, "all are stopped")
	case r.Paused != "":
		return say(UpgradeWaiting, "all are paused")
	case r.Turn != "":
		return say(UpgradeWaiting, r.Turn+" has the turn")
	case t.next:
		return say(UpgradeWaiting, "others come first")
	}
	t.next = true
	return say(UpgradeWaiting, "its turn begins within seconds")
}

func (t *turnOf) settling() string {
	if t.settled == nil {
		return "all its pods are new"
	}
	return "all its pods are new, and it is healthy since " + t.settled.UTC().Format(time.TimeOnly)
}

// NeedsAttention is true if nothing continues without a person.
func (r UpgradeReport) NeedsAttention() bool {
	return r.Stopped != ""
}

// upgradeNote says that pods of a group are of an older version of the operator, and what that waits for; empty if none are.
func upgradeNote(cr *v1alpha1.MysqlFailoverGroup) string {
	c := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionUpgradePending)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("%s [%s]; see who is first: kubectl mfg upgrade status", c.Message, c.Reason)
}
