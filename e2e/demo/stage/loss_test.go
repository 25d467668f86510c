// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// What a site lost that was cloned since is known from its kept logs alone. Each case falsifies one thing that is compared.
func TestCheckKeptLoss(t *testing.T) {
	const uuid = "11111111-1111-1111-1111-111111111111"
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	// logs are the numbers of transactions that a site has in its logs, its own or another's.
	logs := func(site string, own bool, numbers ...int) (all []commits.Transaction) {
		for _, n := range numbers {
			at := noon.Add(time.Duration(n) * time.Second)
			one := commits.Transaction{Site: site, GTID: fmt.Sprintf("%s:%d", uuid, n), At: at, Original: at, Server: 1, Writer: 1}
			if !own {
				one.Writer = 2
			}
			all = append(all, one)
		}
		return all
	}
	record := func(lost int64, exact bool) v1alpha1.FailoverRecord {
		return v1alpha1.FailoverRecord{
			Epoch: 2, From: "east", To: "west", Kind: v1alpha1.FailoverEmergency, LostTransactions: lost, LossExact: exact,
			OpenedAt: metav1.NewMicroTime(noon.Add(10 * time.Second)),
		}
	}
	row := func(site string) journal.Commit { return journal.Commit{Server: journal.Server{Site: site}} }
	kept := append(logs("east", true, 1, 2, 3, 4), logs("west", false, 1, 2)...)
	for name, tt := range map[string]struct {
		v     Verdict
		logs  []commits.Transaction
		wrong bool
	}{
		"as the record says":                 {Verdict{Records: []v1alpha1.FailoverRecord{record(2, true)}, Missing: []journal.Commit{row("east"), row("east")}}, kept, false},
		"nobody was promised one of the two": {Verdict{Records: []v1alpha1.FailoverRecord{record(2, true)}, Missing: []journal.Commit{row("east")}}, kept, false},
		"nothing happened":                   {Verdict{}, kept, false},
		"more than the record says":          {Verdict{Records: []v1alpha1.FailoverRecord{record(1, true)}}, kept, true},
		"less than the record says":          {Verdict{Records: []v1alpha1.FailoverRecord{record(3, true)}}, kept, true},
		"a clone brought it":                 {Verdict{Records: []v1alpha1.FailoverRecord{record(1, true)}, Held: gtid.MustParse(uuid + ":3")}, kept, false},
		"not exact":                          {Verdict{Records: []v1alpha1.FailoverRecord{record(2, false)}}, kept, true},
		"missing though nothing moved":       {Verdict{Missing: []journal.Commit{row("east")}}, kept, true},
		"missing of a site that lost none":   {Verdict{Records: []v1alpha1.FailoverRecord{record(2, true)}, Missing: []journal.Commit{row("south")}}, kept, true},
		"more missing than was lost": {Verdict{
			Records: []v1alpha1.FailoverRecord{record(2, true)}, Missing: []journal.Commit{row("east"), row("east"), row("east")},
		}, kept, true},
		"a later turn is still on its way": {Verdict{Records: []v1alpha1.FailoverRecord{record(2, true)}}, append(logs("east", true, 11, 12), kept...), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.v.CheckKeptLoss(Testimony{Logs: tt.logs}); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
		})
	}
	if err := (Verdict{}).CheckKeptLoss(Testimony{Unread: "they are encrypted"}); err == nil {
		t.Error("logs that nobody read prove that nothing was lost")
	}
}
