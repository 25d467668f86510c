// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestReadySaysWhatIsWrong: it is the first that anybody reads, so a site that is down is not called silent, and a group that
// nobody will bring up by itself says so.
func TestReadySaysWhatIsWrong(t *testing.T) {
	views := []failover.View{{Name: "west"}, {Name: "east", State: v1alpha1.SiteDetached}}
	for name, tc := range map[string]struct {
		seen    failover.Topology
		verdict failover.Verdict
		why     failover.Reason
		want    string
	}{
		"MySQL restarts in place": {failover.TopologyActiveDown, failover.VerdictWait, v1alpha1.ReasonWaitingForRestart,
			"ActiveSiteDown: west does not accept writes: its MySQL is down; it may restart in place within spec.failover.crashGrace"},
		"down, and nobody may take over": {failover.TopologyActiveDown, failover.VerdictBlocked, v1alpha1.ReasonModeManual,
			"ActiveSiteDown: west does not accept writes: its MySQL is down; no site takes its place without an order (ModeManual), see the condition FailoverBlocked"},
		"silent for a moment": {failover.TopologyActiveSilent, failover.VerdictWait, v1alpha1.ReasonBelowThreshold,
			"ActiveSiteSilent: west does not accept writes"},
		"silent and paused": {failover.TopologyActiveSilent, failover.VerdictBlocked, v1alpha1.ReasonPaused,
			"ActiveSiteSilent: west does not accept writes; no site takes its place without an order (Paused), see the condition FailoverBlocked"},
		"it is opened again": {failover.TopologyActiveReadOnly, failover.VerdictReopen, v1alpha1.ReasonReturnedWhole,
			"ActiveSiteFenced: west answers but is read-only"},
		"it cannot be opened": {failover.TopologyActiveReadOnly, failover.VerdictBlocked, v1alpha1.ReasonActiveSiteCannotOpen,
			"ActiveSiteFenced: west answers but is read-only; no site takes its place without an order (ActiveSiteCannotOpen), see the condition FailoverBlocked"},
	} {
		d := failover.Decision{Topology: tc.seen, Verdict: tc.verdict, Reason: tc.why, Status: failover.Durable{Epoch: 2, ActiveSite: "west"}, Views: views}
		for _, c := range Conditions(d, "", time.Now()) {
			got := string(c.Reason) + ": " + c.Message
			if (c.Type == v1alpha1.ConditionReady || c.Type == v1alpha1.ConditionAvailable) && (c.Status != "False" || got != tc.want) {
				t.Errorf("%s: %s %s (-want +got):\n%s", name, c.Type, c.Status, cmp.Diff(tc.want, got))
			}
		}
	}
}

// TestReadyMeansThatAClientCanWrite: an open active site is not enough.
func TestReadyMeansThatAClientCanWrite(t *testing.T) {
	views := []failover.View{{Name: "west", Healthy: true, State: v1alpha1.SitePrimary}}
	d := failover.Decision{Topology: failover.TopologyHealthy, Verdict: failover.VerdictNothing, Status: failover.Durable{Epoch: 2, ActiveSite: "west"}, Views: views}
	status := func(kind string) (status, reason, message string) {
		for _, c := range Conditions(d, "", time.Now()) {
			if c.Type == kind {
				return string(c.Status), string(c.Reason), c.Message
			}
		}
		t.Fatalf("no condition %s", kind)
		return
	}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAvailable} {
		if is, _, _ := status(kind); is != "True" {
			t.Errorf("%s is %s while clients can write", kind, is)
		}
	}
	d.Unwritable = &failover.Unwritable{Site: "west", Reason: wire.WriteOffline, Errno: 3032}
	for kind, want := range map[string]string{v1alpha1.ConditionReady: "False", v1alpha1.ConditionAvailable: "False", v1alpha1.ConditionDegraded: "True"} {
		is, reason, message := status(kind)
		if is != want || reason != "Offline" || !strings.Contains(message, "kubectl mfg mysql GROUP west -e 'SET GLOBAL offline_mode = OFF'") {
			t.Errorf("%s is %s %s: %s", kind, is, reason, message)
		}
	}
}
