// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EverySite asks for the rotation of all sites, as the value of the annotation rotate-keyring. No site can have that name.
const EverySite = "*"

// Words after EverySite and a colon, separated by commas.
const (
	campaignReplicas = "replicas"
	campaignRestart  = "restart"
	campaignTo       = "to="
)

// maxCampaignOrder is more than an order with the longest name of a site has.
const maxCampaignOrder = 128

// CampaignOrder is what rotate-keyring asks for that names no single site: *, *:replicas, *:to=SITE or *:restart.
type CampaignOrder struct {
	// Replicas leaves the active site out: the role stays.
	Replicas bool
	// Restart begins with every site, also where a campaign that was stopped has rotated some.
	Restart bool
	// To is the site that becomes active; empty for the one that would take over in an emergency.
	To string
}

// String is the value of the annotation.
func (o CampaignOrder) String() string {
	var words []string
	if o.Replicas {
		words = append(words, campaignReplicas)
	}
	if o.Restart {
		words = append(words, campaignRestart)
	}
	if o.To != "" {
		words = append(words, campaignTo+o.To)
	}
	if len(words) == 0 {
		return EverySite
	}
	return EverySite + ":" + strings.Join(words, ",")
}

// AsksForCampaign is true for a value of rotate-keyring that is not the name of a single site.
func AsksForCampaign(value string) bool { return strings.HasPrefix(value, EverySite) }

// ParseCampaignOrder reads such a value.
func ParseCampaignOrder(value string) (CampaignOrder, error) {
	o := CampaignOrder{}
	if len(value) > maxCampaignOrder {
		return o, fmt.Errorf("%.32q... has %d bytes, and an order at most %d", value, len(value), maxCampaignOrder)
	}
	rest, is := strings.CutPrefix(value, EverySite)
	if !is {
		return o, fmt.Errorf("%q names a site", value)
	}
	if rest == "" {
		return o, nil
	}
	list, is := strings.CutPrefix(rest, ":")
	if !is {
		return o, fmt.Errorf("%q: what follows %s begins with a colon", value, EverySite)
	}
	for _, word := range strings.Split(list, ",") {
		to, isTo := strings.CutPrefix(word, campaignTo)
		switch {
		case word == campaignReplicas && !o.Replicas:
			o.Replicas = true
		case word == campaignRestart && !o.Restart:
			o.Restart = true
		case isTo && to != "" && o.To == "":
			o.To = to
		default:
			return o, fmt.Errorf("%q: %q is not understood: %s, %s:%s, %s:%sSITE and %s:%s are, the words separated by commas",
				value, word, EverySite, EverySite, campaignReplicas, EverySite, campaignTo, EverySite, campaignRestart)
		}
	}
	if o.Replicas && o.To != "" {
		return o, fmt.Errorf("%q: the role does not move where only replicas are rotated", value)
	}
	return o, nil
}

// CampaignStep is what a campaign does now.
type CampaignStep string

// The steps.
const (
	CampaignRotating CampaignStep = "Rotating"
	CampaignMoving   CampaignStep = "Moving"
	CampaignWaiting  CampaignStep = "Waiting"
)

// CampaignOutcome is how a campaign ended.
type CampaignOutcome string

// The outcomes.
const (
	CampaignDone      CampaignOutcome = "Done"
	CampaignFailed    CampaignOutcome = "Failed"
	CampaignCancelled CampaignOutcome = "Cancelled"
)

// CampaignStatus is the rotation of all sites that is under way, or the last one. Only the operator writes it.
type CampaignStatus struct {
	// request is the id of the request that the campaign carries out.
	//
	// +required
	Request string `json:"request"`
	// order is what was asked for: the value of the annotation rotate-keyring.
	//
	// +required
	// +kubebuilder:validation:MaxLength=256
	Order string `json:"order"`
	// beganAt is since when keys count as new. A campaign that goes on with one that was stopped keeps the time of that one.
	//
	// +required
	BeganAt metav1.MicroTime `json:"beganAt"`
	// endedAt is when the outcome was known; unset while the campaign is under way.
	//
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`
	// outcome is Done, Failed or Cancelled; empty while the campaign is under way.
	//
	// +optional
	Outcome CampaignOutcome `json:"outcome,omitempty"`
	// step is what it does now: Rotating, Moving (the role, by a planned failover) or Waiting; empty before the first step and
	// after the last.
	//
	// +optional
	Step CampaignStep `json:"step,omitempty"`
	// site is the one that is rotated, that is to become active, or that is waited for.
	//
	// +optional
	Site string `json:"site,omitempty"`
	// stepID tells this step from others: it is the id of the planned failover that the campaign asks for.
	//
	// +optional
	StepID string `json:"stepID,omitempty"`
	// since is when the step began. While a planned failover that was refused is asked for again and again, it is when that wait began.
	//
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
	// asked is true once the planned failover of this step was seen on the group: one that is gone without an answer was withdrawn.
	//
	// +optional
	Asked bool `json:"asked,omitempty"`
	// retryAt is when a planned failover that was refused is asked for again.
	//
	// +optional
	RetryAt *metav1.MicroTime `json:"retryAt,omitempty"`
	// reason is why it waits, or the reason of the outcome, one CamelCase word. It stays while the planned failover that was refused is asked
	// for again.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message says it to people.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// moves is how often the role was moved for the campaign, or was given back while it moved.
	//
	// +optional
	Moves int32 `json:"moves,omitempty"`
	// sites holds one entry for each site that was there when the campaign began, and is there still.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Sites []CampaignSite `json:"sites,omitempty"`
}

// CampaignSite is one site in a campaign.
type CampaignSite struct {
	// name of the site.
	//
	// +required
	Name string `json:"name"`
	// fromVersion is the version of its keyring when the campaign began. The site is done once it is sealed with a keyring that a
	// rotation made since.
	//
	// +required
	FromVersion int64 `json:"fromVersion"`
	// toVersion is the version that its rotation ended with; unset while that is due.
	//
	// +optional
	ToVersion int64 `json:"toVersion,omitempty"`
	// tries is how often its rotation was begun by this campaign.
	//
	// +optional
	Tries int32 `json:"tries,omitempty"`
}

// UnderWay is true while a campaign has no outcome.
func (c *CampaignStatus) UnderWay() bool { return c != nil && c.Outcome == "" }

// Waits is true while it waits for something, also in the moment in which it asks again for a planned failover that was refused.
func (c *CampaignStatus) Waits() bool {
	return c.UnderWay() && (c.Step == CampaignWaiting || c.Step == CampaignMoving && c.Reason != "")
}

// campaignLasts is for how long a campaign that was stopped is gone on with: a day later new keys are meant, and not those of then.
const campaignLasts = 24 * time.Hour

// GoesOn is true if the next campaign goes on with one that ended before its end.
func (c *CampaignStatus) GoesOn(now time.Time) bool {
	return c != nil && c.Outcome != "" && c.Outcome != CampaignDone && now.Sub(c.BeganAt.Time) < campaignLasts
}

// VersionBefore is the version that a site is rotated from. While that is under way it is the seed.
func (s SiteKeyringStatus) VersionBefore() int64 {
	if s.SeedVersion > 0 {
		return s.SeedVersion
	}
	return s.KeyringVersion
}

// RotatedSince is the version of a site that was rotated since it had another one, and is sealed with that; else 0. The version
// alone would not do: a clone makes one too, and keeps the keys; after a roll-back the older keys count again.
func (s SiteKeyringStatus) RotatedSince(version int64) int64 {
	if s.Phase == KeyringSealed && s.RotatedVersion > version && s.KeyringVersion >= s.RotatedVersion {
		return s.RotatedVersion
	}
	return 0
}

// Left are the sites that are not rotated yet.
func (c *CampaignStatus) Left() []string {
	left := []string{}
	if c != nil {
		for _, s := range c.Sites {
			if s.ToVersion == 0 {
				left = append(left, s.Name)
			}
		}
	}
	return left
}

// Words say how far a campaign is, or how it ended.
func (c *CampaignStatus) Words() string {
	if c == nil {
		return "the operator has not begun it yet"
	}
	left := "; left: " + strings.Join(c.Left(), ", ")
	switch {
	case c.Outcome != "":
		return fmt.Sprintf("%s (%s): %s", strings.ToLower(string(c.Outcome)), c.Reason, c.Message)
	case c.Step == CampaignRotating:
		return "rotates " + c.Site + left
	case c.Step == CampaignMoving:
		return "moves the role to " + c.Site + left
	case c.Step == CampaignWaiting:
		return fmt.Sprintf("waits (%s): %s%s", c.Reason, c.Message, left)
	}
	return "begins" + left
}
