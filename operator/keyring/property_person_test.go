// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func (l *lab) order(what string) {
	switch what {
	case "rotate":
		l.orders++
		l.g.RotateSet, l.g.Rotate, l.g.RotateID = true, "b", fmt.Sprint(l.orders)
	case "withdraw":
		l.g.RotateSet, l.g.Rotate = false, ""
	case "reclone":
		if !l.dead {
			l.s.Provisioned = false
		}
	case "fall":
		if l.memory != "" {
			l.fall()
		}
	case "wake":
		l.wake()
	case "alone":
		l.s.Alone = !l.s.Alone
	case "update":
		l.outdated = true
	case "lose":
		if n := len(l.s.Versions); n > 0 {
			v := l.s.Versions[rapid.IntRange(0, n-1).Draw(l.t, "version")]
			l.lost[v.Name] = v
			l.remove(v.Name)
		}
	case "restore":
		l.restore()
	case "again":
		l.again()
	case "patch":
		if l.s.Status.Phase != none && l.s.Status.Phase != pending {
			l.s.Status.Phase = sealed
		}
	case "operator":
		// It was restarted: it knows what is persisted, and its rotation ended with it.
		l.s.Job, l.half, l.quiet = Job{}, false, ""
	}
}

// restore has somebody put back what was deleted. A pod that waits for it starts.
func (l *lab) restore() {
	for _, v := range l.lost {
		if _, there := l.s.version(v.Name); !there {
			l.s.Versions = append(l.s.Versions, v)
		}
	}
	slices.SortFunc(l.s.Versions, func(a, b Version) int { return cmp.Compare(a.Number, b.Number) })
	clear(l.lost)
	if l.s.Pod.Unborn {
		l.startPod()
	}
}

// again deletes the group, whose pods and Secrets stay, and makes it again: nothing is known of them but what they say.
func (l *lab) again() {
	l.order("operator")
	l.order("withdraw")
	l.s.Status, l.s.Report, l.s.Clone, l.s.Provisioned = v1alpha1.SiteKeyringStatus{}, nil, CloneNone, false
	l.confirmed, l.forgotten = false, true
	l.g.Adopt = l.g.Adopt || rapid.Bool().Draw(l.t, "adopted") // an annotation that stays
	clear(l.lost)                                              // nobody puts what was lost before into the new one, whose numbers may have been given again
	l.group++                                                  // rounds count from one again, and are of another group
}

// wake has mysqld start in its pod, if it can.
func (l *lab) wake() {
	if l.dead && l.memory == l.needs {
		l.up()
	}
}
