// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/campaign"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/report/events"
	asks "github.com/mysql-mfg/mfg/operator/request"
	"github.com/mysql-mfg/mfg/operator/scope"
)

const (
	// campaignPatience is how long a campaign waits before an event tells people.
	campaignPatience = time.Minute
	// stepPatience is how long one of its steps takes before an event does: a rotation takes minutes, and a planned failover less.
	stepPatience = 30 * time.Minute
)

// decide takes one step with the campaign and one with each keyring. One write persists both: a site that the campaign is rotating has
// that order, and no other.
func decide(s *scope.Scope, g keyring.Group) (campaign.Decision, keyring.Decision) {
	seen := campaignGroup(s, g)
	c := campaign.Decide(seen)
	if c.Rotate != "" {
		g.RotateSet, g.Rotate, g.RotateID = true, c.Rotate, c.ID
	}
	d := keyring.Decide(g)
	if d.Refused != "" {
		c = campaign.Decision{}
		if seen.Asked {
			c = campaign.Refuse(seen, v1alpha1.AnswerNotEncrypted, d.Refused)
		}
		return c, d
	}
	if c.Rotate != "" {
		// The campaign sees the outcome at the site by its keyring; the request on the group is the campaign's, and is not over yet.
		isAnswer := func(e keyring.Effect) bool { _, is := e.(keyring.Answer); return is }
		for i := range d.Sites {
			d.Sites[i].Effects = slices.DeleteFunc(d.Sites[i].Effects, isAnswer)
		}
		d.Effects = slices.DeleteFunc(d.Effects, isAnswer)
	}
	return c, d
}

// campaignGroup collects the facts that the campaign rests on.
func campaignGroup(s *scope.Scope, k keyring.Group) campaign.Group {
	order, set := asks.Open(s.Group, v1alpha1.RequestRotateKeyring)
	g := campaign.Group{
		Now: s.Now, Fresh: rand.Text(), Asked: set && v1alpha1.AsksForCampaign(order.Value), Value: order.Value, ID: order.ID,
		Known: k.Known, Active: s.ActiveSite(), Update: k.Update,
		Paused: meta.IsStatusConditionTrue(s.Group.Status.Conditions, v1alpha1.ConditionPaused),
	}
	if at := s.Group.Status.EncryptionAtRest; at != nil {
		g.Status = at.Campaign
	}
	if f := s.Group.Status.Forecast; f != nil {
		g.Forecast = f.Site
	}
	g.Move = moveOf(s, g.Status)
	g.RoleMoving, g.Other = roleMoving(s), otherRequest(s)
	for _, site := range s.Group.Spec.Sites {
		one := campaign.Site{
			Name: site.Name, Candidate: site.Role == v1alpha1.PrimaryCandidate && !v1alpha1.KeptFenced(s.Group, site.Name),
			Ready: isReplica(s, site.Name), Keyring: scope.KeyringStatus(s.Group, site.Name),
		}
		one.Reason, one.Why = keyring.Refusal(k, site.Name)
		g.Sites = append(g.Sites, one)
	}
	return g
}

// isReplica is true for a site that is a healthy replica according to status.
func isReplica(s *scope.Scope, name string) bool {
	return slices.ContainsFunc(s.Group.Status.Sites, func(st v1alpha1.SiteStatus) bool {
		return st.Name == name && st.State == v1alpha1.SiteReplica
	})
}

// moveOf says how the planned failover went that a campaign asked for.
func moveOf(s *scope.Scope, c *v1alpha1.CampaignStatus) (m campaign.Move) {
	if c == nil || c.StepID == "" {
		return m
	}
	const kind = v1alpha1.RequestPlannedFailover
	if last := s.Group.Status.LastRequest(kind); last != nil && last.ID == c.StepID {
		m.Answer = last
	}
	q, stands := asks.Open(s.Group, kind)
	m.Stands = stands && q.ID == c.StepID
	if p := s.Group.Status.PlannedFailover; m.Stands && p != nil && p.To == q.Value && !p.Answered {
		m.Words = string(p.Phase) + ": " + p.Message
	}
	return m
}

// roleMoving says why the active site changes; empty if it does not.
func roleMoving(s *scope.Scope) string {
	if t := s.Group.Status.Transition; t != nil {
		return fmt.Sprintf("the role is moving to %s (%s)", t.To, t.Step)
	}
	if p := s.Group.Status.PlannedFailover; p != nil && (p.Phase == v1alpha1.PlannedWaiting || p.Phase == v1alpha1.PlannedMoving) {
		return fmt.Sprintf("a planned failover to %s is under way (%s)", p.To, p.Phase)
	}
	return ""
}

// otherRequest names an unanswered request of a person that moves the role or replaces data; empty if there is none.
func otherRequest(s *scope.Scope) string {
	for _, kind := range []v1alpha1.RequestKind{v1alpha1.RequestForceFailover, v1alpha1.RequestPlannedFailover, v1alpha1.RequestAbortFailover, v1alpha1.RequestRecloneSite} {
		if q, stands := asks.Open(s.Group, kind); stands {
			return fmt.Sprintf("%s was requested and is not answered yet (%s=%.64s)", kind, kind.Annotation(), q.Value)
		}
	}
	return ""
}

// campaignEvents are the events of a campaign as people see them.
var campaignEvents = map[campaign.Event]events.Event{
	campaign.EventBegan: eventKeyringCampaignBegan, campaign.EventDone: eventKeyringCampaignDone,
	campaign.EventStopped: eventKeyringCampaignStopped, campaign.EventRefused: eventKeyringRotationRefused,
}

// performCampaign carries out the effects, and reports a campaign that has waited for long.
func (r *Encryption) performCampaign(ctx context.Context, s *scope.Scope, d campaign.Decision) error {
	for _, e := range d.Effects {
		if err := r.performCampaignEffect(ctx, s, e); err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
	}
	c := d.Status
	showCampaign(s.Key.Namespace, s.Key.Name, c)
	switch {
	case !c.UnderWay():
		if v1alpha1.AsksForCampaign(s.Group.Annotations[v1alpha1.AnnotationRotateKeyring]) {
			s.Again = min(s.Again, scope.WhenMoving) // the next campaign took the place of one that ended
		}
	case c.Step != v1alpha1.CampaignWaiting:
		s.Again = min(s.Again, scope.WhenMoving)
	default:
		s.Again = min(s.Again, scope.WhenWaiting)
	}
	// Each wait is told once: the words of one may count seconds or transactions.
	about, words := lasts(s, c)
	if r.Changed(s.Key, string(eventKeyringCampaignWaits.Reason), about) && words != "" {
		r.Recorder.Emit(s.Group, nil, eventKeyringCampaignWaits, "%s", words)
	}
	return nil
}

// lasts says what a campaign has waited for, or worked at, for longer than people should not know of it; both are empty if it has not. about
// is the same for as long as that is one and the same.
func lasts(s *scope.Scope, c *v1alpha1.CampaignStatus) (about, words string) {
	if !c.UnderWay() || c.Since == nil {
		return "", ""
	}
	about = fmt.Sprintf("%s %s %d", c.Site, c.Reason, c.Since.UnixMicro())
	switch took := s.Now.Sub(c.Since.Time); {
	case c.Waits() && took >= campaignPatience:
		return about, "The rotation of all sites waits (" + c.Reason + "): " + c.Message
	case !c.Waits() && took >= stepPatience:
		why := c.Message
		if c.Step == v1alpha1.CampaignRotating {
			why = scope.KeyringStatus(s.Group, c.Site).Message
		}
		return about, strings.TrimSuffix(fmt.Sprintf("The rotation of all sites %s, and has for longer than %s: %s", c.Words(), stepPatience, why), ": ")
	}
	return "", ""
}

func (r *Encryption) performCampaignEffect(ctx context.Context, s *scope.Scope, e campaign.Effect) error {
	switch e := e.(type) {
	case campaign.AskMove:
		return r.Answers().Ask(ctx, s.Group, asks.Request{Kind: v1alpha1.RequestPlannedFailover, Value: e.To, ID: e.ID})
	case campaign.TakeBack:
		return r.Answers().Withdraw(ctx, s.Group, v1alpha1.RequestPlannedFailover, e.ID)
	case campaign.Answer:
		value := s.Group.Annotations[v1alpha1.AnnotationRotateKeyring]
		return r.AnswerOrder(ctx, s, v1alpha1.RequestRotateKeyring, value, asks.Answer{Outcome: e.Outcome, Reason: e.Reason, Message: e.Message})
	case campaign.Say:
		r.Recorder.Emit(s.Group, nil, campaignEvents[e.What], "%s", e.Text)
	}
	return nil
}

func campaignApply(c *v1alpha1.CampaignStatus) *applyv1alpha1.CampaignStatusApplyConfiguration {
	out := applyv1alpha1.CampaignStatus().WithRequest(c.Request).WithOrder(c.Order).WithBeganAt(c.BeganAt)
	if c.EndedAt != nil {
		out.WithEndedAt(*c.EndedAt)
	}
	if c.Outcome != "" {
		out.WithOutcome(c.Outcome)
	}
	if c.Step != "" {
		out.WithStep(c.Step)
	}
	if c.Site != "" {
		out.WithSite(c.Site)
	}
	if c.StepID != "" {
		out.WithStepID(c.StepID)
	}
	if c.Since != nil {
		out.WithSince(*c.Since)
	}
	if c.Asked {
		out.WithAsked(true)
	}
	if c.RetryAt != nil {
		out.WithRetryAt(*c.RetryAt)
	}
	if c.Reason != "" {
		out.WithReason(c.Reason)
	}
	if c.Message != "" {
		out.WithMessage(c.Message)
	}
	if c.Moves != 0 {
		out.WithMoves(c.Moves)
	}
	for _, site := range c.Sites {
		one := applyv1alpha1.CampaignSite().WithName(site.Name).WithFromVersion(site.FromVersion)
		if site.ToVersion != 0 {
			one.WithToVersion(site.ToVersion)
		}
		if site.Tries != 0 {
			one.WithTries(site.Tries)
		}
		out.WithSites(one)
	}
	return out
}
