// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// TestHints: each problem with a way out names the commands.
func TestHints(t *testing.T) {
	pod := "kubectl get pods -o wide -n shop -l mysql-mfg.io/failover-group=orders,mysql-mfg.io/site=rome,app.kubernetes.io/name=mysql"
	for name, tc := range map[string]struct {
		site wire.SiteStatus
		want []string
	}{
		"Unreachable":   {wire.SiteStatus{Name: "rome", State: "Unreachable"}, []string{pod}},
		"SidecarSilent": {wire.SiteStatus{Name: "rome", State: "Replica", Reachable: true}, []string{pod}},
		"Pending":       {wire.SiteStatus{Name: "rome", State: "Pending"}, []string{pod}},
		"Cloning":       {wire.SiteStatus{Name: "rome", State: "Cloning"}, nil},
		"Diverged":      {wire.SiteStatus{Name: "rome", State: "Diverged", Reachable: true}, []string{"kubectl mfg history orders -n shop", "kubectl mfg reclone orders rome -n shop --confirm-data-loss"}},
	} {
		cr, view := healthy()
		view.Status.Groups[0].Sites[1] = tc.site
		var got []string
		for _, h := range Build(cr, view).Hints {
			got = append(got, h.Command)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	t.Run("PendingWhileACloneIsUnderWay", func(t *testing.T) {
		cr, view := healthy()
		cr.Status.Sites[1].Clone = &v1alpha1.CloneProgress{Source: "paris"}
		view.Status.Groups[0].Sites[1] = wire.SiteStatus{Name: "rome", State: "Pending"}
		if r := Build(cr, view); len(r.Hints) > 0 {
			t.Errorf("%+v", r.Hints)
		}
	})
}

// TestHintsOfAnOutage: who reads status in the worst hour is told what to do about each of its problems.
func TestHintsOfAnOutage(t *testing.T) {
	const why = "kubectl mfg explain orders -n shop"
	log := func(site string) string {
		return "kubectl logs -c sidecar --tail=100 -n shop -l mysql-mfg.io/failover-group=orders,mysql-mfg.io/site=" + site + ",app.kubernetes.io/name=mysql"
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MysqlFailoverGroup, []wire.SiteStatus)
		want   []string
		says   string // of the first
	}{
		"SeveralWritable": {
			func(_ *v1alpha1.MysqlFailoverGroup, sites []wire.SiteStatus) {
				sites[1].State, sites[1].Writable = "Fenced", true
			},
			[]string{why, log("rome")}, "rome must stop: keep clients away from there",
		},
		"ActiveSiteReadOnly": {
			func(_ *v1alpha1.MysqlFailoverGroup, sites []wire.SiteStatus) {
				sites[0].State, sites[0].Writable = "Fenced", false
			},
			[]string{why, log("paris")}, "what keeps paris from being opened",
		},
		"NoActiveSite": {
			func(cr *v1alpha1.MysqlFailoverGroup, sites []wire.SiteStatus) {
				cr.Status.Epoch, cr.Status.ActiveSite, sites[0].State, sites[0].Writable = 5, "", "Replica", false
			},
			[]string{why}, "what the first opening of a site waits for",
		},
		"Detached": {
			func(_ *v1alpha1.MysqlFailoverGroup, sites []wire.SiteStatus) { sites[1].State = "Detached" },
			[]string{`kubectl mfg mysql orders rome -n shop -e 'SHOW REPLICA STATUS\G'`}, "what stopped the replication of rome",
		},
		"Removed": {
			func(cr *v1alpha1.MysqlFailoverGroup, sites []wire.SiteStatus) {
				sites[1].State, cr.Spec.Sites = "Detached", cr.Spec.Sites[:1]
			},
			nil, "",
		},
		"DetachedWhileTheRoleMoves": {
			func(cr *v1alpha1.MysqlFailoverGroup, sites []wire.SiteStatus) {
				sites[1].State, cr.Status.Transition = "Detached", &v1alpha1.Transition{Kind: v1alpha1.FailoverEmergency, To: "paris"}
			},
			nil, "",
		},
		"UnavailableWhileTheRoleMoves": {
			func(cr *v1alpha1.MysqlFailoverGroup, _ []wire.SiteStatus) {
				cr.Status.Transition = &v1alpha1.Transition{Kind: v1alpha1.FailoverPlanned, To: "paris"}
				cr.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, "FailingOver")}
			},
			nil, "",
		},
		"Unavailable": {
			func(cr *v1alpha1.MysqlFailoverGroup, _ []wire.SiteStatus) {
				cr.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse, "AllSitesSilent")}
			},
			[]string{why}, "why no site takes writes",
		},
	} {
		cr, view := healthy()
		tc.change(cr, view.Status.Groups[0].Sites)
		var got []string
		r := Build(cr, view)
		for _, h := range r.Hints {
			got = append(got, h.Command)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || tc.says != "" && !strings.Contains(r.Hints[0].Message, tc.says) {
			t.Errorf("%s (-want +got):\n%s%+v", name, diff, r.Hints)
		}
	}
}

// TestOperatorHints: one of the commands needs no right beyond the group's namespace.
func TestOperatorHints(t *testing.T) {
	for name, change := range map[string]func(*LiveView){
		"Down":   func(v *LiveView) { *v = LiveView{Missing: "no endpoints", Down: true} },
		"Silent": func(v *LiveView) { *v = LiveView{Missing: "no answer within 3s"} },
		"Stale":  func(v *LiveView) { v.Status.Groups[0].ObservedAt = noon.Add(-time.Minute) },
	} {
		cr, view := healthy()
		change(&view)
		hints := Build(cr, view).Hints
		if len(hints) != 2 || !strings.Contains(hints[0].Command, "leases -A") || !strings.Contains(hints[0].Message, "if you may") ||
			hints[1].Command != "kubectl mfg doctor orders -n shop" {
			t.Errorf("%s: %+v", name, hints)
		}
	}
}

// TestEscrowHints: each site with the only copy of its keyring is named, also one that lost its Secret while it was sealed. One
// whose pod still writes its keyring puts it into escrow by itself.
func TestEscrowHints(t *testing.T) {
	for name, tc := range map[string]struct {
		keyring Keyring
		want    string
	}{
		"Lost":     {Keyring{Phase: "Failed"}, "kubectl mfg recover-keyring orders rome -n shop"},
		"Sealing":  {Keyring{Phase: "Failed", Work: "Rotation", Stage: "Sealing"}, "kubectl mfg recover-keyring orders rome -n shop"},
		"Rotating": {Keyring{Phase: "Failed", Work: "Rotation", Stage: "Rotating"}, "kubectl mfg keyring verify orders -n shop"},
	} {
		cr, view := healthy()
		r := Build(cr, view)
		r.Sites[1].Keyring = &tc.keyring
		if hints := escrowHints(r); len(hints) != 1 || hints[0].Command != tc.want {
			t.Errorf("%s: %+v", name, hints)
		}
	}
}
