// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	// maxTries is how often the rotation of one site may begin: each try costs the site two new pods.
	maxTries = 5
	// maxMoves is how often the role may move: each move costs the clients a pause.
	maxMoves = 3
	// askAgain is how long the campaign waits before it asks again for a planned failover that was refused or reverted.
	askAgain = 30 * time.Second
	// maxMessage is the longest message that the API allows.
	maxMessage = 1024
	maxReason  = 64
)

// Decision says what comes next.
type Decision struct {
	// Status must be persisted before anything is done.
	Status *v1alpha1.CampaignStatus
	// Rotate is the site whose rotation is ordered now, as a person orders that of a single site; empty if none is. ID is the id of that order.
	Rotate, ID string
	Effects    []Effect
}

// Decide takes at most one step.
func Decide(g Group) Decision {
	c := g.Status.DeepCopy()
	switch {
	case c.UnderWay() && !g.asksFor(c):
		return g.end(c, v1alpha1.CampaignCancelled, v1alpha1.AnswerWithdrawn, "the request was taken back, or another one took its place")
	case c.UnderWay():
		return g.run(c)
	case !g.Asked:
		return g.rest(c)
	case c != nil && g.asksFor(c):
		// An operator ended after it noted the outcome and before it answered.
		d := g.rest(c)
		d.Effects = append(d.Effects, answerOf(c))
		return d
	}
	return g.begin(c)
}

// asksFor is true if the open request is the one that a campaign carries out.
func (g Group) asksFor(c *v1alpha1.CampaignStatus) bool {
	return g.Asked && g.ID == c.Request && g.Value == c.Order
}

// rest is what is left to do once a campaign is over. A move that has not begun must not come later, when no one expects it.
func (g Group) rest(c *v1alpha1.CampaignStatus) Decision {
	d := Decision{Status: c}
	if c != nil && g.Move.Stands {
		d.Effects = append(d.Effects, TakeBack{ID: c.StepID})
	}
	return d
}

// begin notes which keyring each site has. Nothing else is done before that is durable.
func (g Group) begin(was *v1alpha1.CampaignStatus) Decision {
	order, err := v1alpha1.ParseCampaignOrder(g.Value)
	if err != nil {
		return g.refuse(was, v1alpha1.AnswerNotUnderstood, err.Error())
	}
	if reason, why := g.impossible(order); reason != "" {
		return g.refuse(was, reason, why)
	}
	c := &v1alpha1.CampaignStatus{Request: g.ID, Order: g.Value, BeganAt: g.now()}
	versions := map[string]int64{}
	if was.GoesOn(g.Now) && !order.Restart {
		c.BeganAt = was.BeganAt
		for _, s := range was.Sites {
			versions[s.Name] = s.FromVersion
		}
	}
	for _, s := range g.Sites {
		if order.Replicas && s.Name == g.Active {
			continue
		}
		from, goesOn := versions[s.Name]
		if !goesOn {
			from = s.Keyring.VersionBefore()
		}
		c.Sites = append(c.Sites, v1alpha1.CampaignSite{Name: s.Name, FromVersion: from, ToVersion: s.Keyring.RotatedSince(from)})
	}
	d := g.rest(was)
	d.Status = c
	d.Effects = append(d.Effects, Say{EventBegan, "The rotation of " + scopeWords(order) + " begins: " + strings.Join(c.Left(), ", ")})
	return d
}

// impossible says why an order can never be carried out.
func (g Group) impossible(order v1alpha1.CampaignOrder) (reason, why string) {
	switch to := order.To; {
	case order.Replicas:
		return "", ""
	case to != "" && to == g.Active:
		return v1alpha1.AnswerIsActiveSite, to + " is the active site, and the role has to move to another one"
	case g.target(to) != "":
		return "", ""
	case to != "":
		return v1alpha1.AnswerNotCandidate, fmt.Sprintf("the role cannot move to %q: that is no primary-candidate of the group", to)
	}
	return v1alpha1.AnswerNotCandidate, fmt.Sprintf("there is no other primary-candidate that the role could move to: ask for the replicas alone (%s)",
		v1alpha1.CampaignOrder{Replicas: true})
}

func scopeWords(order v1alpha1.CampaignOrder) string {
	if order.Replicas {
		return "all replicas"
	}
	return "all sites"
}

// refuse answers a request for which nothing is done.
func (g Group) refuse(was *v1alpha1.CampaignStatus, reason, why string) Decision {
	d := g.rest(was)
	d.Effects = append(d.Effects, Answer{v1alpha1.RequestRefused, reason, why}, Say{EventRefused, "The rotation of all sites was refused: " + why})
	return d
}

// Refuse returns the decision on a request of a group that has no keyrings.
func Refuse(g Group, reason, why string) Decision { return g.refuse(nil, reason, why) }

// end notes the outcome.
func (g Group) end(c *v1alpha1.CampaignStatus, outcome v1alpha1.CampaignOutcome, reason, why string) Decision {
	g.look(c)
	now := g.now()
	c.Outcome, c.EndedAt, c.Step, c.Site, c.RetryAt, c.Since = outcome, &now, "", "", nil, &now
	c.Reason = cut(reason, maxReason)
	if outcome == v1alpha1.CampaignDone {
		c.Message = cut(why, maxMessage)
		return Decision{Status: c, Effects: []Effect{answerOf(c), Say{EventDone, c.Message}}}
	}
	left := strings.Join(c.Left(), ", ")
	if left == "" {
		left = "no site"
	}
	c.Message = cut(fmt.Sprintf("%s; left: %s", why, left), maxMessage)
	d := g.rest(c)
	if g.asksFor(c) {
		d.Effects = append(d.Effects, answerOf(c))
	}
	d.Effects = append(d.Effects, Say{EventStopped, "The rotation of all sites ends before its end: " + c.Message})
	return d
}

// answerOf is the answer to the request of a campaign that has ended.
func answerOf(c *v1alpha1.CampaignStatus) Answer {
	if c.Outcome == v1alpha1.CampaignDone {
		return Answer{v1alpha1.RequestDone, v1alpha1.AnswerCompleted, c.Message}
	}
	return Answer{v1alpha1.RequestFailed, c.Reason, c.Message}
}

// look notes which sites are done. The campaign does not wait for a site that left the specification.
func (g Group) look(c *v1alpha1.CampaignStatus) {
	c.Sites = slices.DeleteFunc(c.Sites, func(s v1alpha1.CampaignSite) bool {
		_, stays := g.site(s.Name)
		return !stays
	})
	for i := range c.Sites {
		s, _ := g.site(c.Sites[i].Name)
		c.Sites[i].ToVersion = s.Keyring.RotatedSince(c.Sites[i].FromVersion)
	}
}

func (g Group) now() metav1.MicroTime { return metav1.NewMicroTime(g.Now) }

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}
