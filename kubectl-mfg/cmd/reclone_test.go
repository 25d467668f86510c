// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

func TestReclone(t *testing.T) {
	answer := func(outcome v1alpha1.RequestOutcome, message string) func(*fakeAPI) {
		return func(f *fakeAPI) { recloneAnswer(f, outcome, v1alpha1.AnswerCompleted, message) }
	}
	tests := map[string]struct {
		args, stdin string
		tick        func(*fakeAPI)
		code        int
		patched     []map[string]any
		want        string
	}{
		"Done":      {"madrid", "orders\n", answer(v1alpha1.RequestDone, "it holds the data of paris"), cli.ExitHealthy, []map[string]any{{v1alpha1.AnnotationRecloneSite: "madrid"}}, "madrid: done, it holds"},
		"Confirmed": {"madrid --confirm-data-loss --yes", "", answer(v1alpha1.RequestDone, "x"), cli.ExitHealthy, []map[string]any{{v1alpha1.AnnotationRecloneSite: "madrid:confirm"}}, "done"},
		"Refused":   {"madrid --yes", "", answer(v1alpha1.RequestRefused, "madrid has transactions that nobody else has"), cli.ExitRefused, []map[string]any{{v1alpha1.AnnotationRecloneSite: "madrid"}}, "nobody else has"},
		"Active":    {"paris --yes", "", nil, cli.ExitRefused, nil, "move the role first"},
		"Unknown":   {"rome --yes", "", nil, cli.ExitRefused, nil, "no site"},
		"NoName":    {"madrid", "y\n", nil, cli.ExitUsage, nil, "not confirmed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			o := runOptions{stdin: tc.stdin, tick: func(int) {
				if tc.tick != nil {
					tc.tick(f)
				}
			}}
			got := run(t, f, o, append([]string{"reclone", "orders", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d: %+v", got.code, tc.code, got)
			}
			if diff := cmp.Diff(tc.patched, f.patched); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is lost was shown for a copy of the site that was active then. After a failover it is another question.
func TestRecloneAfterAFailoverMeanwhile(t *testing.T) {
	for name, move := range map[string]func(*v1alpha1.MysqlFailoverGroupStatus){
		"to another site": func(s *v1alpha1.MysqlFailoverGroupStatus) { s.ActiveSite, s.Epoch = "frankfurt", s.Epoch+1 },
		"there and back":  func(s *v1alpha1.MysqlFailoverGroupStatus) { s.Epoch += 2 },
	} {
		f := loadHealthy(t)
		f.conflicts = 1
		moved := false
		got := run(t, f, runOptions{tick: func(int) {
			if !moved {
				moved = true
				move(&f.groups[0].Status)
			}
		}}, strings.Fields("reclone orders madrid -n shop --yes --confirm-data-loss")...)
		if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "meanwhile") || len(f.patched) != 0 || f.groups[0].Annotations[v1alpha1.AnnotationRecloneSite] != "" {
			t.Errorf("%s: %+v, asked %v", name, got, f.patched)
		}
	}
}

// TestRecloneWaitsForTheReplica: a site that holds the data is no candidate before it replicates. The command ends when a planned failover to it can
// be asked for, and not before; a site that never replicates does not hold it up for good.
func TestRecloneWaitsForTheReplica(t *testing.T) {
	for name, tc := range map[string]struct {
		replicatesAt int
		want         string
	}{
		"Attaches": {10, "madrid: done, it holds the data of paris\n"},
		"Never":    {1 << 30, "madrid: done, it holds the data of paris; it does not replicate yet: kubectl mfg status orders -n shop\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			looks, replica := 0, false
			got := run(t, f, runOptions{tick: func(int) {
				looks++
				recloneAnswer(f, v1alpha1.RequestDone, v1alpha1.AnswerCompleted, "it holds the data of paris")
				f.groups[0].Status.Sites[2].State = v1alpha1.SiteCloning
				if replica = looks >= tc.replicatesAt; replica {
					f.groups[0].Status.Sites[2].State = v1alpha1.SiteReplica
				}
			}}, strings.Fields("reclone orders madrid -n shop --yes")...)
			if got.code != cli.ExitHealthy || got.out != tc.want {
				t.Errorf("%+v", got)
			}
			if tc.replicatesAt < 1<<30 && !replica {
				t.Error("it ended before the site replicated")
			}
		})
	}
}

// TestRecloneAtStake: what the operator will refuse without a word of confirmation is said in the plan, and the way out of its refusal is
// this command with its flag, not the operator's annotation.
func TestRecloneAtStake(t *testing.T) {
	const flag, confirmed = "the operator will refuse without --confirm-data-loss", "kubectl mfg reclone orders madrid -n shop --confirm-data-loss"
	site := func(f *fakeAPI, change func(*v1alpha1.SiteStatus)) { change(&f.groups[0].Status.Sites[2]) }
	tests := map[string]struct {
		change func(*fakeAPI)
		loss   string
		said   string // by the operator
		told   string
	}{
		"ErrantSet": {func(f *fakeAPI) {
			f.live.Groups[0].Sites[2].State = "Diverged"
			site(f, func(s *v1alpha1.SiteStatus) { s.State, s.Errant = v1alpha1.SiteDiverged, "A:7-9" })
		}, "transactions that only madrid has: A:7-9", "madrid has transactions that nobody else has (status.sites): save what is needed of them, then order madrid:confirm, which throws them away",
			"then order it with --confirm-data-loss, which throws them away"},
		"Diverged": {func(f *fakeAPI) {
			f.live.Groups[0].Sites[2].State = "Diverged"
			site(f, func(s *v1alpha1.SiteStatus) { s.State = v1alpha1.SiteDiverged })
		}, "transactions that only madrid has; which they are is not known", "", ""},
		"NotSettled": {func(f *fakeAPI) {
			f.groups[0].Status.Failovers = []v1alpha1.FailoverRecord{{Epoch: 7, Kind: v1alpha1.FailoverEmergency, From: "madrid", To: "paris"}}
		}, "madrid was the active site, and what it alone has was not found out yet",
			"madrid was the active site, and what it alone has is not known: order madrid:confirm if it may be thrown away", "order it with --confirm-data-loss if it may be thrown away"},
		"OnlyOtherCopy": {func(f *fakeAPI) {
			f.live.Groups[0].Sites[1].State, f.live.Groups[0].Sites[1].Reachable = "Unreachable", false
		}, "madrid is the only healthy copy beside paris",
			"madrid is the only healthy copy beside the active site, and there would be one alone while it is cloned: wait until another site replicates, or order madrid:confirm",
			"wait until another site replicates, or order it with --confirm-data-loss"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			tc.change(f)
			planned := run(t, f, runOptions{}, strings.Fields("reclone orders madrid -n shop --dry-run=client")...)
			if !strings.Contains(planned.out, tc.loss) || !strings.Contains(planned.out, flag) {
				t.Errorf("the plan lacks %q, or %q:\n%s", tc.loss, flag, planned.out)
			}
			if sure := run(t, f, runOptions{}, strings.Fields("reclone orders madrid -n shop --confirm-data-loss --dry-run=client")...); !strings.Contains(sure.out, tc.loss) || strings.Contains(sure.out, flag) {
				t.Errorf("confirmed, the plan says:\n%s", sure.out)
			}
			if tc.said == "" {
				return
			}
			got := run(t, f, runOptions{tick: func(int) { recloneAnswer(f, v1alpha1.RequestRefused, v1alpha1.AnswerSiteDiverged, tc.said) }}, strings.Fields("reclone orders madrid -n shop --yes")...)
			if got.code != cli.ExitRefused || !strings.Contains(got.errOut, tc.told) || !strings.Contains(got.errOut, "\n  to go on all the same: "+confirmed+"\n") || strings.Contains(got.errOut, ":confirm") {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("SettledOrActiveSince", func(t *testing.T) {
		f := loadHealthy(t)
		for _, records := range [][]v1alpha1.FailoverRecord{
			{{From: "madrid", To: "paris", LossExact: true}},
			{{From: "frankfurt", To: "madrid", LossExact: true}, {From: "madrid", To: "frankfurt"}},
		} {
			f.groups[0].Status.Failovers = records
			if got := run(t, f, runOptions{}, strings.Fields("reclone orders madrid -n shop --dry-run=client")...); !strings.Contains(got.out, "nothing that is known") {
				t.Errorf("%+v: %s", records, got.out)
			}
		}
	})
	t.Run("OtherRefusal", func(t *testing.T) {
		f := loadHealthy(t)
		got := run(t, f, runOptions{tick: func(int) {
			recloneAnswer(f, v1alpha1.RequestRefused, v1alpha1.AnswerDonorNotOpen, "the active site paris does not accept writes")
		}}, strings.Fields("reclone orders madrid -n shop --confirm-data-loss --yes")...)
		if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "kubectl mfg status orders -n shop; then: "+confirmed) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("NothingToConfirm", func(t *testing.T) {
		f := loadHealthy(t)
		got := run(t, f, runOptions{tick: func(int) { recloneAnswer(f, v1alpha1.RequestRefused, v1alpha1.AnswerDonorNotOpen, "not now") }}, strings.Fields("reclone orders madrid -n shop --yes")...)
		if got.code != cli.ExitRefused || strings.Contains(got.errOut, flag[len("the operator will refuse without "):]) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("TypedAsTheOperatorSays", func(t *testing.T) {
		got := run(t, loadHealthy(t), runOptions{}, strings.Fields("reclone orders madrid:confirm -n shop --yes")...)
		if got.code != cli.ExitRefused || !strings.Contains(got.errOut, confirmed) {
			t.Errorf("%+v", got)
		}
	})
}

// recloneAnswer plays the operator once a new copy is asked for.
func recloneAnswer(f *fakeAPI, outcome v1alpha1.RequestOutcome, reason, message string) {
	f.answer(v1alpha1.RequestRecloneSite, outcome, reason, message)
}
