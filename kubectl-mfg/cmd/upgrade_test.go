// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

const upgradeLeasePath = "/apis/coordination.k8s.io/v1/namespaces/mfg-system/leases/" + v1alpha1.UpgradeLeaseName

// leaseAPI is an API server that also has the Lease of the turn, and changes it only from the version that was read.
type leaseAPI struct {
	*fakeAPI
	lease     *coordinationv1.Lease
	conflicts int
	// meanwhile happens before a conflict is told.
	meanwhile func(*coordinationv1.Lease)
}

func (f *leaseAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != upgradeLeasePath || f.answers[upgradeLeasePath] != nil:
		f.fakeAPI.ServeHTTP(w, r)
	case r.Method == http.MethodPatch:
		f.patch(w, r)
	default:
		respond(w, http.StatusOK, f.lease)
	}
}

func (f *leaseAPI) patch(w http.ResponseWriter, r *http.Request) {
	var patch struct {
		Metadata struct {
			ResourceVersion string
			Annotations     map[string]*string
		}
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &patch); err != nil {
		status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())(w)
		return
	}
	if f.conflicts > 0 || patch.Metadata.ResourceVersion != f.lease.ResourceVersion {
		f.conflicts--
		f.lease.ResourceVersion += "1"
		if f.meanwhile != nil {
			f.meanwhile(f.lease)
		}
		status(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")(w)
		return
	}
	if r.URL.Query().Get("dryRun") == "" {
		for key, value := range patch.Metadata.Annotations {
			if value == nil {
				delete(f.lease.Annotations, key)
			} else {
				f.lease.Annotations[key] = *value
			}
		}
	} else {
		f.dryRuns++
	}
	respond(w, http.StatusOK, f.lease)
}

// campaigning are five groups in the middle of an upgrade: the first is done, the second has the turn.
func campaigning(t *testing.T) *leaseAPI {
	t.Helper()
	f := &leaseAPI{fakeAPI: loadHealthy(t)}
	healthy := f.groups[0]
	f.groups = nil
	for i, name := range []string{"accounts", "billing", "orders", "search", "users"} {
		g := healthy.DeepCopy()
		g.Name, g.Annotations = name, map[string]string{}
		g.Status.ObservedGeneration = g.Generation
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse}}
		g.Status.Upgrade = &v1alpha1.UpgradeStatus{Revision: "r2"}
		for _, site := range g.Spec.Sites {
			g.Status.Upgrade.Sites = append(g.Status.Upgrade.Sites, v1alpha1.UpgradeSite{Name: site.Name, Behind: i > 1 || i == 1 && site.Name == "paris"})
		}
		f.groups = append(f.groups, *g)
	}
	f.groups[3].Annotations[v1alpha1.AnnotationUpgradePin] = "until the sale is over"
	f.groups[4].Annotations[v1alpha1.AnnotationUpgradeWindow] = "Sat 22:00-24:00"
	since := metav1.NewMicroTime(noon.Add(-2 * time.Minute))
	f.lease = &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "mfg-system", Name: v1alpha1.UpgradeLeaseName, ResourceVersion: "7", Annotations: map[string]string{
			v1alpha1.AnnotationUpgradeRevision: "r2", v1alpha1.AnnotationUpgradeWindow: "",
			v1alpha1.AnnotationUpgradePolicy: "one group at a time, healthy for 1m0s before the next; stops after 30m0s; window always",
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("shop/billing"), AcquireTime: &since},
	}
	return f
}

func TestUpgradeStatus(t *testing.T) {
	for file, tc := range map[string]struct {
		args   string
		width  int
		change func(*leaseAPI)
		code   int
	}{
		"upgrade-status.txt":    {"upgrade status", 0, func(*leaseAPI) {}, cli.ExitHealthy},
		"upgrade-status-80.txt": {"upgrade status", 80, func(*leaseAPI) {}, cli.ExitHealthy},
		"upgrade-status.json":   {"upgrade status -o json", 0, func(*leaseAPI) {}, cli.ExitHealthy},
		"upgrade-one.txt":       {"upgrade status orders -n shop", 0, func(*leaseAPI) {}, cli.ExitHealthy},
		"upgrade-stopped.txt": {"upgrade status", 0, func(f *leaseAPI) {
			f.lease.Annotations[v1alpha1.AnnotationUpgradeStopped] = "shop/billing was not done and healthy within 30m0s: a site is down"
			f.groups[1].Status.Upgrade.Sites[0].Behind = false
			f.groups[1].Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: "a site is down"}
		}, cli.ExitDegraded},
		"upgrade-paused.txt": {"upgrade status", 0, func(f *leaseAPI) {
			f.lease.Annotations[v1alpha1.AnnotationUpgradePaused] = "2026-11-03T11:58:00Z"
			f.lease.Spec = coordinationv1.LeaseSpec{}
			f.groups[1].Status.Upgrade.Revision = "r1"
			f.groups[4].Annotations[v1alpha1.AnnotationUpgradeWindow] = "at night"
		}, cli.ExitHealthy},
		"upgrade-next.txt": {"upgrade status", 0, func(f *leaseAPI) {
			f.lease.Spec = coordinationv1.LeaseSpec{}
			for i := range f.groups {
				f.groups[i].Annotations = nil
			}
		}, cli.ExitHealthy},
	} {
		t.Run(file, func(t *testing.T) {
			f := campaigning(t)
			tc.change(f)
			got := run(t, f, runOptions{width: tc.width, env: map[string]string{"NO_COLOR": "1"}}, strings.Fields(tc.args)...)
			if got.code != tc.code || got.errOut != "" {
				t.Errorf("exit code %d, want %d; stderr %q", got.code, tc.code, got.errOut)
			}
			golden(t, filepath.Join("testdata", "verbs", file), got.out)
		})
	}
}

// TestUpgradeSettling: a group in its turn whose pods are all new is watched for a while.
func TestUpgradeSettling(t *testing.T) {
	f := campaigning(t)
	for i := range f.groups[1].Status.Upgrade.Sites {
		f.groups[1].Status.Upgrade.Sites[i].Behind = false
	}
	f.lease.Spec.RenewTime = new(metav1.NewMicroTime(noon.Add(-time.Minute)))
	got := run(t, f, runOptions{}, strings.Fields("upgrade status -n shop -o jsonpath={.groups[1]}")...)
	if !strings.Contains(got.out, `"Settling"`) || !strings.Contains(got.out, "healthy since 11:59:00") {
		t.Errorf("%+v", got)
	}
}

// TestUpgradePinnedInItsTurn: no more pods of it are replaced, and nobody else's yet.
func TestUpgradePinnedInItsTurn(t *testing.T) {
	f := campaigning(t)
	f.groups[1].Annotations[v1alpha1.AnnotationUpgradePin] = "until noon"
	got := run(t, f, runOptions{}, strings.Fields("upgrade status -n shop -o jsonpath={.groups[1]}")...)
	if !strings.Contains(got.out, `"Pinned"`) || !strings.Contains(got.out, "until noon; it keeps the turn") {
		t.Errorf("%+v", got)
	}
}

// TestUpgradeStatusWithLessRights: what may not be seen is said, with what can be done.
func TestUpgradeStatusWithLessRights(t *testing.T) {
	f := campaigning(t)
	f.answers[groupsPath+"/mysqlfailovergroups"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
	if got := run(t, f, runOptions{}, strings.Fields("upgrade status -n shop")...); got.code != cli.ExitHealthy || !strings.Contains(got.out, "these are those of shop") {
		t.Errorf("%+v", got)
	}
	f = campaigning(t)
	f.answers[upgradeLeasePath] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
	if got := run(t, f, runOptions{}, strings.Fields("upgrade status")...); got.code != cli.ExitError || !strings.Contains(got.errOut, "kubectl mfg status GROUP") {
		t.Errorf("%+v", got)
	}
	f = campaigning(t)
	f.answers[upgradeLeasePath] = status(http.StatusNotFound, metav1.StatusReasonNotFound, "no")
	for _, verb := range []string{"status", "pause --yes", "resume --yes"} {
		if got := run(t, f, runOptions{}, strings.Fields("upgrade "+verb)...); got.code != cli.ExitError || !strings.Contains(got.errOut, "--operator-namespace") {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}

// TestUpgradePauseOfAll: the Lease says it from then on, whatever the operator wrote to it meanwhile.
func TestUpgradePauseOfAll(t *testing.T) {
	f := campaigning(t)
	before := maps.Clone(f.lease.Annotations)
	for _, args := range []string{"upgrade pause", "upgrade pause --yes --dry-run=client", "upgrade pause --yes --dry-run=server"} {
		run(t, f, runOptions{}, strings.Fields(args)...)
		if !maps.Equal(before, f.lease.Annotations) {
			t.Errorf("%s: changed %v", args, f.lease.Annotations)
		}
	}
	if f.dryRuns != 1 {
		t.Errorf("%d dry runs reached the API server", f.dryRuns)
	}
	f.conflicts = 2
	got := run(t, f, runOptions{}, strings.Fields("upgrade pause --yes")...)
	since := f.lease.Annotations[v1alpha1.AnnotationUpgradePaused]
	if got.code != cli.ExitHealthy || since == "" || !strings.Contains(got.out, "kubectl mfg upgrade resume") {
		t.Errorf("%+v, paused %q", got, since)
	}
	if _, err := time.Parse(time.RFC3339, since); err != nil {
		t.Error(err)
	}
	if got := run(t, f, runOptions{}, strings.Fields("upgrade pause --yes")...); got.code != cli.ExitHealthy || !strings.Contains(got.out, "nothing was changed") || f.lease.Annotations[v1alpha1.AnnotationUpgradePaused] != since {
		t.Errorf("%+v", got)
	}
	var rep struct {
		Kind, Verb, Outcome string
		Metadata            metav1.ObjectMeta
	}
	got = run(t, f, runOptions{}, strings.Fields("upgrade resume --yes -o json")...)
	if err := json.Unmarshal([]byte(got.out), &rep); err != nil || rep.Outcome != cli.OutcomeDone || rep.Verb != "upgrade resume" || rep.Metadata.Name != v1alpha1.UpgradeLeaseName {
		t.Errorf("%v: %+v", err, got)
	}
	if !maps.Equal(before, f.lease.Annotations) {
		t.Errorf("left %v", f.lease.Annotations)
	}
}

// TestUpgradeResumeAfterAStop: what a person agrees to is the stop that was shown, not one that came meanwhile.
func TestUpgradeResumeAfterAStop(t *testing.T) {
	f := campaigning(t)
	f.lease.Annotations[v1alpha1.AnnotationUpgradeStopped] = "shop/billing was not healthy"
	f.conflicts = 1
	f.meanwhile = func(l *coordinationv1.Lease) {
		l.Annotations[v1alpha1.AnnotationUpgradeStopped] = "shop/orders was not healthy"
	}
	got := run(t, f, runOptions{}, strings.Fields("upgrade resume --yes")...)
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "shop/orders was not healthy") || f.lease.Annotations[v1alpha1.AnnotationUpgradeStopped] == "" {
		t.Errorf("%+v", got)
	}
	f.meanwhile = nil
	got = run(t, f, runOptions{}, strings.Fields("upgrade resume --yes")...)
	if got.code != cli.ExitHealthy || f.lease.Annotations[v1alpha1.AnnotationUpgradeStopped] != "" || !strings.Contains(got.errOut, "look at it first") {
		t.Errorf("%+v, %v", got, f.lease.Annotations)
	}
	if got := run(t, f, runOptions{}, strings.Fields("upgrade resume --yes")...); got.code != cli.ExitHealthy || !strings.Contains(got.out, "nothing was changed") {
		t.Errorf("%+v", got)
	}
}

// A stop that somebody cleared while the command asked is told as such, not as a stop without a reason.
func TestUpgradeResumeAfterAnotherCleared(t *testing.T) {
	f := campaigning(t)
	f.lease.Annotations[v1alpha1.AnnotationUpgradeStopped] = "shop/billing was not healthy"
	f.conflicts = 1
	f.meanwhile = func(l *coordinationv1.Lease) { delete(l.Annotations, v1alpha1.AnnotationUpgradeStopped) }
	got := run(t, f, runOptions{}, strings.Fields("upgrade resume --yes")...)
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "somebody cleared the stop") || strings.Contains(got.errOut, "stopped meanwhile") {
		t.Errorf("%+v", got)
	}
}

// A pause that somebody sets while the command asks is not what its user agreed to end.
func TestUpgradeResumeAfterAPause(t *testing.T) {
	f := campaigning(t)
	f.lease.Annotations[v1alpha1.AnnotationUpgradeStopped] = "shop/billing was not healthy"
	f.conflicts = 1
	f.meanwhile = func(l *coordinationv1.Lease) {
		l.Annotations[v1alpha1.AnnotationUpgradePaused] = "2026-11-24T12:00:00Z"
	}
	got := run(t, f, runOptions{}, strings.Fields("upgrade resume --yes")...)
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "kubectl mfg upgrade status") || f.lease.Annotations[v1alpha1.AnnotationUpgradePaused] == "" {
		t.Errorf("%+v, %v", got, f.lease.Annotations)
	}
}

// TestUpgradePin: one group is pinned with a word on why, and no other thing is touched.
func TestUpgradePin(t *testing.T) {
	f := campaigning(t)
	pin := func() string { return f.groups[2].Annotations[v1alpha1.AnnotationUpgradePin] }
	got := run(t, f, runOptions{}, "upgrade", "pause", "orders", "-n", "shop", "--yes", "--why", "until Monday")
	if got.code != cli.ExitHealthy || pin() != "until Monday" || f.lease.Annotations[v1alpha1.AnnotationUpgradePaused] != "" {
		t.Errorf("%+v, pinned %q", got, pin())
	}
	if got := run(t, f, runOptions{}, strings.Fields("upgrade pause orders -n shop --yes --why again")...); !strings.Contains(got.out, "nothing was changed") || pin() != "until Monday" {
		t.Errorf("%+v, pinned %q", got, pin())
	}
	if got := run(t, f, runOptions{}, strings.Fields("upgrade resume orders -n shop --yes")...); got.code != cli.ExitHealthy || pin() != "" {
		t.Errorf("%+v, pinned %q", got, pin())
	}
	if got := run(t, f, runOptions{}, strings.Fields("upgrade resume orders -n shop --yes")...); got.code != cli.ExitHealthy || !strings.Contains(got.out, "nothing was changed") {
		t.Errorf("%+v", got)
	}
	if got := run(t, f, runOptions{}, strings.Fields("upgrade pause orders -n shop --yes")...); got.code != cli.ExitHealthy || !strings.HasPrefix(pin(), "since 20") {
		t.Errorf("%+v, pinned %q", got, pin())
	}
	// A group that has the turn may have a pod on its way.
	f.groups[1].Status.Conditions = append(f.groups[1].Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionUpgradePending, Status: metav1.ConditionTrue, Reason: string(v1alpha1.ReasonUpgradeUnderWay)})
	if got := run(t, f, runOptions{}, strings.Fields("upgrade pause billing -n shop --dry-run=client")...); !strings.Contains(got.out, "it has the turn") {
		t.Errorf("%+v", got)
	}
}

// TestUpgradeWordsOfOthers: what somebody wrote into an annotation is one line of bounded length, and moves no cursor.
func TestUpgradeWordsOfOthers(t *testing.T) {
	f := campaigning(t)
	f.groups[3].Annotations[v1alpha1.AnnotationUpgradePin] = "a\x1b[2Jb\nc" + strings.Repeat("x", 1000)
	got := run(t, f, runOptions{}, strings.Fields("upgrade status")...)
	if strings.ContainsRune(got.out, '\x1b') || !strings.Contains(got.out, "a [2Jb cxxx") || strings.Contains(got.out, strings.Repeat("x", 400)) {
		t.Errorf("%q", got.out)
	}
}

func TestUpgradeUsage(t *testing.T) {
	for args, want := range map[string]string{
		"upgrade now":                 "there are status, pause and resume",
		"upgrade pause --why because": "GROUP, which is missing",
		"upgrade pause orders --why " + strings.Repeat("x", 201): "more than 200 bytes",
		"upgrade status a b":          "at most 1",
		"upgrade status --color pink": "--color must be one of",
		"upgrade resume Orders_":      "cannot be the name of a group",
	} {
		f := campaigning(t)
		got := run(t, f, runOptions{}, strings.Fields(args)...)
		if got.code != cli.ExitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestStatusOfAGroupThatWaits: one line, with where to look.
func TestStatusOfAGroupThatWaits(t *testing.T) {
	f := loadHealthy(t)
	f.groups[0].Status.Conditions = append(f.groups[0].Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionUpgradePending, Status: metav1.ConditionTrue, Reason: string(v1alpha1.ReasonUpgradeWaiting), Message: "the pods of paris are old",
	})
	got := run(t, f, runOptions{}, strings.Fields("status orders -n shop")...)
	want := fmt.Sprintf("the pods of paris are old [%s]; see who is first: kubectl mfg upgrade status", v1alpha1.ReasonUpgradeWaiting)
	if got.code != cli.ExitHealthy || !strings.Contains(got.out, want) {
		t.Errorf("%+v", got)
	}
}

// TestUpgradeNotLookedAt: nothing waits, as far as anybody has looked, is not the same as nothing waits.
func TestUpgradeNotLookedAt(t *testing.T) {
	f := campaigning(t)
	for i := range f.groups {
		f.groups[i].Status.Upgrade.Revision = "r1"
	}
	f.lease.Spec.HolderIdentity = nil
	got := run(t, f, runOptions{}, "upgrade", "status")
	if strings.Contains(got.out, "no pod waits for a turn") || !strings.Contains(got.out, "has not looked at 5 of 5 groups yet") {
		t.Errorf("%+v", got)
	}
}

// TestUpgradeOfAnotherRelease: the commands that are printed act on the release that was looked at, and not on the usual one.
func TestUpgradeOfAnotherRelease(t *testing.T) {
	f := campaigning(t)
	f.lease.Namespace, f.lease.Annotations[v1alpha1.AnnotationUpgradeStopped] = "mfg-blue", "shop/billing was not healthy in time"
	f.objects = map[string]any{strings.Replace(upgradeLeasePath, "mfg-system", "mfg-blue", 1): f.lease}
	for _, args := range []string{"upgrade status", "upgrade resume --dry-run=client"} {
		got := run(t, f, runOptions{}, append(strings.Fields(args), "--operator-namespace", "mfg-blue")...)
		said := got.out + got.errOut
		if !strings.Contains(said, "--operator-namespace mfg-blue") {
			t.Errorf("%s: %s", args, said)
		}
		if args == "upgrade status" && !strings.Contains(said, "kubectl mfg upgrade pause billing -n shop") {
			t.Errorf("%s does not name the group: %s", args, said)
		}
	}
}
