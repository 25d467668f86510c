// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// run continues a campaign: first with what is under way, then with what is next.
func (g Group) run(c *v1alpha1.CampaignStatus) Decision {
	g.look(c)
	if c.Step == v1alpha1.CampaignMoving {
		if d, waits := g.moving(c); waits {
			return d
		}
	}
	if site := g.atHand(c); site != "" {
		if c.Step != v1alpha1.CampaignRotating || c.Site != site {
			g.step(c, v1alpha1.CampaignRotating, site)
		}
		return Decision{Status: c, Rotate: site, ID: c.StepID}
	}
	return g.next(c)
}

// atHand is the site whose rotation is under way; empty if none is. The rotation stays ordered until it is over, even while
// nothing is known or if the site became the active one: without an order it would be withdrawn.
func (g Group) atHand(c *v1alpha1.CampaignStatus) string {
	if s, is := g.site(c.Site); is && s.rotating() {
		return s.Name
	}
	for _, s := range g.Sites {
		if s.rotating() {
			return s.Name
		}
	}
	return ""
}

// moving follows the planned failover that the campaign asked for; waits is true while there is nothing else to do.
func (g Group) moving(c *v1alpha1.CampaignStatus) (d Decision, waits bool) {
	d.Status = c
	switch a := g.Move.Answer; {
	case a != nil && a.Outcome == v1alpha1.RequestDone, a == nil && !g.Move.Stands && g.Active == c.Site:
		c.Moves++
		c.Step, c.Asked, c.Reason = "", false, ""
		return d, false
	case a != nil && a.Reason == string(v1alpha1.ReasonAborted):
		return g.end(c, v1alpha1.CampaignFailed, a.Reason, "a person gave the planned failover to "+c.Site+" up"), true
	case a != nil:
		if a.Outcome == v1alpha1.RequestFailed {
			c.Moves++
		}
		later := metav1.NewMicroTime(g.Now.Add(askAgain))
		c.RetryAt = &later
		return g.wait(c, c.Site, a.Reason, "the role did not move to "+c.Site+": "+a.Message), true
	case g.Move.Stands:
		if c.Reason != "" && g.Move.Words != "" { // it was refused before, and has begun now
			now := g.now()
			c.Reason, c.Since = "", &now
		}
		c.Asked = true
		if c.Reason == "" {
			c.Message = cut(g.Move.Words, maxMessage)
		}
		return d, true
	case c.Asked:
		return g.end(c, v1alpha1.CampaignFailed, v1alpha1.AnswerMoveWithdrawn, "the planned failover to "+c.Site+
			" is gone without an answer: withdrawn by a person, or replaced by another request"), true
	}
	d.Effects = append(d.Effects, AskMove{To: c.Site, ID: c.StepID}) // an operator ended before it could ask
	return d, true
}

// next begins the next step, unless something is in its way.
func (g Group) next(c *v1alpha1.CampaignStatus) Decision {
	order, _ := v1alpha1.ParseCampaignOrder(c.Order)
	left := slices.DeleteFunc(c.Left(), func(site string) bool { return order.Replicas && site == g.Active })
	if len(left) == 0 {
		return g.end(c, v1alpha1.CampaignDone, v1alpha1.AnswerCompleted, doneWords(c))
	}
	if !g.Known {
		return Decision{Status: c}
	}
	i := slices.IndexFunc(left, func(site string) bool { return site != g.Active })
	site := left[max(i, 0)]
	if reason, why := g.inTheWay(); reason != "" {
		return g.wait(c, site, reason, why)
	}
	if i < 0 {
		return g.move(c, order)
	}
	return g.rotate(c, site)
}

// inTheWay says why no step may begin now; empty if one may. The code that carries out a step checks each of these again.
func (g Group) inTheWay() (reason, why string) {
	switch {
	case g.Paused:
		return string(v1alpha1.ReasonPaused), "the group is paused by a person"
	case g.Active == "":
		return v1alpha1.AnswerRoleMoving, "no site is active"
	case g.RoleMoving != "":
		return v1alpha1.AnswerRoleMoving, g.RoleMoving
	case g.Other != "":
		return v1alpha1.AnswerOtherRequest, g.Other
	}
	return "", ""
}

// rotate orders the rotation of a replica as soon as it would not be refused.
func (g Group) rotate(c *v1alpha1.CampaignStatus, site string) Decision {
	s, _ := g.site(site)
	i := slices.IndexFunc(c.Sites, func(s v1alpha1.CampaignSite) bool { return s.Name == site })
	switch {
	case s.Reason != "":
		return g.wait(c, site, s.Reason, s.Why)
	case c.Sites[i].Tries >= maxTries:
		return g.end(c, v1alpha1.CampaignFailed, v1alpha1.AnswerTooManyTries,
			fmt.Sprintf("the rotation of %s was begun %d times, and given up each time", site, c.Sites[i].Tries))
	}
	c.Sites[i].Tries++
	g.step(c, v1alpha1.CampaignRotating, site)
	return Decision{Status: c, Rotate: site, ID: c.StepID}
}

// move asks to move the role, once all else is done: the active site is rotated after it became a replica.
func (g Group) move(c *v1alpha1.CampaignStatus, order v1alpha1.CampaignOrder) Decision {
	wanted := order.To
	if wanted == g.Active {
		wanted = "" // an emergency or a person moved the role to that site meanwhile
	}
	to := g.target(wanted)
	target, _ := g.site(to)
	unsealed := slices.IndexFunc(g.Sites, func(s Site) bool { return s.Keyring.Phase != v1alpha1.KeyringSealed })
	switch {
	case c.Moves >= maxMoves:
		return g.end(c, v1alpha1.CampaignFailed, v1alpha1.AnswerTooManyTries,
			fmt.Sprintf("the role was moved %d times, or given back each time, and %s is active", c.Moves, g.Active))
	case to == "":
		return g.end(c, v1alpha1.CampaignFailed, v1alpha1.AnswerNotCandidate, "there is no other primary-candidate that the role could move to")
	case c.RetryAt != nil && g.Now.Before(c.RetryAt.Time):
		return Decision{Status: c}
	case unsealed >= 0:
		s := g.Sites[unsealed]
		return g.wait(c, s.Name, v1alpha1.AnswerKeyringNotSealed, fmt.Sprintf("the keyring of %s is %s", s.Name, s.Keyring.Phase))
	case g.Update != "":
		return g.wait(c, to, v1alpha1.AnswerUpdateUnderWay, g.Update)
	case !target.Ready:
		return g.wait(c, to, v1alpha1.AnswerTargetNotReady, to+" is no healthy replica now, and the role is to move to it")
	}
	was, again := c.DeepCopy(), c.RetryAt != nil && c.Site == to
	g.step(c, v1alpha1.CampaignMoving, to)
	if again { // to ask once more is no step until the move begins: the campaign still waits, and people are told since when
		c.Since, c.Reason, c.Message = was.Since, was.Reason, was.Message
	}
	return Decision{Status: c, Effects: []Effect{AskMove{To: to, ID: c.StepID}}}
}

// step begins a step.
func (g Group) step(c *v1alpha1.CampaignStatus, step v1alpha1.CampaignStep, site string) {
	now := g.now()
	c.Step, c.Site, c.StepID, c.Since = step, site, g.Fresh, &now
	c.Asked, c.RetryAt, c.Reason, c.Message = false, nil, "", ""
}

// wait notes what the campaign waits for. A step that began since has no reason.
func (g Group) wait(c *v1alpha1.CampaignStatus, site, reason, why string) Decision {
	reason = cut(reason, maxReason)
	if c.Site != site || c.Reason != reason {
		now := g.now()
		c.Since = &now
	}
	c.Step, c.Site, c.Reason, c.Message, c.Asked = v1alpha1.CampaignWaiting, site, reason, cut(why, maxMessage), false
	return Decision{Status: c}
}

// doneWords say which versions the sites have now.
func doneWords(c *v1alpha1.CampaignStatus) string {
	var words []string
	for _, s := range c.Sites {
		if s.ToVersion > 0 {
			words = append(words, fmt.Sprintf("%s v%d -> v%d", s.Name, s.FromVersion, s.ToVersion))
		}
	}
	return "new master keys, in escrow and sealed: " + strings.Join(words, ", ")
}
