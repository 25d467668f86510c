// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// I28: the very decision that has a site opened says with what its epoch began, and it is written before anything is done.
func TestWhatAnEpochBeganWithIsWrittenBeforeItsSiteOpensI28(t *testing.T) {
	s := factstest.Under(v1alpha1.FailoverEmergency)
	s.Sites[0].Sidecar.Report.Fenced, s.Sites[0].MySQL.SuperReadOnly = true, true
	s.Sites[1].MySQL.ServerUUID = "v"
	s.Status.Epochs = []v1alpha1.EpochRecord{{Epoch: 3, Site: "a"}}
	var m Memory
	var d Decision
	for range 20 {
		d = Decide(s, m)
		if m = d.Memory; d.Verdict == VerdictPromote {
			break
		}
		s.Now = s.Now.Add(2 * time.Second)
	}
	if d.Verdict != VerdictPromote || !d.Persist {
		t.Fatalf("%s: %s", d.Verdict, d.Message)
	}
	if len(d.Status.Epochs) != 2 || d.Status.Epochs[1].Epoch != 3 {
		t.Fatalf("I28: epochs %+v", d.Status.Epochs)
	}
	got := d.Status.Epochs[0]
	if got.Epoch != 4 || got.Site != "b" || got.ServerUUID != "v" || got.Kind != v1alpha1.FailoverEmergency || !got.PromotedAt.Time.Equal(s.Now) ||
		got.GTIDExecuted != factstest.Set("A:1-9").String() {
		t.Errorf("I28: %+v", got)
	}
	// What is seen later says the same once: as often as it is decided.
	s.Status = d.Status
	s.Sites[1].Sidecar.Report.Writable, s.Sites[1].Sidecar.Report.Answered = true, true
	s.Sites[1].MySQL.SuperReadOnly, s.Sites[1].MySQL.ReadOnly = false, false
	s.Sites[1].MySQL.Executed = factstest.Set("A:1-9,B:1-5")
	after := complete(s, Decision{Status: s.Status, Memory: m})
	if len(after.Status.Epochs) != 2 || after.Status.Epochs[0] != got {
		t.Errorf("I28: once it is open: %+v", after.Status.Epochs)
	}
}

// I28: also what a person accepts, and what a site did under an epoch that status did not know.
func TestWhatAnEpochBeganWithFollowsWhatIsAcceptedI28(t *testing.T) {
	s := factstest.Under(v1alpha1.FailoverEmergency)
	s.Status.Transition.GatePassedAt = s.Now
	s.Status.Epochs = []v1alpha1.EpochRecord{{Epoch: 4, Site: "b", GTIDExecuted: factstest.Set("A:1-9").String()}}
	less := s.Sites[1]
	less.MySQL.Executed = factstest.Set("A:1-5")
	d := accepted(s, Decision{Status: s.Status}, less)
	if len(d.Status.Epochs) != 1 || d.Status.Epochs[0].GTIDExecuted != factstest.Set("A:1-5").String() || d.Status.Epochs[0].Kind != v1alpha1.FailoverForced {
		t.Errorf("I28: %+v", d.Status.Epochs)
	}
	behind := factstest.Under(v1alpha1.FailoverEmergency)
	behind.Sites[2].Sidecar.Report.Epoch = 8
	behind.Status.Epochs = []v1alpha1.EpochRecord{{Epoch: 11, Site: "a"}, {Epoch: 9, Site: "a"}, {Epoch: 4, Site: "b"}}
	d = catchUp(behind, Decision{Status: behind.Status}, "c")
	if len(d.Status.Epochs) != 2 || d.Status.Epochs[0].Epoch != 9 || d.Status.Epochs[0].Site != "c" || d.Status.Epochs[1].Epoch != 4 {
		t.Errorf("I28: %+v", d.Status.Epochs)
	}
}

// Status is bounded whatever the sets are: one that is too large for the store would stop the next failover.
func TestEpochsAreBounded(t *testing.T) {
	s := factstest.Under(v1alpha1.FailoverPlanned)
	transition := *s.Status.Transition
	for i := range int64(2 * epochsKept) {
		s.Status.Epochs = append(s.Status.Epochs, v1alpha1.EpochRecord{Epoch: 3 - i, PromotedAt: metav1.NewMicroTime(factstest.Start)})
	}
	if d := (Decision{Status: s.Status}).noteEpoch(s, transition); len(d.Status.Epochs) != epochsKept || d.Status.Epochs[0].Epoch != 4 || d.Status.Epochs[1].Epoch != 3 {
		t.Errorf("%d are kept, the newest %+v", len(d.Status.Epochs), d.Status.Epochs[0])
	}
	for i := range s.Status.Epochs {
		s.Status.Epochs[i].GTIDExecuted = strings.Repeat("x", epochsBytes/8)
	}
	if d := (Decision{Status: s.Status}).noteEpoch(s, transition); len(d.Status.Epochs) != 9 {
		t.Errorf("%d large ones are kept", len(d.Status.Epochs))
	}
	var many []string
	for i := range 2 * epochsBytes / 40 {
		many = append(many, "aaaaaaaa-0000-0000-0000-"+strings.Repeat("0", 12-len(strconv.Itoa(i)))+strconv.Itoa(i)+":1")
	}
	transition.ToExecuted = gtid.MustParse(strings.Join(many, ","))
	if d := (Decision{Status: s.Status}).noteEpoch(s, transition); len(d.Status.Epochs) != 1 || d.Status.Epochs[0].Epoch != 4 {
		t.Errorf("%d are kept beside one that is larger than all", len(d.Status.Epochs))
	}
}
