// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestWhatToDoAboutACampaign: each wait names its way out, and every campaign how it is ended.
func TestWhatToDoAboutACampaign(t *testing.T) {
	const stop = "kubectl mfg rotate orders -n shop --stop"
	later := metav1.NowMicro()
	for name, tc := range map[string]struct {
		campaign v1alpha1.CampaignStatus
		message  string
		want     []string
	}{
		"it begins":         {v1alpha1.CampaignStatus{}, "", []string{stop}},
		"a site is rotated": {v1alpha1.CampaignStatus{Step: v1alpha1.CampaignRotating, Site: "rome"}, "a backup holds its lock", []string{stop}},
		"the role moves":    {v1alpha1.CampaignStatus{Step: v1alpha1.CampaignMoving, Site: "rome", Message: "rome catches up"}, "rome catches up", []string{stop}},
		"a person paused": {v1alpha1.CampaignStatus{Step: v1alpha1.CampaignWaiting, Site: "rome", Reason: string(v1alpha1.ReasonPaused)}, "",
			[]string{"kubectl mfg resume orders -n shop", stop}},
		"another move is under way": {v1alpha1.CampaignStatus{Step: v1alpha1.CampaignWaiting, Site: "rome", Reason: v1alpha1.AnswerRoleMoving}, "", []string{stop}},
		"a keyring is not sealed": {v1alpha1.CampaignStatus{Step: v1alpha1.CampaignWaiting, Site: "rome", Reason: v1alpha1.AnswerOtherKeyring}, "",
			[]string{"kubectl mfg keyring verify orders -n shop", stop}},
		"the move was refused": {v1alpha1.CampaignStatus{Step: v1alpha1.CampaignWaiting, Site: "rome", Reason: "Lagging", RetryAt: &later}, "",
			[]string{"kubectl mfg failover orders -n shop --to rome --dry-run=client", stop}},
		"the site is away": {v1alpha1.CampaignStatus{Step: v1alpha1.CampaignWaiting, Site: "rome", Reason: v1alpha1.AnswerTargetNotReady}, "",
			[]string{"kubectl mfg status orders -n shop", stop}},
		"it is over": {v1alpha1.CampaignStatus{Outcome: v1alpha1.CampaignFailed, Site: "rome"}, "", nil},
	} {
		cr, _ := healthy()
		cr.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{
			Campaign: &tc.campaign, Sites: []v1alpha1.SiteKeyringStatus{{Name: "rome", Message: "a backup holds its lock"}},
		}
		var got []string
		for _, h := range CampaignHints(cr) {
			got = append(got, h.Command)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if c := CampaignOf(cr); (c != nil) != (tc.campaign.Outcome == "") || c != nil && c.Message != tc.message {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
