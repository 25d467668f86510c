// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/wire"
)

// model drives one State with random events, in any order that the world could bring, and keeps its own account of
// what was said, so that it can check the promises without asking the guards.
type model struct {
	s   State
	now time.Duration

	// writes is what MySQL really does: true if it accepts commits of clients.
	writes  bool
	offline bool
	process int
	runs    bool

	answer      Word
	disk        Kept
	acked       int64
	lastGood    time.Duration
	everGood    bool
	lease       time.Duration
	highest     int64
	activeAt    map[int64]string
	toldUnder   map[string]map[int64]time.Duration
	openedUnder int64
	// deadline is what the supervisor of mysqld was told last, as sidecar/watchdog keeps it; right is the send time of the
	// last good exchange that found this site named.
	deadline time.Duration
	right    time.Duration
}

func newModel() *model {
	s := newSite()
	return &model{s: s, lease: s.limits.Lease, activeAt: map[int64]string{}, toldUnder: map[string]map[int64]time.Duration{}}
}

func drawWord(t *rapid.T, m *model) Word {
	epoch := max(1, m.highest+rapid.Int64Range(-1, 2).Draw(t, "step"))
	active, known := m.activeAt[epoch]
	if !known || rapid.IntRange(0, 19).Draw(t, "wrongSite") == 0 {
		active = rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "active")
	}
	st := statement(epoch, active)
	st.Hold = rapid.IntRange(0, 4).Draw(t, "hold") == 0
	if rapid.IntRange(0, 4).Draw(t, "lease") == 0 {
		st.LeaseTimeoutMillis = m.lease.Milliseconds() + 10_000 // the pod's own is shorter
	}
	st.Nonce = rapid.SampledFrom([]string{"n", "n", "n", "old", ""}).Draw(t, "nonce")
	if rapid.IntRange(0, 9).Draw(t, "otherGroup") == 0 {
		st.Group = "bills"
	}
	if rapid.IntRange(0, 4).Draw(t, "window") == 0 {
		st.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: at(m.now + 5*time.Second).Wall}}
	}
	return Word{
		Origin: rapid.SampledFrom([]Origin{Operator, Operator, Push, Peer}).Draw(t, "origin"),
		Signed: wire.Signed(rapid.StringMatching("[a-z]{4}").Draw(t, "signed")), Statement: st, Nonce: "n",
		SentAt: m.now - time.Duration(rapid.Int64Range(-200, 4000).Draw(t, "age"))*time.Millisecond,
	}
}

func (m *model) hear(t *rapid.T) {
	w := drawWord(t, m)
	before := m.s.Newest()
	var a Adoption
	m.s, a = Adopt(m.s, w, at(m.now))
	st := w.Statement
	if a.Taken {
		if st.Group != "orders" || st.Epoch < before.Epoch {
			t.Fatalf("took %+v after %+v", st, before)
		}
		if st.Epoch == before.Epoch && st.ActiveSite != before.ActiveSite {
			t.Fatalf("I1: two sites under epoch %d", st.Epoch)
		}
		m.activeAt[st.Epoch] = st.ActiveSite
		m.highest = st.Epoch
		if m.openedUnder > 0 && st.Epoch == m.openedUnder+1 && st.ActiveSite == "a" {
			m.openedUnder = st.Epoch
		}
	}
	if after := m.s.Newest(); w.Origin != Operator && after.Epoch == before.Epoch {
		was, had := before.WindowFor("a", at(m.now).Wall)
		is, has := after.WindowFor("a", at(m.now).Wall)
		if after.Hold != before.Hold || after.LeaseTimeoutMillis != before.LeaseTimeoutMillis || had != has || !was.Deadline.Equal(is.Deadline) {
			t.Fatalf("I3: %s of %+v changed %+v", w.Origin, st, before)
		}
	}
	m.answer = w // also words that must open nothing
	if a.Renewed {
		if w.Origin == Push || st.Group != "orders" || st.Epoch != m.highest || w.SentAt > m.now {
			t.Fatalf("I4: lease renewed by %+v at %v", w, m.now)
		}
		if w.Origin == Operator && st.Nonce != "n" {
			t.Fatalf("I4: lease renewed by an old answer")
		}
		if !m.everGood || w.SentAt > m.lastGood {
			m.lastGood, m.everGood = w.SentAt, true
		}
		if m.s.Names() {
			m.right = max(m.right, w.SentAt)
		}
	}
}

func (m *model) persist(t *rapid.T) {
	k, due := Unkept(m.s)
	if !due {
		return
	}
	m.disk = k
	if rapid.Bool().Draw(t, "crashBeforeKnown") {
		m.restart()
		return
	}
	m.s = Keep(m.s, k)
}

func (m *model) ack(t *rapid.T) {
	epoch := Report(m.s, at(m.now)).Epoch
	if epoch > m.disk.Statement.Epoch {
		t.Fatalf("I5: acknowledged epoch %d with %d on the volume", epoch, m.disk.Statement.Epoch)
	}
	m.acked = max(m.acked, epoch)
}

func (m *model) vouch(t *rapid.T) {
	asking := rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "asking")
	var signed wire.Signed
	m.s, signed, _ = Answer(m.s, asking, at(m.now))
	if signed == "" {
		return
	}
	epoch := m.s.Newest().Epoch
	if asking == "a" || epoch < m.acked || epoch > m.disk.Statement.Epoch {
		t.Fatalf("I2, I5: vouched to %q with epoch %d, acknowledged %d, on the volume %d",
			asking, epoch, m.acked, m.disk.Statement.Epoch)
	}
	if m.toldUnder[asking] == nil {
		m.toldUnder[asking] = map[int64]time.Duration{}
	}
	m.toldUnder[asking][epoch] = m.now
}

// look is what a look at MySQL sees now.
func (m *model) look() Facts {
	if !m.runs {
		return Facts{}
	}
	return Facts{Running: true, Process: string(rune('A' + m.process%26)), Answered: true, Watched: true,
		Writable: m.writes, SuperReadOnly: !m.writes, Offline: m.offline}
}

func (m *model) observe(t *rapid.T) {
	f := m.look()
	if f.Running && rapid.IntRange(0, 3).Draw(t, "silent") == 0 {
		f = Facts{Running: true, Process: f.Process}
	}
	m.s = observe(m.s, f)
	if f.Answered && !m.writes || !f.Running {
		m.openedUnder = 0
	}
	if f.Answered && m.writes && !m.s.Exposed() {
		t.Fatal("MySQL was seen writable and counts as closed")
	}
}

func (m *model) open(t *rapid.T) {
	if m.s = observe(m.s, m.look()); !m.writes {
		m.openedUnder = 0
	}
	if MayOpen(m.s, m.answer, at(m.now)).Reason != "" {
		return
	}
	w := m.answer
	switch {
	case m.writes && !(m.offline && m.openedUnder == w.Statement.Epoch):
		t.Fatalf("I3: opened what is writable, offline %v, opened under %d, on %+v", m.offline, m.openedUnder, w)
	case w.Origin != Operator, w.Statement.Nonce != "n", w.Statement.Group != "orders":
		t.Fatalf("I3: opened on %+v", w)
	case w.Statement.ActiveSite != "a", w.Statement.Hold, w.Statement.Epoch < m.highest, w.Statement.Epoch < m.acked:
		t.Fatalf("I1, I2: opened on %+v, highest %d", w, m.highest)
	case m.now-w.SentAt >= 2*time.Second, m.now < w.SentAt:
		t.Fatalf("I3: opened %v after the question", m.now-w.SentAt)
	case m.disk.Statement.Epoch < w.Statement.Epoch:
		t.Fatalf("I5: opened under %d with %d on the volume", w.Statement.Epoch, m.disk.Statement.Epoch)
	}
	outcome := rapid.SampledFrom([]Outcome{Done, Done, Refused, Failed, Unsure}).Draw(t, "outcome")
	m.s = Opened(Opening(m.s), outcome)
	if outcome != Refused {
		m.writes, m.offline = outcome == Done || rapid.Bool().Draw(t, "tookEffect"), false
	}
	if outcome == Done {
		m.openedUnder = w.Statement.Epoch
	}
}

func (m *model) decide(t *rapid.T) {
	d := Decide(m.s, at(m.now))
	if d.Do == Fence {
		m.fence(t, d)
		return
	}
	if !m.s.Exposed() || d.Why == InWindow {
		return
	}
	// It may accept commits and is left alone: then all of this must hold.
	newest := m.s.Newest()
	switch {
	case newest.ActiveSite != "a":
		t.Fatalf("I1: open while %s is named", newest.ActiveSite)
	case m.openedUnder != newest.Epoch:
		t.Fatalf("I2, I3: open under %d, newest %d", m.openedUnder, newest.Epoch)
	case !m.everGood || m.now-m.lastGood >= m.lease:
		t.Fatalf("I4: open at %v, last good exchange %v", m.now, m.lastGood)
	}
	if next, ok := NextChange(m.s, at(m.now)); !ok || Decide(m.s, at(m.now+next)).Do != Fence {
		t.Fatalf("I4: left alone after its lease, which ends in %v", next)
	}
}

func (m *model) fence(t *rapid.T, d Decision) {
	stage := rapid.SampledFrom([]wire.FenceStage{wire.FenceReadOnly, wire.FenceKillServer}).Draw(t, "stage")
	proven := rapid.IntRange(0, 4).Draw(t, "proven") > 0
	if d.Kill && stage != wire.FenceKillServer && proven {
		t.Skip("the shell kills when it is told to")
	}
	if proven {
		m.writes, m.offline, m.openedUnder = false, false, 0
		if stage == wire.FenceKillServer {
			m.process++
		}
	}
	m.s = Fenced(Fencing(m.s), LastFence{d.Cause, stage}, proven)
	if got := Decide(m.s, at(m.now)).Do; proven != (got != Fence) {
		t.Fatalf("after a fence, proven %v: %s", proven, got)
	}
}

// restart is a new run of the sidecar on the same volume beside the same mysqld.
func (m *model) restart() {
	m.s = Boot(m.s.site, m.s.limits, m.disk, at(m.now))
	m.highest, m.everGood, m.openedUnder, m.answer = m.disk.Statement.Epoch, false, 0, Word{}
	m.toldUnder = map[string]map[int64]time.Duration{}
}

func (m *model) mysqld(t *rapid.T) {
	switch rapid.SampledFrom([]string{"crash", "start", "openedByHand", "closedByHand", "offlineByHand", "window"}).Draw(t, "mysqld") {
	case "crash":
		m.runs, m.writes, m.offline = false, false, false
	case "start":
		if !m.runs {
			m.runs, m.writes, m.offline = true, false, false
			m.process++
		}
	case "openedByHand":
		m.writes = m.runs
	case "closedByHand":
		m.writes = false
	case "offlineByHand":
		m.offline = m.runs
	case "window":
		if m.runs && m.openedUnder == 0 {
			m.writes, m.offline = true, true
		}
	}
}

func (m *model) vouchedAges(t *rapid.T) {
	want := map[string]int64{}
	for site, told := range m.toldUnder {
		for epoch, when := range told {
			if epoch < m.s.Newest().Epoch {
				age := (m.now - when).Milliseconds()
				if known, ok := want[site]; !ok || age < known {
					want[site] = age
				}
			}
		}
	}
	got := map[string]int64{}
	for _, v := range Vouched(m.s, at(m.now)) {
		got[v.Site] = v.AgeMillis
	}
	if !maps.Equal(want, got) {
		t.Fatalf("vouched: want %v, got %v", want, got)
	}
}

// I1 to I5, whatever happens in whatever order.
func TestPromisesHoldI1I2I3I4I5(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		t.Repeat(map[string]func(*rapid.T){
			"hear": m.hear, "hearAgain": m.hear, "persist": m.persist, "ack": m.ack, "vouch": m.vouch,
			"observe": m.observe, "open": m.open, "decide": m.decide, "mysqld": m.mysqld,
			"tick": func(t *rapid.T) {
				m.now += time.Duration(rapid.Int64Range(1, 8000).Draw(t, "millis")) * time.Millisecond
			},
			"restart": func(*rapid.T) { m.restart() },
			"":        m.check,
		})
	})
}

// watchdog is the deadline after an event, and what must hold of it: whatever was opened here ends by itself (I4).
func (m *model) watchdog(t *rapid.T) {
	told := Watch(m.s, at(m.now))
	if !told.Sooner || m.deadline == 0 || told.Until < m.deadline {
		m.deadline = told.Until
	}
	if !m.writes || m.openedUnder == 0 {
		return
	}
	if limit := m.right + m.lease + m.s.limits.Fence; m.deadline == 0 || m.deadline > limit {
		t.Fatalf("I4: opened under %d, the supervisor was told %v, the lease and the ladder end at %v", m.openedUnder, m.deadline, limit)
	}
}

// check runs after every event.
func (m *model) check(t *rapid.T) {
	m.watchdog(t)
	m.vouchedAges(t)
	s := m.s
	if s.kept.Statement.Epoch > s.word.Epoch || s.openEpoch > s.word.Epoch || (s.openEpoch > 0 && !s.exposed) {
		t.Fatalf("the state broke its own invariants: %+v", s)
	}
	if s.word.Epoch != m.highest {
		t.Fatalf("newest epoch %d, heard %d", s.word.Epoch, m.highest)
	}
	if s.Epoch() < m.acked && m.disk.Statement.Epoch < m.acked {
		t.Fatalf("I5: acknowledged %d, on the volume %d", m.acked, m.disk.Statement.Epoch)
	}
}
