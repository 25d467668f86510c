// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// lab is a replica with everything around it, as simple as can be: the datadir needs one keyring, which lies in escrow, in
// the memory of a pod, or nowhere. The other site is the open active site.
type lab struct {
	t *rapid.T
	s Site
	g Group
	// needs is the keyring without which the datadir cannot be read; empty if there is no datadir. data: it holds the group's.
	needs string
	data  bool
	// kept and round are what the volume remembers: what the sidecar knows to be in escrow, and in which round the datadir was made.
	// named is true if its newest statement names the site.
	kept  string
	round int64
	named bool
	// memory is the keyring in an unsealed pod, made counts keyrings, podRound is the round of the pod.
	memory string
	made   int
	wish   Wish
	// confirmed is a person's order for a reclone.
	confirmed bool
	// dead is true while mysqld does not run in the pod, ran if it was seen to in this one; pods counts them.
	dead, ran bool
	pods      int
}

func newLab(t *rapid.T) *lab {
	l := &lab{t: t, s: Site{Name: "b"}, named: rapid.Bool().Draw(t, "named")}
	l.g = Group{Name: "orders", Now: start, RetainVersions: 2, EscrowTimeout: time.Minute, DataFile: file, Known: true, Donor: true}
	return l
}

func (l *lab) fresh() string {
	l.made++
	return digest(fmt.Sprint("keyring", l.made))
}

// decide persists the status, carries the effects out, and has the ordered update replace the pod if its template differs.
func (l *lab) decide() {
	l.g.Now = l.g.Now.Add(2 * time.Second)
	l.g.Sites = []Site{{Name: "a", Active: true, Provisioned: true, Status: v1alpha1.SiteKeyringStatus{Name: "a", Phase: sealed}}, l.s}
	n := Decide(l.g).Sites[1]
	l.ran = l.ran || l.memory != "" && !l.dead
	l.check(n)
	l.s.Status = n.Status
	for _, e := range n.Effects {
		l.perform(e)
	}
	kept := n.Wish.Kept
	n.Wish.Kept = ""
	if n.Wish != l.wish && kept == "" {
		if l.s.Provisioned && l.memory == l.needs && !l.escrowed() {
			l.t.Fatalf("replaces the pod that has the only copy of the keyring: %+v", l.s.Status)
		}
		l.wish = n.Wish
		l.startPod()
	}
}

func (l *lab) perform(e Effect) {
	switch e := e.(type) {
	case MakeToken:
		l.s.TokenRound = e.Round
	case DropToken:
		l.s.TokenRound = 0
	case Rotate:
		if l.s.Active {
			l.t.Fatal("I20: rotates the active site")
		}
		if !l.s.Provisioned {
			l.t.Fatal("rotates a site without data")
		}
		l.s.Job.Running = true
	case Prune:
		for _, name := range e.Names {
			l.remove(name)
		}
	case Unprovision:
		// In a pod in which it never ran, a mysqld that does not start looks the same whether keys are missing or not: the copy is
		// given up only if there is another one.
		if l.readable() && (l.ran || !l.dead || l.s.Alone || l.s.Diverged) {
			l.t.Fatalf("takes the mark off a site whose data can be read: %+v", l.s.Status)
		}
		l.s.Provisioned = false
	case Answer:
		l.g.RotateSet, l.g.Rotate = false, ""
	case Say:
	}
}

func (l *lab) remove(name string) {
	for i, v := range l.s.Versions {
		if v.Name == name {
			l.s.Versions = append(l.s.Versions[:i:i], l.s.Versions[i+1:]...)
			return
		}
	}
}

// escrowed is true if what the datadir needs is in escrow.
func (l *lab) escrowed() bool {
	_, stored := l.s.newest(func(v Version) bool { return v.Digest == l.needs })
	return stored
}

// wipes is true if the sidecar of the pod gives up a datadir whose keyring it does not have.
func (l *lab) wipes() bool {
	switch {
	case l.wish.Work != boot && l.wish.Work != clone:
		return false
	case l.wish.Work == clone && l.wish.Secret == "" && l.wish.Round != l.round:
		return true
	case l.needs == l.kept:
		return false
	}
	return l.kept == "" || !l.named
}

// readable is true if the keyring that the datadir needs exists anywhere.
func (l *lab) readable() bool {
	return l.needs == "" || l.escrowed() || l.memory == l.needs
}

func (l *lab) check(n Next) {
	st := n.Status
	if n.Wish.Sealed && n.Wish.Round != 0 {
		l.t.Fatal("I18: a sealed site has a round, and with it a token")
	}
	if st.Phase == sealed && l.s.Status.Phase == escrowed && l.needs != st.KeyringDigest {
		l.t.Fatalf("sealed with %s, the data needs %s", st.KeyringDigest, l.needs)
	}
	if st.Round != l.s.Status.Round && st.SeedVersion == 0 && st.Work != boot && l.s.Provisioned {
		l.t.Fatalf("a fresh keyring for a site that holds data: %+v", st)
	}
	found := n.Status.Phase == l.s.Status.Phase
	for _, row := range Table {
		for _, from := range row.From {
			found = found || from == l.s.Status.Phase && row.To == st.Phase
		}
	}
	if !found {
		l.t.Fatalf("%q -> %q is in no row", l.s.Status.Phase, st.Phase)
	}
}

// startPod does what kubelet, sidecar and mysqld do with a new pod.
func (l *lab) startPod() {
	l.memory, l.s.Report, l.s.Calm, l.s.Job = "", nil, 0, Job{}
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
		return // the kubelet waits for the Secret
	case l.wish.Secret != "" && v.Digest != l.wish.Digest:
		l.s.Pod.Lost = true
	case l.needs == "" && l.wish.Sealed:
		l.s.Pod.Lost = true
	case l.needs == "" || l.needs != v.Digest && l.wipes():
		if l.s.Provisioned && l.escrowed() {
			l.t.Fatalf("I14: wipes a copy although its keyring is in escrow: %+v", l.s.Status)
		}
		// A volume that was wiped has another name from then on, which takes the mark off the site (I12).
		l.needs, l.data, l.s.Provisioned = l.fresh(), false, false
		l.kept, l.round = "", l.wish.Round
		l.memory = l.needs
		l.up()
	case l.needs != v.Digest && l.wish.Work == rot && rapid.Bool().Draw(l.t, "unrecorded"):
		// The sidecar had no time to note which keyring the data needs: mysqld starts from the seed, and ends at once.
		l.memory = v.Digest
		l.up()
		l.s.Report = &wire.KeyringReport{Digest: v.Digest}
		l.fall()
	case l.needs != v.Digest:
		l.s.Pod.Lost = true
	default:
		if !l.wish.Sealed {
			l.memory = v.Digest
		}
		l.up()
	}
}

// fall ends mysqld in its pod, again and again, whatever the reason.
func (l *lab) fall() {
	l.dead, l.s.Pod.Ready, l.s.Pod.Settled, l.s.Pod.Silent = true, false, false, true
}

func (l *lab) up() {
	l.dead, l.s.Pod.Silent = false, false
	l.s.Pod.Ready, l.s.Pod.Settled = true, l.s.Provisioned
	l.s.Report = &wire.KeyringReport{
		Sealed: l.wish.Sealed, Component: component, Active: true, DataFile: file, Digest: l.needs,
		ReadOnly: l.wish.Sealed, MountReadOnly: l.wish.Sealed,
	}
	if l.wish.Sealed {
		l.s.Pod.Projects = l.wish.Secret
	}
}

// work is what happens by itself: the push, the end of a job, the clone, time.
func (l *lab) work() {
	s := &l.s
	s.Calm += 2 * time.Second
	if l.memory != "" && l.memory != s.Report.Digest {
		s.Report.Digest, s.Calm = l.memory, 0 // the sidecar looks at the file, whether mysqld runs or not
	}
	if l.dead {
		s.Clone = CloneNone
		if l.confirmed && !s.Provisioned {
			s.Clone = CloneConfirmed
		}
		return
	}
	if l.memory != "" {
		if !s.inEscrow() && s.TokenRound == s.Status.Round {
			top := int64(0)
			for _, v := range s.Versions {
				top = max(top, v.Number)
			}
			name := v1alpha1.KeyringSecret("orders", "b", top+1)
			s.Versions = append(s.Versions, Version{Name: name, Number: top + 1, Digest: l.memory, Annotated: l.memory})
		}
		if s.inEscrow() {
			l.kept = l.memory
		}
	}
	if s.Job.Running && l.memory != "" {
		l.needs = l.fresh()
		l.memory = l.needs
		s.Job = Job{Done: true}
	}
	s.Clone = CloneNone
	if !s.Provisioned && l.memory != "" && MayClone(s.Status) {
		l.needs, l.data = l.fresh(), true
		l.memory, s.Provisioned, s.Pod.Settled, s.Calm, l.confirmed = l.needs, true, true, 0, false
	} else if !s.Provisioned {
		s.Clone = CloneWanted
		if l.confirmed {
			s.Clone = CloneConfirmed
		}
	}
}

func (l *lab) order(what string) {
	switch what {
	case "rotate":
		l.g.RotateSet, l.g.Rotate = true, "b"
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
	}
}

// wake has mysqld start in its pod, if it can.
func (l *lab) wake() {
	if l.dead && l.memory == l.needs {
		l.up()
	}
}

// I14. Whatever pods and servers die when, the site ends sealed with the keyring that its data needs, and its data is never given up while
// it can be read, nor the pod that has the only copy of its keyring. Operators die all the time: nothing is kept from one decision to the next but the status.
func TestEndsSealed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLab(t)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch what := rapid.SampledFrom([]string{"decide", "decide", "decide", "work", "work", "kill", "rotate", "withdraw", "reclone", "fall", "wake", "alone"}).Draw(t, "what"); what {
			case "decide":
				l.decide()
			case "work":
				l.work()
			case "kill":
				if l.s.Rendered.Exists {
					l.startPod()
				}
			default:
				l.order(what)
			}
			if !l.readable() && l.s.Status.Phase == sealed && l.s.Status.Work == "" && l.s.Provisioned {
				t.Fatalf("sealed, and its data cannot be read: %+v", l.s.Status)
			}
		}
		l.finish()
	})
}

func (l *lab) finish() {
	for range 200 {
		l.wake()
		l.decide()
		l.work()
		if l.dead && !l.readable() && l.s.Alone {
			// What a person does with a site that does not start.
			l.s.Provisioned, l.confirmed = false, true
		}
		if l.s.Pod.Lost && (l.s.Status.Phase == escrowed || l.named) && !l.readable() {
			// What a person does with a site whose keyring was never escrowed after its clone, and with one that says that its data may
			// hold what was acknowledged.
			l.s.Provisioned, l.confirmed = false, true
		}
	}
	if l.s.Status.Phase != sealed || !l.s.Provisioned || !l.data || l.s.Status.KeyringDigest != l.needs || l.s.TokenRound != 0 {
		l.t.Fatalf("does not end sealed: %+v, needs %s, data %v, pod %+v, clone %q", l.s.Status, l.needs, l.data, l.s.Pod, l.s.Clone)
	}
}
