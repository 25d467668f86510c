// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
)

// wholeRecovery is all that a recovery changes, in order.
var wholeRecovery = []string{"read pod", "create Secret", "patch Secret", "patch status", "create Event"}

// checkRecovered fails the test unless everything is as if nothing had been lost. operator/escrow compares the golden file
// with what the operator itself makes.
func checkRecovered(t *testing.T, f *escrowAPI) {
	t.Helper()
	f.operate()
	s := f.secrets[lostSecret]
	if s == nil {
		t.Fatal("the Secret is not there")
	}
	if keyrings.Digest(s) != f.site().KeyringDigest || f.site().Phase != v1alpha1.KeyringSealed {
		t.Errorf("%s with %s, phase %s", s.Name, keyrings.Digest(s), f.site().Phase)
	}
	shown := s.DeepCopy()
	shown.ObjectMeta = metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, Labels: s.Labels, Annotations: s.Annotations, OwnerReferences: s.OwnerReferences}
	raw, err := yaml.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "recover", "secret.yaml"), string(raw))
	if len(f.events) != 1 {
		t.Errorf("%d events, want one", len(f.events))
	}
}

// checkUntouched fails the test if anything was changed.
func checkUntouched(t *testing.T, f *escrowAPI, before []byte) {
	t.Helper()
	if diff := cmp.Diff(string(before), f.state(t)); diff != "" {
		t.Errorf("something was changed (-before +after):\n%s", diff)
	}
}

// state is all that the API server holds.
func (f *escrowAPI) state(t *testing.T) string {
	t.Helper()
	raw, err := json.MarshalIndent(map[string]any{"group": f.group(), "secrets": f.secrets, "events": f.events, "pods": f.pods}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestRecoverKeyring(t *testing.T) {
	tests := map[string]struct {
		reason  string
		args    string
		stdin   string
		change  func(*escrowAPI)
		code    int
		changes []string
		out     []string
		errOut  []string
	}{
		"Recovers": {stdin: "y\n", changes: wholeRecovery, out: []string{"is in escrow again with sha256:", "frankfurt is Sealed"},
			errOut: []string{"[y/N]", "Step 1", "do not delete, restart, evict or drain", "compare: done", "record: done"}},
		"Yes":          {args: "--yes", changes: wholeRecovery, out: []string{"frankfurt is Sealed"}},
		"NotConfirmed": {stdin: "n\n", code: cli.ExitUsage, errOut: []string{"nothing was changed"}},
		"NoTerminal":   {code: cli.ExitUsage, errOut: []string{"no --yes", "nothing was changed"}},
		"NoWait": {reason: "the event tells of what was done already", args: "--yes --wait=false", changes: wholeRecovery,
			out: []string{"is in escrow again; see how the site gets Sealed"}},
		"NotNoticed": {reason: "the operator has not looked yet: there is no phase to patch", args: "--yes",
			change:  func(f *escrowAPI) { f.site().Phase, f.site().Message = v1alpha1.KeyringSealed, "" },
			changes: []string{"read pod", "create Secret", "patch Secret", "create Event"}},
		"AboutToBeSealed": {reason: "I16: from Failed it goes on to Escrowed, and is proven to be sealed", args: "--yes",
			change:  func(f *escrowAPI) { f.site().Stage = v1alpha1.KeyringSealing },
			changes: []string{"read pod", "create Secret", "patch Secret", "create Event"}},
		"OperatorIdle": {reason: "the Secret is more urgent than who looks after it", args: "--yes --timeout 3s", change: func(f *escrowAPI) { f.idle = true },
			code: cli.ExitTimeout, changes: wholeRecovery[:4], errOut: []string{"no outcome within 3s at step wait", "no event was recorded", "run it again, and it continues from there: kubectl mfg recover-keyring orders frankfurt -n shop"}},
		"Conflicts": {reason: "the operator acts meanwhile, and there is no phase to patch any more", args: "--yes",
			change: func(f *escrowAPI) { f.conflicts = 3 }, changes: []string{"read pod", "create Secret", "patch Secret", "create Event"}},
		"TerminatingPod": {reason: "it is the last moment at which it can be saved", args: "--yes",
			change: func(f *escrowAPI) { f.pods[0].DeletionTimestamp = &metav1.Time{Time: noon} }, changes: wholeRecovery},
		"NothingMissing": {args: "--yes", change: func(f *escrowAPI) {
			f.store(keyrings.Secret(f.group(), *f.site(), []byte(keyMaterial)))
			f.operate()
		}, out: []string{"nothing is missing"}},
		"PodGone": {args: "--yes", change: func(f *escrowAPI) { f.pods = nil }, code: cli.ExitRefused,
			errOut: []string{"the pod of frankfurt is gone", "kubectl mfg reclone orders frankfurt -n shop --confirm-data-loss"}},
		"NewPodWaits": {reason: "a pod that waits for the Secret has nothing in its memory", args: "--yes", code: cli.ExitRefused, errOut: []string{"is gone"},
			change: func(f *escrowAPI) { f.pods = []corev1.Pod{f.pod("new", corev1.PodPending)} }},
		"PodGoneOfActive": {args: "--yes", code: cli.ExitRefused, errOut: []string{"is the active site", "kubectl mfg explain orders", "kubectl mfg reclone orders frankfurt"},
			change: func(f *escrowAPI) { f.pods, f.group().Status.ActiveSite = nil, "frankfurt" }},
		"ContainerHalts": {reason: "the pod's memory outlives its containers", args: "--yes", code: cli.ExitRefused, errOut: []string{"still has the keyring in its memory", "get pod mysql-orders-frankfurt-7d9f-abcde"},
			change: func(f *escrowAPI) { f.pods[0].Status.ContainerStatuses[0].State = corev1.ContainerState{} }},
		"OtherKeyring": {reason: "compared before anything is made", args: "--yes", change: func(f *escrowAPI) { f.live = "{}" }, code: cli.ExitRefused,
			changes: []string{"read pod"}, errOut: []string{"this is another keyring", "nothing was changed", "kubectl mfg keyring verify orders"}},
		"OtherKeyringAndDeaf": {reason: "the pod that could not be asked may hold the one that is missing", args: "--yes", code: cli.ExitError, changes: []string{"read pod"},
			change: func(f *escrowAPI) {
				f.live, f.deaf = "{}", "leaving"
				f.pods = append(f.pods, f.pod(f.deaf, corev1.PodRunning))
			}, errOut: []string{"pod mysql-orders-frankfurt-7d9f-abcde has sha256:", "is missing", "another pod of the site, which may have it, could not be asked",
				"read /run/keys/keyring in pod leaving: unable to upgrade connection", "Nothing was changed", "Do not delete or restart the pod", "run it again"}},
		"EmptyFile": {args: "--yes", change: func(f *escrowAPI) { f.live = "" }, code: cli.ExitError, changes: []string{"read pod"}, errOut: []string{"is empty"}},
		"HugeFile":  {args: "--yes", change: func(f *escrowAPI) { f.live = strings.Repeat("x", 600<<10) }, code: cli.ExitError, changes: []string{"read pod"}, errOut: []string{"too large"}},
		"ExecFails": {args: "--yes", change: func(f *escrowAPI) { f.denied = []string{"exec"} }, code: cli.ExitError, errOut: []string{"Do not delete or restart the pod"}},
		"NotSealed": {args: "--yes", code: cli.ExitRefused, errOut: []string{"is not sealed", "unsealed, for a rotation", "kubectl mfg keyring list orders"},
			change: func(f *escrowAPI) {
				f.site().Phase, f.site().Work = v1alpha1.KeyringUnsealed, v1alpha1.KeyringRotation
			}},
		"LateEscrow": {reason: "Failed for want of an escrow is no lost Secret", args: "--yes", code: cli.ExitRefused, errOut: []string{"is not sealed"},
			change: func(f *escrowAPI) {
				f.site().Phase, f.site().Work = v1alpha1.KeyringFailed, v1alpha1.KeyringBootstrap
			}},
		"NotEncrypted": {args: "--yes", change: func(f *escrowAPI) { f.group().Spec.EncryptionAtRest = nil }, code: cli.ExitRefused, errOut: []string{"is not encrypted"}},
		"NoDigest":     {args: "--yes", change: func(f *escrowAPI) { f.site().KeyringDigest = "" }, code: cli.ExitRefused, errOut: []string{"status does not say"}},
		"Deleting": {args: "--yes", code: cli.ExitRefused, errOut: []string{"is being deleted"}, change: func(f *escrowAPI) {
			f.group().DeletionTimestamp, f.group().Spec.DeletionPolicy = &metav1.Time{Time: noon}, v1alpha1.DeletionDelete
		}},
		"NameTaken": {reason: "somebody else's Secret may be the last copy of something", args: "--yes", code: cli.ExitRefused,
			errOut: []string{"was not made by this command", "kubectl delete secret " + lostSecret},
			change: func(f *escrowAPI) { f.store(keyrings.Bare(f.group(), *f.site(), []byte("{}"))) }},
		"Leaving": {reason: "it is as good as gone, and cannot be made again before it is", args: "--yes", code: cli.ExitRefused,
			errOut: []string{"is being deleted and has finalizers", "kubectl get secret " + lostSecret},
			change: func(f *escrowAPI) {
				f.store(keyrings.Secret(f.group(), *f.site(), []byte(keyMaterial)))
				s := f.secrets[lostSecret]
				s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: noon}, []string{"example.com/kept"}
			}},
		"WrongInEscrow": {args: "--yes", code: cli.ExitRefused, errOut: []string{"is not touched"}, change: func(f *escrowAPI) {
			s := keyrings.Secret(f.group(), *f.site(), []byte("{}"))
			s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: cli.FieldManager}}
			f.store(s)
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newEscrowAPI(t)
			if tc.change != nil {
				tc.change(f)
			}
			before := []byte(f.state(t))
			got := f.recovers(t, runOptions{stdin: tc.stdin}, append([]string{"recover-keyring", "orders", "frankfurt", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || !slices.Equal(f.changes, tc.changes) {
				t.Errorf("%s: exit code %d, want %d; changes %v, want %v; stderr:\n%s", tc.reason, got.code, tc.code, f.changes, tc.changes, got.errOut)
			}
			for _, want := range tc.out {
				if !strings.Contains(got.out, want) {
					t.Errorf("stdout lacks %q:\n%s", want, got.out)
				}
			}
			for _, want := range tc.errOut {
				if !strings.Contains(got.errOut, want) {
					t.Errorf("stderr lacks %q:\n%s", want, got.errOut)
				}
			}
			switch {
			case len(tc.changes) > 1 && tc.code == cli.ExitHealthy:
				checkRecovered(t, f)
			case len(tc.changes) < 2:
				checkUntouched(t, f, before)
			}
		})
	}
}

// TestRecoverKeyringInterrupted kills the plugin before and after every change, and runs it again: each time the second
// run finishes, and what is there in the end is the same.
func TestRecoverKeyringInterrupted(t *testing.T) {
	for operator, during := range map[string]func(*escrowAPI){
		"operator idle":      func(*escrowAPI) {},
		"operator acts":      (*escrowAPI).operate,
		"operator completes": func(f *escrowAPI) { f.complete(); f.operate() },
	} {
		for at := 1; at <= len(wholeRecovery); at++ {
			for _, done := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/done=%t", operator, wholeRecovery[at-1], done), func(t *testing.T) {
					f := newEscrowAPI(t)
					f.killAt, f.killDone = at, done
					first := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes", "--timeout", "5s")
					if first.code == cli.ExitHealthy {
						t.Fatalf("it survived: %+v", first)
					}
					if at < 5 && !strings.Contains(first.errOut, "kubectl mfg recover-keyring orders frankfurt -n shop") {
						t.Errorf("it does not say how to go on: %s", first.errOut)
					}
					f.dead, f.killAt = false, 0
					during(f)
					second := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes")
					if second.code != cli.ExitHealthy {
						t.Fatalf("the second run: %+v", second)
					}
					checkRecovered(t, f)
					before := f.state(t)
					third := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes")
					if third.code != cli.ExitHealthy || !strings.Contains(third.out, "nothing is missing") {
						t.Errorf("the third run: %+v", third)
					}
					checkUntouched(t, f, []byte(before))
				})
			}
		}
	}
}

// TestRecoverKeyringByHand: what somebody did of the documented commands is gone on from.
func TestRecoverKeyringByHand(t *testing.T) {
	want := func(f *escrowAPI) *corev1.Secret { return keyrings.Secret(f.group(), *f.site(), []byte(keyMaterial)) }
	tests := map[string]struct {
		secret func(*escrowAPI) *corev1.Secret
		code   int
		says   string
	}{
		"Created": {func(f *escrowAPI) *corev1.Secret { return keyrings.Bare(f.group(), *f.site(), []byte(keyMaterial)) }, cli.ExitHealthy, ""},
		"Annotated": {func(f *escrowAPI) *corev1.Secret {
			s := want(f)
			s.Labels, s.Immutable, s.OwnerReferences = nil, nil, nil
			return s
		}, cli.ExitHealthy, ""},
		"Labelled": {func(f *escrowAPI) *corev1.Secret { s := want(f); s.Immutable, s.OwnerReferences = nil, nil; return s }, cli.ExitHealthy, ""},
		"OldOwner": {func(f *escrowAPI) *corev1.Secret {
			s := want(f)
			s.Immutable, s.OwnerReferences[0].UID = nil, "of-the-group-before"
			return s
		}, cli.ExitHealthy, ""},
		"NoOwner": {func(f *escrowAPI) *corev1.Secret { s := want(f); s.OwnerReferences = nil; return s }, cli.ExitHealthy, "the operator adds the owner"},
		"Unprotected": {func(f *escrowAPI) *corev1.Secret {
			s := want(f)
			s.Labels[v1alpha1.LabelAllowDeletion] = "true"
			return s
		}, cli.ExitHealthy, ""},
		"WrongLabels": {func(f *escrowAPI) *corev1.Secret { s := want(f); s.Labels[v1alpha1.LabelSite] = "paris"; return s }, cli.ExitRefused,
			"kubectl label secret " + lostSecret + " -n shop " + v1alpha1.LabelAllowDeletion + "=true"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newEscrowAPI(t)
			f.store(tc.secret(f))
			got := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes")
			if got.code != tc.code || !strings.Contains(got.errOut, tc.says) {
				t.Fatalf("%+v", got)
			}
			if slices.Contains(f.changes, "read pod") {
				t.Error("the pod was asked for what is there already")
			}
			if tc.code == cli.ExitHealthy {
				checkRecovered(t, f)
			}
		})
	}
}

// TestRecoverKeyringWrongDigest: what is stored and is not what is missing is deleted again, and nothing else is changed.
func TestRecoverKeyringWrongDigest(t *testing.T) {
	args := []string{"recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes"}
	t.Run("OnItsWay", func(t *testing.T) {
		f := newEscrowAPI(t)
		before := f.state(t)
		f.corrupt = true
		got := f.recovers(t, runOptions{}, args...)
		if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "was deleted again; nothing else was changed") {
			t.Errorf("%+v", got)
		}
		if want := []string{"read pod", "create Secret", "delete Secret"}; !slices.Equal(f.changes, want) {
			t.Errorf("changes %v, want %v", f.changes, want)
		}
		checkUntouched(t, f, []byte(before))
	})
	t.Run("LeftByAnInterruptedRun", func(t *testing.T) {
		f := newEscrowAPI(t)
		before := f.state(t)
		f.corrupt, f.killAt, f.killDone = true, 2, true
		f.recovers(t, runOptions{}, args...)
		f.dead, f.killAt, f.corrupt = false, 0, false
		if got := f.recovers(t, runOptions{}, args...); got.code != cli.ExitRefused || f.changes[len(f.changes)-1] != "delete Secret" {
			t.Errorf("%v, %+v", f.changes, got)
		}
		checkUntouched(t, f, []byte(before))
		if got := f.recovers(t, runOptions{}, args...); got.code != cli.ExitHealthy {
			t.Errorf("%+v", got)
		}
		checkRecovered(t, f)
	})
}

// TestRecoverKeyringCtrlC: it ends with a code of its own and says how to go on.
func TestRecoverKeyringCtrlC(t *testing.T) {
	f := newEscrowAPI(t)
	f.conflicts = 100
	ctx, cancel := context.WithCancel(t.Context())
	got := f.recovers(t, runOptions{ctx: ctx, tick: func(int) { cancel() }}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes")
	if got.code != cli.ExitTimeout || !strings.Contains(got.errOut, "interrupted at step protect") || !strings.Contains(got.errOut, "run it again") {
		t.Errorf("%+v", got)
	}
	f.conflicts = 0
	if got := f.recovers(t, runOptions{}, "recover-keyring", "orders", "frankfurt", "-n", "shop", "--yes"); got.code != cli.ExitHealthy {
		t.Errorf("%+v", got)
	}
	checkRecovered(t, f)
}
