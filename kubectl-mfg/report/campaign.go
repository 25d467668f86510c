// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Campaign is the rotation of all sites.
type Campaign struct {
	// Step is Rotating, Moving or Waiting, and Site is the site it is about. Since is when the step began.
	Step  string     `json:"step,omitempty"`
	Site  string     `json:"site,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	// Reason is why it waits, Message what it waits for: while a site is rotated, what the keyring of that site waits for.
	Reason  string   `json:"reason,omitempty"`
	Message string   `json:"message,omitempty"`
	Left    []string `json:"left"`
	// Words tells people all of it but Since.
	Words string `json:"-"`
}

// CampaignOf returns the present rotation of all sites; nil if there is none.
func CampaignOf(cr *v1alpha1.MysqlFailoverGroup) *Campaign {
	at := cr.Status.EncryptionAtRest
	if at == nil || !at.Campaign.UnderWay() {
		return nil
	}
	c := at.Campaign
	out := &Campaign{Step: string(c.Step), Site: c.Site, Reason: c.Reason, Message: c.Message, Left: c.Left(), Words: c.Words()}
	if c.Since != nil {
		out.Since = &c.Since.Time
	}
	if i := slices.IndexFunc(at.Sites, func(s v1alpha1.SiteKeyringStatus) bool { return s.Name == c.Site }); c.Step == v1alpha1.CampaignRotating && i >= 0 {
		out.Message = at.Sites[i].Message
	}
	return out
}

// CampaignHints returns the next steps while all sites are being rotated: what ends the wait, and what ends the campaign.
func CampaignHints(cr *v1alpha1.MysqlFailoverGroup) []Hint {
	c := CampaignOf(cr)
	if c == nil {
		return nil
	}
	r, hints := MysqlFailoverGroupReport{Metadata: Metadata{Name: cr.Name, Namespace: cr.Namespace}}, []Hint{}
	switch {
	case !cr.Status.EncryptionAtRest.Campaign.Waits():
	case c.Reason == string(v1alpha1.ReasonPaused):
		hints = append(hints, Hint{"let the operator replace pods again", r.verb("resume", "")})
	case c.Reason == v1alpha1.AnswerRoleMoving: // the explanation itself says how far that is
	case c.Reason == v1alpha1.AnswerKeyringNotSealed, c.Reason == v1alpha1.AnswerOtherKeyring:
		hints = append(hints, Hint{"see which keyring is not sealed, and what to do about it", r.verb("keyring verify", "")})
	case c.Step == string(v1alpha1.CampaignMoving), cr.Status.EncryptionAtRest.Campaign.RetryAt != nil:
		hints = append(hints, Hint{"see what keeps the role from moving to " + c.Site + "; this changes nothing", r.verb("failover", "") + " --to " + c.Site + " --dry-run=client"})
	default:
		hints = append(hints, Hint{"see how " + c.Site + " is; the operator continues once nothing is in the way", r.verb("status", "")})
	}
	return append(hints, Hint{"or end the rotation: no further step begins, and sites that are done keep their new keys", r.verb("rotate", "") + " --stop"})
}
