// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

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
	// mounted is the keyring that a sealed pod has in its memory. lost are the escrow Secrets that somebody deleted, and somebody may have
	// a copy of. forgotten is true from when the group was made again until it knows what the volume holds.
	mounted   string
	lost      map[string]Version
	forgotten bool
	// group counts how often the group was made; wished and noted are those of the pod's round and of the round that the volume remembers.
	group, wished, noted int
	wish                 Wish
	// confirmed is a person's order for a reclone.
	confirmed bool
	// says is what the sidecar of the pod would answer, polled when it was asked last; nil if it does not run. pushed is what it has had
	// stored. Of what it says the operator knows what it last polled.
	says   *wire.KeyringReport
	polled time.Time
	pushed string
	// pushedAt is when: what is in escrow is pushed again now and then.
	pushedAt time.Time
	// quiet is what nothing changed since, as far as the operator saw.
	quiet string
	since time.Time
	// half is true between the two keys of a rotation, outdated while an update of the pod is pending for another reason.
	half, outdated bool
	// rotated is true if both keys were rotated since an order was last answered as done.
	rotated bool
	// bare is true if the site was without data when the operator looked at it last.
	bare bool
	// ending is true once nothing goes wrong any more.
	ending bool
	// dead is true while mysqld does not run in the pod, ran if it was seen to in this one; pods counts them.
	dead, ran bool
	pods      int
	// orders counts the orders for a rotation.
	orders int
}

func newLab(t *rapid.T) *lab {
	l := &lab{t: t, s: Site{Name: "b"}, lost: map[string]Version{}, named: rapid.Bool().Draw(t, "named")}
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
	l.s.Calm, l.bare = l.calm(), !l.s.Provisioned
	l.g.Sites = []Site{activeSealed(), l.s}
	n := Decide(l.g).Sites[1]
	l.ran = l.ran || l.s.Report != nil && l.s.Report.Component != ""
	l.check(n)
	l.s.Status = n.Status
	for _, e := range n.Effects {
		l.perform(e)
	}
	l.s.Job = l.known(l.s.Job)
	kept, st := n.Wish.Kept, n.Status
	n.Wish.Kept = ""
	if (n.Wish != l.wish || l.outdated) && kept == "" && !l.s.Job.Running {
		if l.s.Provisioned && (l.memory == l.needs || l.mounted == l.needs) && !l.escrowed() {
			l.t.Fatalf("replaces the pod that has the only copy of the keyring: %+v", l.s.Status)
		}
		if n.Wish.Sealed && st.Work == rot && n.Wish.Digest != l.needs && l.s.Provisioned {
			l.t.Fatalf("a pod is made sealed with %s in a rotation, the data needs %s: %+v", n.Wish.Digest, l.needs, st)
		}
		l.wish, l.outdated, l.wished = n.Wish, false, l.group
		l.startPod()
	}
}

// calm is for how long nothing had changed when the sidecar was asked last.
func (l *lab) calm() time.Duration {
	s, digest := l.s, ""
	if s.Report != nil {
		digest = s.Report.Digest
	}
	quiet := fmt.Sprint(digest, s.Pod.UID, s.Provisioned, s.Clone, s.Status.Rotated, s.Job)
	if quiet != l.quiet {
		l.quiet, l.since = quiet, l.g.Now
	}
	return max(0, l.polled.Sub(l.since))
}

// known is what is remembered of a rotation: nothing once status tells of it, or once it is over.
func (l *lab) known(j Job) Job {
	if !j.Running && (l.s.Status.Rotated || l.s.Status.Work != rot) {
		return Job{}
	}
	return j
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
		if e.Done && !l.rotated {
			l.t.Fatalf("an order is answered as done, and nothing was rotated since the last one was: %+v", l.s.Status)
		}
		l.rotated = l.rotated && !e.Done
		if e.Done && l.s.Status.Request != l.g.RotateID {
			l.t.Fatalf("the order %s is answered as done by the rotation for %s", l.g.RotateID, l.s.Status.Request)
		}
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
	case l.wish.Work == clone && l.wish.Secret == "" && (l.wish.Round != l.round || l.wished != l.noted):
		return true
	case l.needs == l.kept:
		return false
	}
	return l.kept == "" || !l.named
}

// readable is true if the keyring that the datadir needs exists anywhere.
func (l *lab) readable() bool {
	return l.needs == "" || l.escrowed() || l.memory == l.needs || l.mounted == l.needs
}

func (l *lab) check(n Next) {
	st := n.Status
	if n.Wish.Sealed && n.Wish.Round != 0 {
		l.t.Fatal("I18: a sealed site has a round, and with it a token")
	}
	if st.Phase == sealed && l.s.Status.Phase == escrowed && l.needs != st.KeyringDigest {
		l.t.Fatalf("sealed with %s, the data needs %s", st.KeyringDigest, l.needs)
	}
	taken := st.Work == rot && st.Rotated && n.Wish.Kept != "" // from a pod that stays
	if st.Round != l.s.Status.Round && st.SeedVersion == 0 && st.Work != boot && l.s.Provisioned && !taken {
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

// steps are what happens, the usual more often.
var steps = []string{
	"decide", "decide", "decide", "decide", "decide", "poll", "poll", "push", "push", "rotation", "rotation", "clone", "clone",
	"kill", "rotate", "rotate", "withdraw", "reclone", "fall", "wake", "alone", "update", "operator", "lose", "restore", "again", "patch",
}

// I14. Whatever pods and servers die when, the site ends sealed with the keyring that its data needs, and its data is never given up while
// it can be read, nor the pod that has the only copy of its keyring. Operators die all the time: nothing is kept from one decision to the next but the status.
func TestEndsSealed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLab(t)
		l.begin(rapid.SampledFrom([]string{"new", "sealed", "rotating"}).Draw(t, "begin"))
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch what := rapid.SampledFrom(steps).Draw(t, "what"); what {
			case "decide":
				l.decide()
			case "poll", "push", "rotation", "clone":
				l.work(what)
			case "kill":
				if l.s.Rendered.Exists {
					l.startPod()
				}
			default:
				l.order(what)
			}
			_, have := l.s.current()
			if st := l.s.Status; have && !l.readable() && st.Phase == sealed && st.Work == "" && st.Stage == "" && l.s.Provisioned {
				t.Fatalf("sealed, and its data cannot be read: %+v", l.s.Status)
			}
		}
		l.finish()
	})
}

// begin has nothing go wrong until the site is as far as the story begins.
func (l *lab) begin(at string) {
	l.ending = true
	for range 50 {
		switch {
		case at == "new", at == "sealed" && l.s.Status.Phase == sealed, at == "rotating" && l.s.Job.Running:
			l.ending = false
			return
		case at == "rotating" && l.s.Status.Phase == sealed:
			l.order("rotate")
		}
		l.pass()
	}
	l.t.Fatalf("is never %s: %+v", at, l.s.Status)
}

// pass is some time in which all work goes on.
func (l *lab) pass() {
	l.decide()
	for _, what := range []string{"poll", "push", "rotation", "clone"} {
		l.work(what)
	}
}

func (l *lab) finish() {
	l.ending = true
	for range 200 {
		l.wake()
		l.pass()
		if st := l.s.Status; st.Phase == failed && st.KeyringDigest != "" && (st.KeyringDigest == l.mounted || st.KeyringDigest == l.memory) {
			if _, there := l.s.version(st.KeyringSecret); !there {
				l.lost[st.KeyringSecret] = Version{Name: st.KeyringSecret, Number: st.KeyringVersion, Digest: st.KeyringDigest, Annotated: st.KeyringDigest}
			}
		}
		for _, v := range l.lost {
			if v.Digest == l.mounted || v.Digest == l.memory {
				l.restore() // from the memory of the pod
			}
		}
		if v, stored := l.s.newest(func(v Version) bool { return v.Digest == l.needs }); stored && (l.dead || l.s.Pod.Unborn) && l.wish.Sealed {
			// From one version to another: mysqld does not start with the one that the operator took.
			l.s.Status.KeyringSecret, l.s.Status.KeyringVersion, l.s.Status.KeyringDigest = v.Name, v.Number, v.Digest
		}
		if l.dead && l.s.Status.Phase == none {
			// What message says of a group that was made again over a pod whose mysqld cannot start.
			l.s.Rendered, l.s.Pod, l.s.Report, l.says, l.memory = Rendered{}, Pod{}, nil, nil, ""
		}
		if l.s.Pod.Unborn && l.wish.Digest != l.needs || l.s.Pod.Unborn && !l.readable() {
			l.s.Provisioned, l.confirmed = false, true // what it waits for is no help, or nobody has it
		} else if v, copied := l.s.newest(func(v Version) bool { return v.Digest == l.wish.Digest }); l.s.Pod.Unborn && copied {
			v.Name, v.Number = l.wish.Secret, l.wish.Version // a copy
			l.lost[v.Name] = v
			l.restore()
		}
		_, have := l.s.current()
		if l.dead && !l.readable() && (l.s.Alone || l.wish.Sealed || l.s.Status.Phase == failed && !have) {
			// What a person does with a site that does not start.
			l.s.Provisioned, l.confirmed = false, true
		}
		if l.s.Pod.Lost && (l.s.Status.Phase == escrowed || l.named || l.needs == l.kept) && !l.readable() {
			// What a person does with a site whose keyring was never escrowed after its clone, with one whose escrow Secret is gone, and with
			// one that says that its data may hold what was acknowledged.
			l.s.Provisioned, l.confirmed = false, true
		}
	}
	if l.s.Status.Phase != sealed || !l.s.Provisioned || !l.data || l.s.Status.KeyringDigest != l.needs || l.s.TokenRound != 0 {
		l.t.Fatalf("does not end sealed: %+v, needs %s, data %v, pod %+v, clone %q", l.s.Status, l.needs, l.data, l.s.Pod, l.s.Clone)
	}
}
