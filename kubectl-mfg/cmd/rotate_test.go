// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// sealedGroup is the healthy group, encrypted: paris is active.
func sealedGroup(t *testing.T) *fakeAPI {
	t.Helper()
	f := loadHealthy(t)
	g := &f.groups[0]
	g.Annotations = map[string]string{}
	g.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true}
	at := &v1alpha1.EncryptionAtRestStatus{Sealed: true}
	for i, s := range g.Spec.Sites {
		at.Sites = append(at.Sites, v1alpha1.SiteKeyringStatus{Name: s.Name, Phase: v1alpha1.KeyringSealed, KeyringVersion: int64(3 - i/2),
			KeyringSecret: v1alpha1.KeyringSecret(g.Name, s.Name, int64(3-i/2))})
	}
	g.Status.EncryptionAtRest = at
	return f
}

func keyringIn(f *fakeAPI, site string) *v1alpha1.SiteKeyringStatus {
	sites := f.groups[0].Status.EncryptionAtRest.Sites
	return &sites[slices.IndexFunc(sites, func(s v1alpha1.SiteKeyringStatus) bool { return s.Name == site })]
}

// rotator plays the operator: it takes a rotation one phase further with each look, and moves the role at once. It notes
// what it did, in order.
type rotator struct {
	f *fakeAPI
	// stuckAt keeps a rotation in a phase; refuse answers the order for one site. old is an operator that knows no campaign.
	stuckAt v1alpha1.KeyringPhase
	refuse  string
	old     bool
	// waits has the campaign wait, with a reason.
	waits string
	did   []string
}

func (r *rotator) look(int) {
	g := &r.f.groups[0]
	value, is := g.Annotations[v1alpha1.AnnotationRotateKeyring]
	if c := g.Status.EncryptionAtRest.Campaign; c.UnderWay() && (!is || g.Annotations[v1alpha1.RequestRotateKeyring.IDAnnotation()] != c.Request) {
		c.Outcome, c.Reason, c.Message, c.Step = v1alpha1.CampaignCancelled, "Withdrawn", "the request was taken back; left: "+strings.Join(c.Left(), ", "), ""
	}
	switch {
	case !is:
	case v1alpha1.AsksForCampaign(value) && r.old:
		r.f.answer(v1alpha1.RequestRotateKeyring, v1alpha1.RequestRefused, v1alpha1.AnswerUnknownSite, `the group has no site "*"`)
	case v1alpha1.AsksForCampaign(value):
		r.campaign(value)
	case r.refuse != "":
		r.answer(v1alpha1.RequestRefused, r.refuse)
	case value == g.Status.ActiveSite:
		r.answer(v1alpha1.RequestRefused, value+" is the active site")
	case r.turn(value):
		r.answer(v1alpha1.RequestDone, "the keyring is sealed as v"+fmt.Sprint(keyringIn(r.f, value).KeyringVersion))
	}
}

// turn takes the rotation of a site one phase further, and is true once it is over.
func (r *rotator) turn(site string) bool {
	switch k := keyringIn(r.f, site); k.Phase {
	case r.stuckAt:
	case v1alpha1.KeyringSealed:
		k.Phase, k.Work, k.Message = v1alpha1.KeyringPending, v1alpha1.KeyringRotation, "the site is about to be unsealed"
	case v1alpha1.KeyringPending:
		k.Phase, k.SeedVersion, k.Message = v1alpha1.KeyringUnsealed, k.KeyringVersion, "the master keys are to be rotated"
	case v1alpha1.KeyringUnsealed:
		k.Phase, k.Rotated, k.KeyringVersion, k.Message = v1alpha1.KeyringEscrowed, true, k.KeyringVersion+1, "its pod is to be replaced by one with the escrowed keyring"
	default:
		*k = v1alpha1.SiteKeyringStatus{Name: site, Phase: v1alpha1.KeyringSealed, KeyringVersion: k.KeyringVersion, RotatedVersion: k.KeyringVersion}
		r.did = append(r.did, "rotate "+site)
		return true
	}
	return false
}

// campaign takes the rotation of all sites a little further.
func (r *rotator) campaign(value string) {
	g := &r.f.groups[0]
	id, at := g.Annotations[v1alpha1.RequestRotateKeyring.IDAnnotation()], g.Status.EncryptionAtRest
	if at.Campaign == nil || at.Campaign.Request != id {
		before := at.Campaign
		at.Campaign = &v1alpha1.CampaignStatus{Request: id, Order: value, BeganAt: metav1.NewMicroTime(noon)}
		order, _ := v1alpha1.ParseCampaignOrder(value)
		for _, s := range g.Spec.Sites {
			if order.Replicas && s.Name == g.Status.ActiveSite {
				continue
			}
			site := v1alpha1.CampaignSite{Name: s.Name, FromVersion: keyringIn(r.f, s.Name).VersionBefore()}
			if before.GoesOn(noon) && !order.Restart {
				for _, was := range before.Sites {
					if was.Name == s.Name {
						site.FromVersion = was.FromVersion
					}
				}
			}
			site.ToVersion = keyringIn(r.f, s.Name).RotatedSince(site.FromVersion)
			at.Campaign.Sites = append(at.Campaign.Sites, site)
		}
		return
	}
	c := at.Campaign
	left := c.Left()
	if r.waits != "" {
		c.Step, c.Site, c.Reason, c.Message = v1alpha1.CampaignWaiting, left[0], "Because", r.waits
		return
	}
	c.Reason, c.Message = "", ""
	if len(left) == 0 {
		c.Outcome, c.Step = v1alpha1.CampaignDone, ""
		r.answer(v1alpha1.RequestDone, "new master keys, in escrow and sealed")
		return
	}
	if i := slices.IndexFunc(left, func(site string) bool { return site != g.Status.ActiveSite }); i >= 0 {
		c.Step, c.Site = v1alpha1.CampaignRotating, left[i]
		if r.turn(left[i]) {
			j := slices.IndexFunc(c.Sites, func(s v1alpha1.CampaignSite) bool { return s.Name == left[i] })
			c.Sites[j].ToVersion = keyringIn(r.f, left[i]).RotatedVersion
		}
		return
	}
	order, _ := v1alpha1.ParseCampaignOrder(value)
	from, to := g.Status.ActiveSite, cmp.Or(order.To, "frankfurt")
	if c.Step != v1alpha1.CampaignMoving {
		c.Step, c.Site = v1alpha1.CampaignMoving, to
		return
	}
	g.Annotations[v1alpha1.AnnotationPlannedFailover] = to
	answerMove(r.f, v1alpha1.PlannedSucceeded, "Opened", "it is active")
	for i := range g.Status.Sites {
		s := &g.Status.Sites[i]
		if s.State = v1alpha1.SiteReplica; s.Name == to {
			s.State = v1alpha1.SitePrimary
		}
	}
	c.Moves++
	r.did = append(r.did, from+" -> "+to)
}

func (r *rotator) answer(outcome v1alpha1.RequestOutcome, message string) {
	r.f.answer(v1alpha1.RequestRotateKeyring, outcome, "Because", message)
}

// rotated runs rotate with an operator that plays along.
func rotated(t *testing.T, r *rotator, o runOptions, args string) ran {
	t.Helper()
	if o.tick == nil {
		o.tick = r.look
	}
	return run(t, r.f, o, append([]string{"rotate", "orders", "-n", "shop"}, strings.Fields(args)...)...)
}

// TestRotateAll: the operator is asked once, and what it does is shown: replicas first, one by one, then the role, then the former
// active site.
func TestRotateAll(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	got := rotated(t, r, runOptions{stdin: "y\n"}, "--all")
	if got.code != cli.ExitHealthy {
		t.Fatalf("%+v", got)
	}
	if diff := gocmp.Diff([]string{"rotate frankfurt", "rotate madrid", "paris -> frankfurt", "rotate paris"}, r.did); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(r.f.patched) != 1 || len(r.f.patched[0]) != 1 || r.f.patched[0][v1alpha1.AnnotationRotateKeyring] != "*" {
		t.Errorf("it writes more than one request: %v", r.f.patched)
	}
	for _, want := range []string{"frankfurt v3 -> v4", "madrid v2 -> v3", "role paris -> frankfurt", "paris v3 -> v4", "412ms"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("stdout lacks %q: %s", want, got.out)
		}
	}
	for _, want := range []string{"Step 3", "Rotate them, and move the role to frankfurt? [y/N]", "rotate frankfurt: Unsealed: the master keys are to be rotated",
		"Escrowed, both master keys are rotated", "move the role to frankfurt", "madrid is sealed with its new keyring v3"} {
		if !strings.Contains(got.errOut, want) {
			t.Errorf("stderr lacks %q:\n%s", want, got.errOut)
		}
	}
}

// TestRotateIsWatchedAgain: whenever a run ends, the operator goes on, and another run watches it and asks for nothing.
func TestRotateIsWatchedAgain(t *testing.T) {
	whole := &rotator{f: sealedGroup(t)}
	looks := 0
	rotated(t, whole, runOptions{tick: func(n int) { looks = n; whole.look(n) }}, "--all --yes")
	if looks < 10 {
		t.Fatalf("only %d looks", looks)
	}
	for stop := 1; stop < looks; stop++ {
		r := &rotator{f: sealedGroup(t)}
		ctx, cancel := context.WithCancel(t.Context())
		got := rotated(t, r, runOptions{ctx: ctx, tick: func(n int) {
			r.look(n)
			if n == stop {
				cancel()
			}
		}}, "--all --yes")
		if got.code != cli.ExitTimeout || !strings.Contains(got.errOut, "the operator continues; to watch it: kubectl mfg rotate orders -n shop --all; to stop it: kubectl mfg rotate orders -n shop --stop") {
			t.Errorf("look %d: exit code %d: %s", stop, got.code, got.errOut)
		}
		r.look(0) // also while nobody watches
		got = rotated(t, r, runOptions{}, "--all")
		if diff := gocmp.Diff(whole.did, r.did); diff != "" {
			t.Errorf("interrupted after look %d (-want +got):\n%s%s", stop, diff, got.errOut)
		}
		if stop < looks-1 && (got.code != cli.ExitHealthy || len(r.f.patched) != 1 || !strings.Contains(got.errOut, "Under way")) {
			t.Errorf("interrupted after look %d: exit code %d, patched %v: %s", stop, got.code, r.f.patched, got.errOut)
		}
	}
}

// TestRotateWaitsWithTheOperator: what the operator waits for is told, and a watch that ends there leaves something that goes on.
func TestRotateWaitsWithTheOperator(t *testing.T) {
	r := &rotator{f: sealedGroup(t), waits: "frankfurt does not replicate"}
	got := rotated(t, r, runOptions{}, "--all --yes --timeout 3s")
	if got.code != cli.ExitTimeout || !strings.Contains(got.errOut, "waits (Because): frankfurt does not replicate; left: paris, frankfurt, madrid") || !strings.Contains(got.errOut, "to watch it:") {
		t.Errorf("%+v", got)
	}
	r.waits = ""
	if got := rotated(t, r, runOptions{}, "--all"); got.code != cli.ExitHealthy || len(r.did) != 4 {
		t.Errorf("%v: %+v", r.did, got)
	}
}

// TestRotateTimeoutIsForEachStep: a campaign may take longer than the time for one step.
func TestRotateTimeoutIsForEachStep(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	if got := rotated(t, r, runOptions{}, "--all --yes --timeout 1200ms"); got.code != cli.ExitHealthy {
		t.Errorf("%+v", got)
	}
}

// TestRotateWithAnOldOperator: one that knows no campaign says so in its way, and a person is told what to do.
func TestRotateWithAnOldOperator(t *testing.T) {
	got := rotated(t, &rotator{f: sealedGroup(t), old: true}, runOptions{}, "--all --yes")
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "the operator is older than this plugin") || !strings.Contains(got.errOut, "--site SITE") {
		t.Errorf("%+v", got)
	}
}

// TestRotateStop: the request is taken off, and what was done stays. What is left is gone on with, or begun again.
func TestRotateStop(t *testing.T) {
	stopped := func(t *testing.T) *rotator {
		t.Helper()
		r := &rotator{f: sealedGroup(t)}
		ctx, cancel := context.WithCancel(t.Context())
		rotated(t, r, runOptions{ctx: ctx, tick: func(n int) {
			if r.look(n); len(r.did) == 1 {
				cancel()
			}
		}}, "--all --yes")
		got := rotated(t, r, runOptions{stdin: "y\n"}, "--stop")
		if got.code != cli.ExitHealthy || !strings.Contains(got.out, "stopped: the request was taken back; left: paris, madrid") || asked(r.f, v1alpha1.AnnotationRotateKeyring) {
			t.Fatalf("%+v", got)
		}
		return r
	}
	r := stopped(t)
	if got := rotated(t, r, runOptions{}, "--stop --yes"); got.code != cli.ExitRefused || !strings.Contains(got.errOut, "no rotation of all sites is under way") {
		t.Errorf("%+v", got)
	}
	got := rotated(t, r, runOptions{}, "--all --yes")
	if got.code != cli.ExitHealthy || strings.Join(r.did, ", ") != "rotate frankfurt, rotate madrid, paris -> frankfurt, rotate paris" || !strings.Contains(got.errOut, "Goes on   with what was begun at 2026-11-03T12:00:00Z and stopped: frankfurt done, 2 left") {
		t.Errorf("%v: %+v", r.did, got)
	}
	r = stopped(t)
	got = rotated(t, r, runOptions{}, "--all-replicas --restart --yes")
	if got.code != cli.ExitHealthy || strings.Join(r.did, ", ") != "rotate frankfurt, rotate frankfurt, rotate madrid" || strings.Contains(got.errOut, "Goes on") {
		t.Errorf("%v: %+v", r.did, got)
	}
}

// TestRotateIsStopped: who watches is told that another person has stopped it, or that it failed.
func TestRotateIsStopped(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	got := rotated(t, r, runOptions{tick: func(n int) {
		if r.look(n); len(r.did) == 1 {
			delete(r.f.groups[0].Annotations, v1alpha1.AnnotationRotateKeyring)
			r.look(n)
		}
	}}, "--all --yes")
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "it was stopped: the request was taken back") || !strings.Contains(got.errOut, "done meanwhile: frankfurt v3 -> v4; left: paris, madrid") ||
		!strings.Contains(got.errOut, "to go on with what is left: kubectl mfg rotate orders -n shop --all") {
		t.Errorf("%+v", got)
	}
	for outcome, want := range map[v1alpha1.RequestOutcome]string{
		v1alpha1.RequestFailed: "the rotation failed (Because): so it is", v1alpha1.RequestRefused: "refused: so it is"} {
		r = &rotator{f: sealedGroup(t)}
		got = rotated(t, r, runOptions{tick: func(n int) {
			if r.look(n); len(r.did) == 1 {
				r.answer(outcome, "so it is")
			}
		}}, "--all --yes")
		if got.code != cli.ExitRefused || !strings.Contains(got.errOut, want) || got.out != "" {
			t.Errorf("%+v", got)
		}
	}
}

// TestRotate walks through the refusals and the smaller scopes.
func TestRotate(t *testing.T) {
	status := func(change func(*v1alpha1.MysqlFailoverGroup)) func(*rotator) {
		return func(r *rotator) { change(&r.f.groups[0]) }
	}
	tests := map[string]struct {
		reason string
		args   string
		stdin  string
		change func(*rotator)
		code   int
		did    []string
		want   []string
	}{
		"Site":         {args: "--site madrid --yes", did: []string{"rotate madrid"}, want: []string{"madrid v2 -> v3"}},
		"AllReplicas":  {args: "--all-replicas --yes", did: []string{"rotate frankfurt", "rotate madrid"}, want: []string{"madrid v2 -> v3"}},
		"To":           {reason: "dr-only sites never become active", args: "--all --to madrid --yes", code: cli.ExitRefused, want: []string{"primary-candidate"}},
		"NotConfirmed": {args: "--all", stdin: "n\n", code: cli.ExitUsage, want: []string{"nothing was changed"}},
		"NoTerminal":   {args: "--all", code: cli.ExitUsage, want: []string{"no --yes"}},
		"NoScope":      {args: "--yes", code: cli.ExitUsage, want: []string{"one of --site"}},
		"TwoScopes":    {args: "--all --site madrid", code: cli.ExitUsage, want: []string{"one of --site"}},
		"ToAlone":      {args: "--site madrid --to frankfurt", code: cli.ExitUsage, want: []string{"--to goes with --all"}},
		"NoWaitAll":    {reason: "the operator goes on without this command", args: "--all --yes --wait=false", want: []string{"requested, and the operator carries it out"}},
		"StopAndAll":   {args: "--all --stop", code: cli.ExitUsage, want: []string{"one of --site"}},
		"StopRestart":  {args: "--stop --restart", code: cli.ExitUsage, want: []string{"--restart goes with"}},
		"ToSite":       {args: "--all --to frankfurt --yes", did: []string{"rotate frankfurt", "rotate madrid", "paris -> frankfurt", "rotate paris"}},
		"NoWait":       {args: "--site madrid --yes --wait=false", want: []string{"requested"}},
		"DryRun":       {args: "--all --dry-run", want: []string{"Would     set annotation mysql-mfg.io/rotate-keyring=*", "nothing was sent"}},
		"DryRunServer": {args: "--all --dry-run=server", want: []string{"the API server would take it"}},
		"Active":       {args: "--site paris --yes", code: cli.ExitRefused, want: []string{"paris is the active site", "kubectl mfg rotate orders -n shop --all", "kubectl mfg failover orders -n shop --to SITE"}},
		"Unknown":      {args: "--site rome --yes", code: cli.ExitRefused, want: []string{"no site \"rome\""}},
		"NotEncrypted": {args: "--all --yes", code: cli.ExitRefused, want: []string{"is not encrypted"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.EncryptionAtRest = nil })},
		"NotAdopted": {args: "--all --yes", code: cli.ExitRefused, want: []string{"existing tablespaces"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Status.EncryptionAtRest = nil
				g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionEncryptionReady, Status: metav1.ConditionFalse, Message: "existing tablespaces would stay plaintext"}}
			})},
		"Paused": {args: "--all --yes", code: cli.ExitRefused, want: []string{"kubectl mfg resume orders -n shop"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue}}
			})},
		"Missing": {reason: "a lost escrow Secret comes first", args: "--all --yes", code: cli.ExitRefused, want: []string{"madrid is Failed", "kubectl mfg recover-keyring orders madrid -n shop"},
			change: func(r *rotator) { keyringIn(r.f, "madrid").Phase = v1alpha1.KeyringFailed }},
		"Late": {args: "--site madrid --yes", code: cli.ExitRefused, want: []string{"do not delete, restart or drain its pod"},
			change: func(r *rotator) {
				k := keyringIn(r.f, "madrid")
				k.Phase, k.Work = v1alpha1.KeyringFailed, v1alpha1.KeyringRotation
			}},
		"Observe": {reason: "looked at before anything is begun", args: "--all --yes", code: cli.ExitRefused, want: []string{"mode is Observe"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Failover.Mode = v1alpha1.FailoverObserve })},
		"OneCandidate": {args: "--all --yes", code: cli.ExitRefused, want: []string{"no other primary-candidate", "--all-replicas"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites[1].Role = v1alpha1.DROnly })},
		"Pending": {args: "--all --yes", code: cli.ExitRefused, want: []string{"a new copy of a site was requested"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations[v1alpha1.AnnotationRecloneSite] = "madrid" })},
		"Adopted": {reason: "the annotation of an adoption stays, and answers nothing", args: "--site madrid --yes", did: []string{"rotate madrid"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations[v1alpha1.AnnotationEncryptionAdopt] = "confirm" })},
		"RefusedSite": {reason: "who asks for one is told at once", args: "--site madrid --yes", code: cli.ExitRefused, want: []string{"madrid does not replicate"},
			change: func(r *rotator) { r.refuse = "madrid does not replicate" }},
		"Joined": {reason: "what was asked for is waited for, and not asked for twice", args: "--site madrid --yes", did: []string{"rotate madrid"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations[v1alpha1.AnnotationRotateKeyring] = "madrid" })},
		"JoinedAll": {reason: "one that is under way is watched, and not asked for", args: "--all-replicas", did: []string{"rotate frankfurt", "rotate madrid"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Annotations[v1alpha1.AnnotationRotateKeyring], g.Annotations[v1alpha1.RequestRotateKeyring.IDAnnotation()] = "*:replicas", "theirs"
			}), want: []string{"Under way"}},
		"AnotherScope": {args: "--all --yes", code: cli.ExitRefused, want: []string{"another rotation is under way (mysql-mfg.io/rotate-keyring=*:replicas)", "kubectl mfg rotate orders -n shop --stop"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations[v1alpha1.AnnotationRotateKeyring] = "*:replicas" })},
		"AnotherTarget": {args: "--all --to frankfurt --yes", code: cli.ExitRefused, want: []string{"another rotation is under way"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations[v1alpha1.AnnotationRotateKeyring] = "*" })},
		"RestartMeanwhile": {args: "--all --restart --yes", code: cli.ExitRefused, want: []string{"another rotation is under way"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations[v1alpha1.AnnotationRotateKeyring] = "*" })},
		"SiteMeanwhile": {args: "--site madrid --yes", code: cli.ExitRefused, want: []string{"another rotation is under way", "--stop"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations[v1alpha1.AnnotationRotateKeyring] = "*" })},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &rotator{f: sealedGroup(t)}
			if tc.change != nil {
				tc.change(r)
			}
			got := rotated(t, r, runOptions{stdin: tc.stdin}, tc.args)
			if got.code != tc.code {
				t.Errorf("%s: exit code %d, want %d: %+v", tc.reason, got.code, tc.code, got)
			}
			if diff := gocmp.Diff(tc.did, r.did); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.out+got.errOut, want) {
					t.Errorf("lacks %q:\n%s%s", want, got.out, got.errOut)
				}
			}
		})
	}
}

// TestRotateWaits: nothing is asked for that the operator would refuse.
func TestRotateWaits(t *testing.T) {
	tests := map[string]func(*fakeAPI) (undo func()){
		"an ordered update": func(f *fakeAPI) func() {
			f.groups[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "Updating"}}
			return func() { f.groups[0].Status.Conditions = nil }
		},
		"another keyring": func(f *fakeAPI) func() {
			keyringIn(f, "paris").Phase = v1alpha1.KeyringEscrowed
			return func() { keyringIn(f, "paris").Phase = v1alpha1.KeyringSealed }
		},
		"a replica that is away": func(f *fakeAPI) func() {
			f.groups[0].Status.Sites[2].State = v1alpha1.SiteUnreachable
			return func() { f.groups[0].Status.Sites[2].State = v1alpha1.SiteReplica }
		},
	}
	for name, disturb := range tests {
		t.Run(name, func(t *testing.T) {
			r := &rotator{f: sealedGroup(t)}
			undo := disturb(r.f)
			got := rotated(t, r, runOptions{tick: func(n int) {
				if n <= 5 && asked(r.f, v1alpha1.AnnotationRotateKeyring) {
					t.Error("asked for in spite of it")
				}
				if n == 5 {
					undo()
				}
				r.look(n)
			}}, "--site madrid --yes")
			if got.code != cli.ExitHealthy || !strings.Contains(got.errOut, "waits: ") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestRotateAfterAFailover: an emergency moves the role while the operator rotates the first site; the plugin shows what the operator does then.
func TestRotateAfterAFailover(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	got := rotated(t, r, runOptions{tick: func(n int) {
		r.look(n)
		if g := &r.f.groups[0]; len(r.did) == 1 && g.Status.ActiveSite == "paris" {
			g.Status.ActiveSite = "frankfurt"
			g.Status.Sites[0].State, g.Status.Sites[1].State = v1alpha1.SiteReplica, v1alpha1.SitePrimary
		}
	}}, "--all --yes")
	if diff := gocmp.Diff([]string{"rotate frankfurt", "rotate paris", "rotate madrid"}, r.did); got.code != cli.ExitHealthy || diff != "" {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
}

// TestACampaignKeepsNobodyWaiting: what mends a site that the rotation of all sites waits for can be asked for meanwhile.
func TestACampaignKeepsNobodyWaiting(t *testing.T) {
	for _, verb := range []string{"reclone orders madrid", "failover orders --to frankfurt"} {
		r := &rotator{f: sealedGroup(t)}
		r.f.groups[0].Annotations[v1alpha1.AnnotationRotateKeyring] = "*"
		if got := run(t, r.f, runOptions{}, strings.Fields(verb+" -n shop --yes --wait=false")...); got.code != cli.ExitHealthy {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}
