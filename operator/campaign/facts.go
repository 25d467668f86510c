// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Group holds the facts that a decision rests on.
type Group struct {
	Now time.Time
	// Fresh is an id that was never used before.
	Fresh string
	// Status is the persisted status of the campaign; nil if there was none.
	Status *v1alpha1.CampaignStatus

	// Asked is true if the annotation rotate-keyring asks for a campaign and is not answered yet; Value and ID are those of the annotation.
	Asked     bool
	Value, ID string

	// Known is false while the poll loop has seen nothing yet, or sees something else than status says.
	Known bool
	// Paused is true while a person keeps the operator from replacing pods.
	Paused bool
	Active string
	// RoleMoving says why the active site changes, Other which other request is not answered, Update which pod is being
	// replaced. Each is empty if that is not the case. The campaign's own planned failover is in Move alone.
	RoleMoving, Other, Update string
	// Forecast is the site that would take over if the active one were lost.
	Forecast string
	Move     Move
	// Sites come in the order of the specification.
	Sites []Site
}

// Move says how the planned failover with the id Status.StepID went.
type Move struct {
	// Stands is true while the request is on the group and not answered.
	Stands bool
	// Answer is the answer to the request; nil if there is none.
	Answer *v1alpha1.LastRequest
	// Words say how far the planned failover is.
	Words string
}

// Site is one site as it is now.
type Site struct {
	Name string
	// Candidate is true if the role may move to it, Ready if it is a healthy replica.
	Candidate, Ready bool
	Keyring          v1alpha1.SiteKeyringStatus
	// Reason and Why say why its rotation would be refused now; both are empty if it would not be.
	Reason, Why string
}

// rotating is true while the rotation of a site is under way.
func (s Site) rotating() bool { return s.Keyring.Work == v1alpha1.KeyringRotation }

func (g Group) site(name string) (Site, bool) {
	i := slices.IndexFunc(g.Sites, func(s Site) bool { return s.Name == name })
	if i < 0 {
		return Site{}, false
	}
	return g.Sites[i], true
}

// target is the site to which the role should move: the requested one, else the one that would take over if the active one were
// lost, else the first candidate, a healthy one before others; empty if there is none.
func (g Group) target(wanted string) string {
	to := ""
	for _, s := range g.Sites {
		switch {
		case !s.Candidate || s.Name == g.Active || wanted != "" && s.Name != wanted:
		case s.Name == g.Forecast:
			return s.Name
		case to == "":
			to = s.Name
		default:
			if best, _ := g.site(to); s.Ready && !best.Ready {
				to = s.Name
			}
		}
	}
	return to
}
