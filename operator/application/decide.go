// SPDX-License-Identifier: Apache-2.0

// Package application decides how the database of a group's application is made: once, on the open active site, by the application's own
// account. It is pure. The account itself is made by each site with its data directory (internal/mysql/application), so that the operator
// needs no right to make accounts; in a group that has run already, a person makes it. See docs/decisions/0040.
package application

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Site is one site.
type Site struct {
	Name string
	// Active is true for the active site, Provisioned for one whose data is part of the group.
	Active, Provisioned bool
	// Looked is true if the account was tried there a moment ago, under this epoch and Secret. Trouble says why not, if it was tried.
	Looked  bool
	Trouble string
	// Accepts is true if the site takes the account's password, Database if the account sees its database there.
	Accepts, Database bool
}

// State is all that the decision rests on.
type State struct {
	Group, Namespace string
	User, Database   string
	// Made is true once it was noted that all is there.
	Made bool
	// Secret says what is wrong with the Secret; empty normally.
	Secret string
	// Unmade is why no site makes the account of this Secret with its data directory; empty normally.
	Unmade string
	// Open is true while the active site is open and its role does not move.
	Open bool
	// Failed is why the last try to make the database did not succeed; NoRight, that the account lacks the right.
	Failed  string
	NoRight bool
	Sites   []Site
}

// Effect is what is to be done; nil is nothing.
type Effect interface{ effect() }

type (
	// Look tries the account at every site.
	Look struct{}
	// Make has the account make its database on a site.
	Make struct{ Site string }
	// Note puts into status that all is there.
	Note struct{}
)

func (Look) effect() {}
func (Make) effect() {}
func (Note) effect() {}

// Decision is the next step, and what the condition ApplicationReady says.
type Decision struct {
	Effect  Effect
	Ready   bool
	Reason  v1alpha1.Reason
	Message string
	// Remedy is what a person does about it; empty if nobody has to.
	Remedy v1alpha1.Remedy
}

// Decide says what to do next. It may be asked at any time, after any crash: what is there is seen on the servers.
func Decide(s State) Decision {
	if s.Secret != "" {
		return Decision{Reason: v1alpha1.ReasonApplicationSecret, Message: s.Secret}
	}
	if s.Made {
		return Decision{Ready: true, Reason: v1alpha1.ReasonApplicationMade, Message: fmt.Sprintf("the database %s and its account %s were made", s.Database, s.User)}
	}
	if !s.Open {
		// Nothing is asked either: a server that is not open may be on its way out, and the answer would be old when one is.
		return Decision{Reason: v1alpha1.ReasonActiveSiteNotOpen, Message: "no site is open for writes, or the role is moving"}
	}
	active := find(s.Sites, func(site Site) bool { return site.Active })
	switch {
	case active == nil:
		return Decision{Reason: v1alpha1.ReasonActiveSiteNotOpen, Message: "no site is open for writes, or the role is moving"}
	case !active.Looked && active.Trouble != "":
		return Decision{Effect: Look{}, Reason: v1alpha1.ReasonSiteUnreachable, Message: fmt.Sprintf("%s cannot be asked (%s)", active.Name, active.Trouble)}
	case !active.Looked:
		return Decision{Effect: Look{}, Reason: v1alpha1.ReasonLooking, Message: active.Name + " is being asked"}
	case !active.Accepts && s.Unmade != "":
		return Decision{Effect: Look{}, Reason: v1alpha1.ReasonApplicationSecret, Message: fmt.Sprintf(
			"no site makes the account %s with the Secret %s, and %s does not let it in: %s: correct the Secret", s.User, v1alpha1.ApplicationSecret(s.Group), active.Name, s.Unmade)}
	case !active.Accepts:
		return refused(s, Look{}, active.Name+" does not let the account "+s.User+" in with the password of its Secret: it is not there, or has another password")
	case !active.Database && s.NoRight:
		return refused(s, Make{active.Name}, fmt.Sprintf("the account %s may not make the database %s on %s", s.User, s.Database, active.Name))
	case !active.Database && s.Failed != "":
		return Decision{Effect: Make{active.Name}, Reason: v1alpha1.ReasonApplicationFailed, Message: fmt.Sprintf("%s did not make the database %s, and it is tried again: %s", active.Name, s.Database, s.Failed)}
	case !active.Database:
		return Decision{Effect: Make{active.Name}, Reason: v1alpha1.ReasonCreating, Message: fmt.Sprintf("the database %s is being made on %s", s.Database, active.Name)}
	}
	// What only one site has can be lost with it, and would not be made again once it is noted.
	if find(s.Sites, func(site Site) bool { return !site.Active && site.Provisioned && site.Looked && site.Database }) == nil {
		return Decision{Effect: Look{}, Reason: v1alpha1.ReasonSiteBehind, Message: "no other site has replicated the database " + s.Database + " yet"}
	}
	return Decision{Effect: Note{}, Reason: v1alpha1.ReasonCreating, Message: fmt.Sprintf("the database %s and its account %s are there", s.Database, s.User)}
}

// refused waits for a person, and goes on trying: what the person does is seen on the server alone.
func refused(s State, effect Effect, message string) Decision {
	return Decision{Effect: effect, Reason: v1alpha1.ReasonApplicationRefused, Message: message, Remedy: v1alpha1.Remedy{
		Text:    fmt.Sprintf("give it the password of the Secret %s (CREATE USER or ALTER USER) and all rights on %s (GRANT), as root", v1alpha1.ApplicationSecret(s.Group), s.Database),
		Command: fmt.Sprintf("kubectl mfg mysql %s -n %s", s.Group, s.Namespace),
	}}
}

func find(sites []Site, is func(Site) bool) *Site {
	for i := range sites {
		if is(sites[i]) {
			return &sites[i]
		}
	}
	return nil
}
