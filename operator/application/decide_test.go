// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/application"
)

func TestTheNextStep(t *testing.T) {
	fresh := application.State{
		Group: "orders", Namespace: "shop", User: "app", Database: "shop", Open: true,
		Sites: []application.Site{{Name: "a", Active: true, Provisioned: true, Looked: true, Accepts: true}, {Name: "b", Provisioned: true, Looked: true, Accepts: true}},
	}
	for name, c := range map[string]struct {
		reason string
		change func(*application.State)
		effect application.Effect
		want   v1alpha1.Reason
		ready  bool
	}{
		"made":      {"the open active site has everything but the database", func(*application.State) {}, application.Make{Site: "a"}, v1alpha1.ReasonCreating, false},
		"the other": {"the active site makes it, wherever it stands in the list", func(s *application.State) { s.Sites[0].Active, s.Sites[1].Active = false, true }, application.Make{Site: "b"}, v1alpha1.ReasonCreating, false},
		"closed":    {"nothing is written where it is not certain that the site is active", func(s *application.State) { s.Open = false }, nil, v1alpha1.ReasonActiveSiteNotOpen, false},
		"nobody":    {"there is no active site", func(s *application.State) { s.Sites[0].Active = false }, nil, v1alpha1.ReasonActiveSiteNotOpen, false},
		"unasked":   {"what is not known is looked at first", func(s *application.State) { s.Sites[0].Looked = false }, application.Look{}, v1alpha1.ReasonLooking, false},
		"silent":    {"a site that does not answer is asked again", func(s *application.State) { s.Sites[0].Looked, s.Sites[0].Trouble = false, "no answer" }, application.Look{}, v1alpha1.ReasonSiteUnreachable, false},
		"refused":   {"there is another user of that name, or none", func(s *application.State) { s.Sites[0].Accepts = false }, application.Look{}, v1alpha1.ReasonApplicationRefused, false},
		"unmade": {"the Secret is what is to be corrected", func(s *application.State) {
			s.Sites[0].Accepts, s.Unmade = false, "its password is empty"
		}, application.Look{}, v1alpha1.ReasonApplicationSecret, false},
		"unmade but there": {"a person has made the account", func(s *application.State) { s.Unmade = "its password is too long" }, application.Make{Site: "a"}, v1alpha1.ReasonCreating, false},
		"no right":         {"a person made the user without rights", func(s *application.State) { s.NoRight = true }, application.Make{Site: "a"}, v1alpha1.ReasonApplicationRefused, false},
		"failed":           {"it is tried again", func(s *application.State) { s.Failed = "disk full" }, application.Make{Site: "a"}, v1alpha1.ReasonApplicationFailed, false},
		"alone":            {"it could be lost with the active site, and nobody would make it again", func(s *application.State) { s.Sites[0].Database = true }, application.Look{}, v1alpha1.ReasonSiteBehind, false},
		"elsewhere": {"a site without the group's data proves nothing", func(s *application.State) {
			s.Sites[0].Database, s.Sites[1].Database, s.Sites[1].Provisioned = true, true, false
		}, application.Look{}, v1alpha1.ReasonSiteBehind, false},
		"old answer": {"what a site said under another epoch proves nothing", func(s *application.State) {
			s.Sites[0].Database, s.Sites[1].Database, s.Sites[1].Looked = true, true, false
		}, application.Look{}, v1alpha1.ReasonSiteBehind, false},
		"replicated":   {"two sites have it", func(s *application.State) { s.Sites[0].Database, s.Sites[1].Database = true, true }, application.Note{}, v1alpha1.ReasonCreating, false},
		"dropped":      {"who drops the database later wants it gone", func(s *application.State) { s.Made = true }, nil, v1alpha1.ReasonApplicationMade, true},
		"no secret":    {"its password is lost", func(s *application.State) { s.Secret = "it is missing" }, nil, v1alpha1.ReasonApplicationSecret, false},
		"lost its own": {"also if all was made", func(s *application.State) { s.Made, s.Secret = true, "it is missing" }, nil, v1alpha1.ReasonApplicationSecret, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh
			s.Sites = append([]application.Site(nil), fresh.Sites...)
			c.change(&s)
			got := application.Decide(s)
			if diff := cmp.Diff(c.effect, got.Effect); diff != "" || got.Reason != c.want || got.Ready != c.ready || got.Message == "" {
				t.Errorf("%s: %s\ngot %+v", c.reason, diff, got)
			}
			if (got.Remedy.Command != "") != (c.want == v1alpha1.ReasonApplicationRefused) {
				t.Errorf("%s: remedy %+v", c.reason, got.Remedy)
			}
		})
	}
}
