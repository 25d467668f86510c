// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
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
	// stuckAt keeps a rotation in a phase; refuse answers one, so many times or, without a number, always.
	stuckAt v1alpha1.KeyringPhase
	refuse  string
	refuses int
	did     []string
}

func (r *rotator) look(int) {
	g := &r.f.groups[0]
	if to, is := g.Annotations[v1alpha1.AnnotationPlannedFailover]; is {
		from := g.Status.ActiveSite
		answerMove(r.f, v1alpha1.PlannedSucceeded, "Opened", "it is active")
		for i := range g.Status.Sites {
			s := &g.Status.Sites[i]
			s.State = v1alpha1.SiteReplica
			if s.Name == to {
				s.State = v1alpha1.SitePrimary
			}
		}
		r.did = append(r.did, from+" -> "+to)
	}
	site, is := g.Annotations[v1alpha1.AnnotationRotateKeyring]
	if !is {
		return
	}
	k := keyringIn(r.f, site)
	switch {
	case r.refuse != "":
		r.answer(v1alpha1.RequestRefused, r.refuse)
		if r.refuses--; r.refuses == 0 {
			r.refuse = ""
		}
	case site == g.Status.ActiveSite:
		r.answer(v1alpha1.RequestRefused, site+" is the active site")
	case k.Phase == r.stuckAt:
	case k.Phase == v1alpha1.KeyringSealed:
		k.Phase, k.Work, k.Message = v1alpha1.KeyringPending, v1alpha1.KeyringRotation, "the site is about to be unsealed"
	case k.Phase == v1alpha1.KeyringPending:
		k.Phase, k.SeedVersion, k.Message = v1alpha1.KeyringUnsealed, k.KeyringVersion, "the master keys are to be rotated"
	case k.Phase == v1alpha1.KeyringUnsealed:
		k.Phase, k.Rotated, k.KeyringVersion, k.Message = v1alpha1.KeyringEscrowed, true, k.KeyringVersion+1, "its pod is to be replaced by one with the escrowed keyring"
	default:
		*k = v1alpha1.SiteKeyringStatus{Name: site, Phase: v1alpha1.KeyringSealed, KeyringVersion: k.KeyringVersion, RotatedVersion: k.KeyringVersion}
		r.did = append(r.did, "rotate "+site)
		r.answer(v1alpha1.RequestDone, "the keyring is sealed as v"+fmt.Sprint(k.KeyringVersion))
	}
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

// TestRotateAll: replicas first, one by one, then the role, then the former active site; and the note of it is gone.
func TestRotateAll(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	got := rotated(t, r, runOptions{stdin: "y\n"}, "--all")
	if got.code != cli.ExitHealthy {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff([]string{"rotate frankfurt", "rotate madrid", "paris -> frankfurt", "rotate paris"}, r.did); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked(r.f, v1alpha1.AnnotationRotation) {
		t.Error("the note stays, and the next campaign would be taken for this one")
	}
	first := r.f.patched[0]
	if first[v1alpha1.AnnotationRotation] != "2026-11-03T12:00:00Z paris=3 frankfurt=3 madrid=2" || first[v1alpha1.AnnotationRotateKeyring] != "frankfurt" {
		t.Errorf("the first order does not take the note along: %v", first)
	}
	for _, want := range []string{"frankfurt v3 -> v4", "madrid v2 -> v3", "role paris -> frankfurt", "paris v3 -> v4", "412ms"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("stdout lacks %q: %s", want, got.out)
		}
	}
	for _, want := range []string{"Step 3", "Rotate them, and move the role to frankfurt? [y/N]", "Unsealed: the master keys are to be rotated", "Escrowed, both master keys are rotated"} {
		if !strings.Contains(got.errOut, want) {
			t.Errorf("stderr lacks %q:\n%s", want, got.errOut)
		}
	}
}

// TestRotateGoesOn: whenever a run ends, another one does what is left and nothing twice.
func TestRotateGoesOn(t *testing.T) {
	whole := &rotator{f: sealedGroup(t)}
	looks := 0
	rotated(t, whole, runOptions{tick: func(n int) { looks = n; whole.look(n) }}, "--all --yes")
	if looks < 10 {
		t.Fatalf("only %d looks", looks)
	}
	for stop := 1; stop <= looks; stop++ {
		r := &rotator{f: sealedGroup(t)}
		ctx, cancel := context.WithCancel(t.Context())
		got := rotated(t, r, runOptions{ctx: ctx, tick: func(n int) {
			r.look(n)
			if n == stop {
				cancel()
			}
		}}, "--all --yes")
		if got.code == cli.ExitHealthy {
			t.Fatalf("look %d: not interrupted", stop)
		}
		if got.code != cli.ExitTimeout || !strings.Contains(got.errOut, "to go on: kubectl mfg rotate orders -n shop --all") {
			t.Errorf("look %d: exit code %d: %s", stop, got.code, got.errOut)
		}
		got = rotated(t, r, runOptions{}, "--all --yes")
		if diff := cmp.Diff(whole.did, r.did); got.code != cli.ExitHealthy || diff != "" {
			t.Errorf("interrupted after look %d, then exit code %d (-want +got):\n%s%s", stop, got.code, diff, got.errOut)
		}
		if asked(r.f, v1alpha1.AnnotationRotation) {
			t.Errorf("look %d: the note stays", stop)
		}
	}
}

// TestRotateSaysWhatIsHalfDone: a run that ends in the middle of a site says what to do about it.
func TestRotateSaysWhatIsHalfDone(t *testing.T) {
	tests := map[string]struct {
		at     v1alpha1.KeyringPhase
		change func(*v1alpha1.SiteKeyringStatus)
		want   []string
	}{
		"Pending":  {at: v1alpha1.KeyringPending, want: []string{"frankfurt is half done, Pending", "its keys are not rotated yet", "kubectl annotate mfg orders -n shop mysql-mfg.io/rotate-keyring-"}},
		"Unsealed": {at: v1alpha1.KeyringUnsealed, want: []string{"frankfurt is half done, Unsealed", "its keys are not rotated yet"}},
		"Rotating": {at: v1alpha1.KeyringUnsealed, change: func(k *v1alpha1.SiteKeyringStatus) { k.Stage = v1alpha1.KeyringRotating },
			want: []string{"do not delete, restart or drain its pod", "kubectl mfg events orders -n shop --warnings"}},
		"Escrowed": {at: v1alpha1.KeyringEscrowed, change: func(k *v1alpha1.SiteKeyringStatus) { k.Rotated = false }, want: []string{"its new keyring is in escrow"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &rotator{f: sealedGroup(t), stuckAt: tc.at}
			got := rotated(t, r, runOptions{tick: func(n int) {
				r.look(n)
				if k := keyringIn(r.f, "frankfurt"); tc.change != nil && k.Phase == tc.at {
					tc.change(k)
				}
			}}, "--all --yes --timeout 3s")
			if got.code != cli.ExitTimeout || got.out != "" {
				t.Errorf("%+v", got)
			}
			for _, want := range append(tc.want, "left: frankfurt, madrid, paris", "to go on: kubectl mfg rotate orders -n shop --all") {
				if !strings.Contains(got.errOut, want) {
					t.Errorf("lacks %q:\n%s", want, got.errOut)
				}
			}
		})
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
		"NoWaitAll":    {args: "--all --wait=false", code: cli.ExitUsage, want: []string{"--wait=false goes with --site"}},
		"NoWait":       {args: "--site madrid --yes --wait=false", want: []string{"asked for"}},
		"DryRun":       {args: "--all --dry-run", want: []string{"Would     set annotation mysql-mfg.io/rotate-keyring=frankfurt", "mysql-mfg.io/rotation=", "nothing was sent"}},
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
		"Refused": {args: "--all --yes", code: cli.ExitRefused, want: []string{"the rotation of frankfurt: an ordered update is in flight", "to go on: kubectl mfg rotate orders -n shop --all"},
			change: func(r *rotator) { r.refuse = "an ordered update is in flight" }},
		"RefusedOnce": {reason: "what is over a moment later ends no campaign", args: "--all-replicas --yes", did: []string{"rotate frankfurt", "rotate madrid"},
			change: func(r *rotator) { r.refuse, r.refuses = "frankfurt does not replicate", 2 }, want: []string{"it is asked for again"}},
		"RefusedSite": {reason: "who asks for one is told at once", args: "--site madrid --yes", code: cli.ExitRefused, want: []string{"madrid does not replicate"},
			change: func(r *rotator) { r.refuse, r.refuses = "madrid does not replicate", 1 }},
		"Joined": {reason: "what was asked for is waited for, and not asked for twice", args: "--site madrid --yes", did: []string{"rotate madrid"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations[v1alpha1.AnnotationRotateKeyring] = "madrid" })},
		"UnreadableNote": {args: "--all --yes", code: cli.ExitRefused, want: []string{"cannot be read", "--restart"},
			change: status(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations[v1alpha1.AnnotationRotation] = "yesterday" })},
		"Restart": {args: "--all-replicas --restart --yes", did: []string{"rotate frankfurt", "rotate madrid"},
			change: func(r *rotator) {
				r.f.groups[0].Annotations[v1alpha1.AnnotationRotation] = "2026-11-03T11:00:00Z replicas frankfurt=2 madrid=1"
				keyringIn(r.f, "frankfurt").RotatedVersion = 3
			}},
		"NothingLeft": {reason: "only the note was left", args: "--all-replicas --yes", want: []string{"nothing was left to do: frankfurt, madrid"},
			change: func(r *rotator) {
				r.f.groups[0].Annotations[v1alpha1.AnnotationRotation] = "2026-11-03T11:00:00Z replicas frankfurt=2 madrid=1"
				keyringIn(r.f, "frankfurt").RotatedVersion, keyringIn(r.f, "madrid").RotatedVersion = 3, 2
			}},
		"Cloned": {reason: "a clone makes a version, and rotates nothing", args: "--all-replicas --yes", did: []string{"rotate frankfurt"},
			change: func(r *rotator) {
				r.f.groups[0].Annotations[v1alpha1.AnnotationRotation] = "2026-11-03T11:00:00Z replicas frankfurt=2 madrid=1"
				keyringIn(r.f, "madrid").RotatedVersion = 2
			}},
		"RolledBack": {reason: "the older keys count again", args: "--all-replicas --yes", did: []string{"rotate frankfurt"},
			change: func(r *rotator) {
				r.f.groups[0].Annotations[v1alpha1.AnnotationRotation] = "2026-11-03T11:00:00Z replicas frankfurt=2 madrid=1"
				keyringIn(r.f, "madrid").RotatedVersion = 2
				keyringIn(r.f, "frankfurt").RotatedVersion = 5
			}},
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
			if diff := cmp.Diff(tc.did, r.did); diff != "" {
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

// TestRotateMovesOnlyWhatMayMove: the operator's preflight is waited for, before the role is asked to move.
func TestRotateMovesOnlyWhatMayMove(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	r.f.explanation = &wire.Explanation{Candidates: []wire.ExplainedCandidate{{Site: "frankfurt", PlannedBlockedBy: "TargetLags", PlannedMessage: "it lags"}}}
	waited := 0
	got := rotated(t, r, runOptions{tick: func(n int) {
		if slices.Contains(r.did, "rotate madrid") {
			if asked(r.f, v1alpha1.AnnotationPlannedFailover) && r.f.explanation != nil {
				t.Error("asked for although it is blocked")
			}
			if waited++; waited == 10 {
				r.f.explanation = nil
			}
		}
		r.look(n)
	}}, "--all --yes")
	if got.code != cli.ExitHealthy || !strings.Contains(got.errOut, "waits: TargetLags: it lags") {
		t.Errorf("%+v", got)
	}
}

// TestRotateAfterAFailover: the role moved by itself while the first site was rotated; what is left is seen anew.
func TestRotateAfterAFailover(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	got := rotated(t, r, runOptions{tick: func(n int) {
		r.look(n)
		if g := &r.f.groups[0]; len(r.did) == 1 && g.Status.ActiveSite == "paris" {
			g.Status.ActiveSite = "frankfurt"
			g.Status.Sites[0].State, g.Status.Sites[1].State = v1alpha1.SiteReplica, v1alpha1.SitePrimary
		}
	}}, "--all --yes")
	if diff := cmp.Diff([]string{"rotate frankfurt", "rotate paris", "rotate madrid"}, r.did); got.code != cli.ExitHealthy || diff != "" {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
}
