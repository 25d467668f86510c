// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestTranscripts plays the stories of testdata: what happens to site a of group shop/orders, one command a line.
//
//	boot kept=5 active=a heard      the sidecar starts, with that on its volume
//	tick 2s                         time passes
//	look writable offline ...       MySQL is looked at; also: readonly, silent, gone, restarted, replicates
//	operator epoch=5 active=a hold lease=10s window=1m sent=-1s nonce=other
//	push ... / peer ...             the other origins
//	kept                            the newest statement reaches the volume
//	ask site=b                      a peer asks this sidecar
//	may-open / open outcome=Done    the boot rule on the operator's last answer; the attempt
//	fence stage=ReadOnly            the ladder ends, with proof; "fence failed" without
//
// Every command prints the state and the decision after it.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		st := &story{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return st.play(d) })
	})
}

type story struct {
	t       *testing.T
	now     time.Duration
	s       State
	process int
	answer  Word
}

func (st *story) play(d *datadriven.TestData) string {
	var said string
	switch d.Cmd {
	case "boot":
		st.boot(d)
	case "tick":
		passed, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(st.t, "%v", err)
		}
		st.now += passed
	case "look":
		st.look(d)
	case "operator", "push", "peer":
		said = st.hear(d)
	case "kept":
		k, due := Unkept(st.s)
		if !due {
			return "nothing to write"
		}
		st.s = Keep(st.s, k)
	case "ask":
		said = st.ask(d)
	case "may-open":
		return verdict(MayOpen(st.s, st.answer, at(st.now)), "may open")
	case "open":
		said = st.open(d)
	case "fence":
		st.fence(d)
	default:
		d.Fatalf(st.t, "unknown command %s", d.Cmd)
	}
	return said + st.print()
}

func (st *story) boot(d *datadriven.TestData) {
	var kept Kept
	if d.HasArg("kept") {
		var epoch int64
		active := "a"
		d.ScanArgs(st.t, "kept", &epoch)
		maybe(d, "active", &active)
		kept = Kept{Signed: wire.Signed(fmt.Sprintf("%s@%d", active, epoch)), Statement: statement(epoch, active),
			Verified: true, Heard: d.HasArg("heard")}
	}
	st.s = Boot(newSite().site, newSite().limits, kept, at(st.now))
}

func (st *story) look(d *datadriven.TestData) {
	if d.HasArg("restarted") {
		st.process++
	}
	f := Facts{Running: true, Process: fmt.Sprint("mysqld", st.process), Answered: true, Watched: true}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "writable":
			f.Writable = true
		case "readonly":
			f.SuperReadOnly = true
		case "offline":
			f.Offline = true
		case "replicates":
			f.Replicates = true
		case "silent":
			f.Answered = false
		case "gone":
			f = Facts{}
		}
	}
	st.s = observe(st.s, f)
}

func (st *story) hear(d *datadriven.TestData) string {
	var epoch int64
	var active, lease, window, sent string
	nonce := "n"
	d.ScanArgs(st.t, "epoch", &epoch)
	d.ScanArgs(st.t, "active", &active)
	maybe(d, "lease", &lease)
	maybe(d, "window", &window)
	maybe(d, "sent", &sent)
	maybe(d, "nonce", &nonce)
	told := statement(epoch, active)
	told.Hold, told.Nonce = d.HasArg("hold"), nonce
	if lease != "" {
		told.LeaseTimeoutMillis = st.duration(lease).Milliseconds()
	}
	if window != "" {
		told.Windows = []wire.Window{{Site: "a", Purpose: wire.WindowClone, Deadline: at(st.now + st.duration(window)).Wall}}
	}
	w := Word{
		Origin: Origin(strings.ToUpper(d.Cmd[:1]) + d.Cmd[1:]), Signed: wire.Signed(fmt.Sprintf("%s@%d", active, epoch)),
		Statement: told, Nonce: "n", SentAt: st.now + st.duration(sent),
	}
	if w.Origin == Operator {
		st.answer = w
	}
	var a Adoption
	st.s, a = Adopt(st.s, w, at(st.now))
	said := verdict(a.Refusal, "taken")
	if a.Renewed {
		said += ", lease renewed"
	}
	return said + "\n"
}

// maybe reads an argument that need not be there.
func maybe(d *datadriven.TestData, key string, into *string) {
	for _, arg := range d.CmdArgs {
		if arg.Key == key {
			*into = arg.Vals[0]
		}
	}
}

func (st *story) duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		st.t.Fatal(err)
	}
	return parsed
}

func (st *story) ask(d *datadriven.TestData) string {
	var site string
	d.ScanArgs(st.t, "site", &site)
	var r Refusal
	var signed wire.Signed
	st.s, signed, r = Answer(st.s, site, at(st.now))
	return verdict(r, "answered "+string(signed)) + "\n"
}

func (st *story) open(d *datadriven.TestData) string {
	outcome := "Done"
	maybe(d, "outcome", &outcome)
	if r := MayOpen(st.s, st.answer, at(st.now)); r.Reason != "" {
		return verdict(r, "") + "\n"
	}
	st.s = Opened(Opening(st.s), Outcome(outcome))
	return "opened: " + outcome + "\n"
}

func (st *story) fence(d *datadriven.TestData) {
	var stage string
	maybe(d, "stage", &stage)
	cause := Decide(st.s, at(st.now)).Cause
	st.s = Fenced(Fencing(st.s), LastFence{cause, wire.FenceStage(stage)}, !d.HasArg("failed"))
}

func verdict(r Refusal, otherwise string) string {
	if r.Reason == "" {
		return otherwise
	}
	return fmt.Sprintf("no, %s: %s", r.Reason, r.Message)
}

func (st *story) print() string {
	s, now := st.s, at(st.now)
	var b strings.Builder
	fmt.Fprintf(&b, "%v:", st.now)
	if w := s.Newest(); w.Epoch == 0 {
		b.WriteString(" no statement")
	} else {
		fmt.Fprintf(&b, " epoch %d names %s", w.Epoch, w.ActiveSite)
		if w.Hold {
			b.WriteString(", hold")
		}
		if s.Epoch() != w.Epoch {
			fmt.Fprintf(&b, ", epoch %d on the volume", s.Epoch())
		}
	}
	switch {
	case s.Open():
		b.WriteString("; open")
	case s.Exposed():
		b.WriteString("; exposed")
	default:
		b.WriteString("; closed")
	}
	fmt.Fprintf(&b, "; lease %v", LeaseLeft(s, now))
	for _, v := range Vouched(s, now) {
		fmt.Fprintf(&b, "; answered %s under a lower epoch %v ago", v.Site, time.Duration(v.AgeMillis)*time.Millisecond)
	}
	d := Decide(s, now)
	fmt.Fprintf(&b, "\n-> %s", d.Do)
	if d.Cause != "" {
		fmt.Fprintf(&b, " %s", d.Cause)
	}
	if d.Why != "" {
		fmt.Fprintf(&b, " (%s)", d.Why)
	}
	if d.Kill {
		b.WriteString(", kill mysqld")
	}
	b.WriteString("\n")
	return b.String()
}
