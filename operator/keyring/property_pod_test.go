// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// startPod does what kubelet, sidecar and mysqld do with a new pod.
func (l *lab) startPod() {
	l.memory, l.mounted, l.pushed, l.says, l.s.Report, l.s.Job, l.half = "", "", "", nil, nil, Job{}, false
	l.pods++
	l.dead, l.ran, l.s.Pod = false, false, Pod{UID: fmt.Sprint("pod", l.pods), Current: true, Round: l.wish.Round}
	l.s.Rendered = Rendered{Exists: true, Keyring: l.wish.Encrypted, Sealed: l.wish.Sealed}
	l.s.InUse = nil
	if l.wish.Secret != "" {
		l.s.InUse = []string{l.wish.Secret}
	}
	if l.wish.Sealed {
		l.s.Rendered.Secret = l.wish.Secret
	}
	v, exists := l.s.version(l.wish.Secret)
	switch {
	case l.wish.Secret != "" && !exists:
		l.s.Pod.Unborn = true // the kubelet waits for the Secret
	case l.needs == "" && l.wish.Sealed:
		l.s.Pod.Lost = true
	case l.needs == "" || l.needs != v.Digest && l.wipes():
		if l.s.Provisioned && l.escrowed() {
			l.t.Fatalf("I14: wipes a copy although its keyring is in escrow: %+v", l.s.Status)
		}
		// A volume that was wiped has another name from then on, which takes the mark off the site (I12).
		l.needs, l.data, l.s.Provisioned = l.fresh(), false, false
		l.kept, l.round, l.noted = "", l.wish.Round, l.wished
		l.memory = l.needs
		l.up()
	case l.needs != v.Digest && l.wish.Work == rot && rapid.Bool().Draw(l.t, "unrecorded"):
		// The sidecar had no time to note which keyring the data needs: mysqld starts from the seed, and ends at once.
		l.memory = v.Digest
		l.says = &wire.KeyringReport{}
		l.fall()
	case l.needs != v.Digest && l.wish.Sealed:
		// What is projected is a whole keyring, so the pod starts, and mysqld ends at once: nothing says that its keyring is another.
		l.says = &wire.KeyringReport{Sealed: true, Digest: v.Digest, MountReadOnly: true}
		l.s.Pod.Projects, l.mounted = l.wish.Secret, v.Digest
		l.fall()
	case l.needs != v.Digest:
		l.s.Pod.Lost = true
	default:
		if l.mounted = v.Digest; !l.wish.Sealed {
			l.memory, l.mounted = v.Digest, ""
		}
		l.up()
	}
}

// fall ends mysqld in its pod, again and again, whatever the reason.
func (l *lab) fall() {
	l.dead, l.s.Pod.Ready, l.s.Pod.Settled, l.s.Pod.Silent = true, false, false, true
	l.says.Component, l.says.Active = "", false
}

func (l *lab) up() {
	l.dead, l.s.Pod.Silent = false, false
	l.s.Pod.Ready, l.s.Pod.Settled = true, l.s.Provisioned
	l.says = &wire.KeyringReport{
		Sealed: l.wish.Sealed, Component: component, Active: true, DataFile: file, Digest: l.needs,
		ReadOnly: l.wish.Sealed, MountReadOnly: l.wish.Sealed,
	}
	if l.wish.Sealed {
		l.s.Pod.Projects = l.wish.Secret
	}
}

// work is what happens by itself, each at any time.
func (l *lab) work(what string) {
	switch what {
	case "poll":
		l.poll()
	case "push":
		l.push()
	case "rotation":
		l.rotation()
	case "clone":
		l.clone()
	}
}

// poll has the operator hear of the sidecar, which looks at the file, whether mysqld runs or not.
func (l *lab) poll() {
	if l.says == nil {
		return
	}
	r := *l.says
	if l.memory != "" {
		r.Digest = l.memory
	}
	l.s.Report, l.polled = &r, l.g.Now
}

// push is what the sidecar does with a keyring that mysqld has listed: once in each pod at least.
func (l *lab) push() {
	s := &l.s
	taken := s.Status.Phase == unsealed || s.Status.Phase == escrowed || s.Status.Phase == failed && written(s.Status)
	if l.dead || l.memory == "" || l.pushed == l.memory && l.g.Now.Sub(l.pushedAt) < time.Minute || s.TokenRound != s.Status.Round || !taken {
		return
	}
	l.pushed, l.pushedAt, l.kept = l.memory, l.g.Now, l.memory
	last := Version{}
	for _, v := range s.Versions {
		if v.Number > last.Number {
			last = v
		}
	}
	if last.Digest != l.memory {
		st := s.Status
		number := 1 + max(last.Number, st.KeyringVersion, st.FloorVersion, st.SeedVersion, st.RotatedVersion) // none is given again
		name := v1alpha1.KeyringSecret("orders", "b", number)
		s.Versions = append(s.Versions, Version{Name: name, Number: number, Digest: l.memory, Annotated: l.memory})
	}
}

// rotation makes one of the two keys, or does not succeed.
func (l *lab) rotation() {
	s := &l.s
	switch {
	case !s.Job.Running:
	case l.dead || l.memory == "" || !l.ending && rapid.IntRange(0, 3).Draw(l.t, "fails") == 0:
		s.Job, l.half = Job{Trouble: "no answer", Failures: s.Job.Failures + 1}, false
	default:
		l.memory = l.fresh()
		l.needs = l.memory
		if l.half = !l.half; !l.half {
			s.Job, l.rotated = Job{Done: true, Failures: s.Job.Failures}, true
		}
	}
}

func (l *lab) clone() {
	s := &l.s
	s.Clone = CloneNone
	if l.forgotten && l.data && !l.dead && l.says != nil {
		// What a group that was made again finds on a volume, it takes.
		l.forgotten, s.Provisioned, s.Pod.Settled = false, true, true
		return
	}
	// None begins before the operator looked at the site without its mark, and heard that its pod is unsealed.
	if !l.dead && !s.Provisioned && l.bare && l.memory != "" && s.Report != nil && MayClone(s.Status) {
		l.needs, l.data = l.fresh(), true
		l.memory, s.Provisioned, s.Pod.Settled, l.confirmed = l.needs, true, true, false
	} else if !s.Provisioned {
		if !l.dead {
			s.Clone = CloneWanted
		}
		if l.confirmed {
			s.Clone = CloneConfirmed
		}
	}
}
