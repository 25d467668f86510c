// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// look is one look at a group at rest of which something is changed, and all that is to come of it. What is given are commands of the
// transcripts, and those of prepare, with semicolons between them.
type look struct {
	name, given string
	// want is what brief says; says and never are about what is said to people.
	want, says, never string
}

// atRest is a group with the master on east and replicas on south and west, for which there is nothing to do.
const atRest = `site east south west; mysql east epoch=3; status active=east run=e1;
	see east master run=e1 keys=100 offset=500; traffic east; label east master;
	see south replica=east run=s1 keys=100 offset=500; label south replica;
	see west replica=east run=w1 keys=100 offset=500; label west replica;
	still 1h; linked south 1h; linked west 1h`

func TestTheGroupAtRest(t *testing.T) {
	runLooks(t, []look{{name: "at rest", want: "ready AsExpected", says: "2 of 2 replicas have caught up"}})
}

func runLooks(t *testing.T, looks []look) {
	t.Helper()
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			w := newWorld()
			w.prepare(t, atRest)
			w.prepare(t, l.given)
			d := Decide(w.s, w.m)
			if err := d.Check(w.s); err != nil {
				t.Error(err)
			}
			if got := d.brief(w.s); got != l.want {
				t.Errorf("%s\n got: %s\nwant: %s", l.given, got, l.want)
			}
			said := d.Message
			for _, e := range d.Events {
				said += "\n" + e.Message
			}
			if !strings.Contains(said, l.says) || l.never != "" && strings.Contains(said, l.never) {
				t.Errorf("it says %q, which should have %q and not %q", said, l.says, l.never)
			}
		})
	}
}

// prepare changes the world before the look:
//
//	traffic S / quit S, label S ROLE, trouble S TEXT, unlisted S TEXT, names S MASTER, ending S   of pods: names is what one says that it follows, whatever
//	                                                 its role, and one that ends still answers
//	born S AGE                                       when the container of a pod began
//	cut S AGE, off S AGE, on S AGE                   when that was last done to a pod
//	nohome                                           MySQL is active nowhere
//	move KIND FROM TO METHOD REASON EPOCH RUN AGE    a transition is under way; - is nothing
//	last KIND FROM TO EPOCH AGE                      the last promotion
//	held S RUN                                       the process of the master that a replica followed when both were last seen
//	away S AGE (and silent for as long, if it is), linked S AGE, apart S AGE, filled S AGE, still AGE, hung AGE, failed [EPOCH] AGE, only AGE, began AGE   what is remembered
func (w *world) prepare(t *testing.T, commands string) {
	t.Helper()
	for command := range strings.SplitSeq(commands, ";") {
		words := strings.Fields(command)
		if len(words) == 0 {
			continue
		}
		if !w.given(t, words) && !w.remembered(t, words) {
			w.command(t, words)
		}
	}
}

func (w *world) given(t *testing.T, words []string) bool {
	t.Helper()
	ago := func(word string) time.Time { return w.s.Now.Add(-duration(t, word)) }
	or := func(word string) string { return strings.TrimPrefix(word, "-") }
	switch words[0] {
	case "traffic", "quit":
		w.pod(words[1]).Traffic = words[0] == "traffic"
	case "label":
		w.pod(words[1]).RoleLabel = v1alpha1.CacheRole(or(words[2]))
	case "trouble":
		w.pod(words[1]).Trouble = strings.Join(words[2:], " ")
	case "unlisted":
		w.pod(words[1]).Unlisted = strings.Join(words[2:], " ")
	case "names":
		w.pod(words[1]).Following = words[2]
	case "ending":
		w.pod(words[1]).Exists = false
	case "born":
		w.pod(words[1]).Began = ago(words[2])
	case "cut":
		w.pod(words[1]).CutAt = ago(words[2])
	case "off":
		w.pod(words[1]).TrafficOffAt = ago(words[2])
	case "on":
		w.pod(words[1]).TrafficOnAt = ago(words[2])
	case "nohome":
		w.s.MySQL.Active = ""
	case "move":
		w.s.Status.Transition = &Transition{
			Kind: v1alpha1.CacheMove(words[1]), From: or(words[2]), To: words[3], Method: v1alpha1.CacheMethod(words[4]), Reason: Reason(or(words[5])),
			Epoch: number64(t, "="+words[6]), ToRun: or(words[7]), StartedAt: metav1.NewMicroTime(ago(words[8])),
		}
		if w.m.Began.IsZero() { // by the process that looks at it now
			w.m.Began = ago(words[8])
		}
	case "last":
		w.s.Status.Last = &Promotion{
			Kind: v1alpha1.CacheMove(words[1]), From: words[2], To: words[3], Epoch: number64(t, "="+words[4]), At: metav1.NewMicroTime(ago(words[5])),
		}
	default:
		return false
	}
	return true
}

func (w *world) remembered(t *testing.T, words []string) bool {
	t.Helper()
	if words[0] == "held" {
		w.m.Sites = maps.Clone(w.m.Sites)
		is := w.m.Sites[words[1]]
		is.HeldRun = words[2]
		w.m.Sites[words[1]] = is
		return true
	}
	ago := w.s.Now
	switch words[0] {
	case "away", "linked", "apart", "filled", "still", "hung", "failed", "only", "began":
		ago = ago.Add(-duration(t, words[len(words)-1]))
	default:
		return false
	}
	switch words[0] {
	case "away", "linked", "apart", "filled":
		sites := map[string]SiteMemory{}
		for site, is := range w.m.Sites {
			sites[site] = is
		}
		is := sites[words[1]]
		switch words[0] {
		case "away":
			is.AwaySince, is.MissedSince, is.SilentSince = ago, ago, ago
		case "linked":
			is.LinkedSince = ago
		case "filled":
			is.FullAt, is.FullTold = ago, true
		default:
			is.ApartSince = ago
		}
		sites[words[1]] = is
		w.m.Sites = sites
	case "still":
		w.m.StillSince, w.m.StillEpoch = ago, w.s.MySQL.Epoch
	case "hung":
		w.m.HungSince = ago
	case "failed":
		if w.m.FailedAt = ago; len(words) > 2 {
			w.m.FailedEpoch = number64(t, "="+words[1])
		}
	case "only":
		w.m.OnlyAt = ago
	case "began":
		w.m.Began = ago
	}
	return true
}

// brief is all that a decision leads to, in one line.
func (d Decision) brief(s Snapshot) string {
	words := "not "
	switch {
	case d.Keep:
		words = "as before "
	case d.Ready:
		words = "ready "
	}
	out := []string{words + string(d.Reason)}
	if t := d.Status.Transition; d.Persist && t != nil {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s>%s %s %s", t.Kind, t.From, t.To, t.Method, t.Reason)))
	} else if d.Persist {
		out = append(out, "active "+d.Status.ActiveSite+" "+d.Status.ActiveRun)
	}
	for _, a := range d.Actions {
		out = append(out, a.String())
	}
	for _, e := range d.Events {
		out = append(out, "event "+string(e.Reason))
	}
	if p := d.Status.Last; p != nil && p != s.Status.Last {
		out = append(out, strings.TrimSpace(fmt.Sprintf("record %s %s>%s %s %s", p.Kind, p.From, p.To, p.Method, p.Reason)))
	}
	if a := d.Answer; a != nil {
		out = append(out, strings.TrimSpace(fmt.Sprintf("answer done=%t failed=%t %s", a.Done, a.Failed, a.Reason)))
	}
	if d.Memory.FailedEpoch != 0 {
		out = append(out, fmt.Sprint("failed in ", d.Memory.FailedEpoch))
	}
	if !d.Memory.HungSince.IsZero() {
		out = append(out, "hung")
	}
	if d.Memory.OnlyAt.Equal(s.Now) {
		out = append(out, "alone")
	}
	if d.Next != 0 {
		out = append(out, "next "+d.Next.String())
	}
	return strings.Join(out, "; ")
}
