// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	drOnly  = v1alpha1.BackupPreferDROnly
	replica = v1alpha1.BackupPreferReplica
	active  = v1alpha1.BackupPreferActive
)

// three is a healthy group: paris is active, frankfurt a candidate, madrid dr-only.
func three() Group {
	return Group{Sites: []Site{
		{Name: "paris", Candidate: true, Active: true, Reachable: true, HasData: true},
		{Name: "frankfurt", Candidate: true, Reachable: true, Replicating: true, LagKnown: true, HasData: true},
		{Name: "madrid", Reachable: true, Replicating: true, LagKnown: true, HasData: true},
	}}
}

func TestChoose(t *testing.T) {
	tests := map[string]struct {
		prefer v1alpha1.BackupPrefer
		avoid  string
		change func(*Group)
		want   string
		reason v1alpha1.Reason
	}{
		"dr-only first":                      {prefer: drOnly, want: "madrid"},
		"a candidate first":                  {prefer: replica, want: "frankfurt"},
		"the active site when asked":         {prefer: active, want: "paris"},
		"a candidate without dr-only":        {prefer: drOnly, change: func(g *Group) { g.Sites[2].Reachable = false }, want: "frankfurt"},
		"dr-only without candidate":          {prefer: replica, change: func(g *Group) { g.Sites[1].Reachable = false }, want: "madrid"},
		"a replica without active":           {prefer: active, change: func(g *Group) { g.Sites[0].Reachable = false }, want: "madrid"},
		"never the active site":              {prefer: drOnly, change: func(g *Group) { g.Sites[1].Replicating, g.Sites[2].Replicating = false, false }, reason: v1alpha1.ReasonNoBackupSource},
		"no data":                            {prefer: drOnly, change: func(g *Group) { g.Sites[2].HasData = false }, want: "frankfurt"},
		"being cloned":                       {prefer: drOnly, change: func(g *Group) { g.Sites[2].Cloning = true }, want: "frankfurt"},
		"being rotated":                      {prefer: drOnly, change: func(g *Group) { g.Sites[2].Rotating = true }, want: "frankfurt"},
		"leaving":                            {prefer: drOnly, change: func(g *Group) { g.Sites[2].Leaving = true }, want: "frankfurt"},
		"diverged":                           {prefer: drOnly, change: func(g *Group) { g.Sites[2].Diverged = true }, want: "frankfurt"},
		"a filter is set on the active site": {prefer: active, change: func(g *Group) { g.Sites[0].Filtered = true }, want: "paris"},
		"a filter is set":                    {prefer: drOnly, change: func(g *Group) { g.Sites[2].Filtered = true }, want: "frankfurt"},
		"an XA transaction is prepared":      {prefer: drOnly, change: func(g *Group) { g.Sites[2].PreparedXA = true }, want: "frankfurt"},
		"lag unknown":                        {prefer: drOnly, change: func(g *Group) { g.Sites[2].LagKnown = false }, want: "frankfurt"},
		"lags too much":                      {prefer: drOnly, change: func(g *Group) { g.Sites[2].Lag = time.Minute + 1 }, want: "frankfurt"},
		"lags just enough":                   {prefer: drOnly, change: func(g *Group) { g.Sites[2].Lag = time.Minute }, want: "madrid"},
		"lag of the active is none":          {prefer: active, change: func(g *Group) { g.Sites[0].Lag = time.Hour }, want: "paris"},
		"where it had to yield comes last":   {prefer: drOnly, avoid: "madrid", want: "frankfurt"},
		"rather there than nowhere":          {prefer: drOnly, avoid: "madrid", change: func(g *Group) { g.Sites[1].Cloning = true }, want: "madrid"},
		"the less lag":                       {prefer: replica, change: func(g *Group) { g.Sites[2].Candidate = true; g.Sites[1].Lag = time.Second }, want: "madrid"},
		"while the role moves":               {prefer: drOnly, change: func(g *Group) { g.Target = "frankfurt" }, reason: v1alpha1.ReasonBackupWaitsForFailover},
		"while the active is in doubt":       {prefer: drOnly, change: func(g *Group) { g.ActiveInDoubt = true }, reason: v1alpha1.ReasonBackupWaitsForFailover},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := three()
			if tc.change != nil {
				tc.change(&g)
			}
			got := Choose(g, Source{Prefer: tc.prefer, MaxLag: time.Minute, Avoid: []string{tc.avoid}})
			if tc.reason == "" {
				tc.reason = v1alpha1.ReasonBackupSourceChosen
			}
			if got.Site != tc.want || got.Reason != tc.reason || got.Message == "" {
				t.Errorf("Choose = %+v, want %q, %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestChooseSaysWhyNone(t *testing.T) {
	g := three()
	g.Sites[1].Cloning, g.Sites[2].Diverged = true, true
	got := Choose(g, Source{Prefer: drOnly, MaxLag: time.Minute}).Message
	if !strings.HasPrefix(got, "no site can be backed up: frankfurt: ") { // by their names, or it changes with the order of the sites
		t.Errorf("%q", got)
	}
	for _, part := range []string{"frankfurt: it is being cloned", "madrid: it has diverged", "paris: it is the active site, and source.prefer is not Active"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
}

func TestYield(t *testing.T) {
	tests := map[string]struct {
		site   string
		prefer v1alpha1.BackupPrefer
		change func(*Group)
		want   bool
	}{
		"nothing is wrong":                   {site: "frankfurt"},
		"it is being promoted":               {site: "frankfurt", change: func(g *Group) { g.Target = "frankfurt" }, want: true},
		"dr-only is being promoted":          {site: "madrid", change: func(g *Group) { g.Target = "madrid" }, want: true},
		"another is being promoted":          {site: "madrid", change: func(g *Group) { g.Target = "frankfurt" }},
		"the active site is in doubt":        {site: "frankfurt", change: func(g *Group) { g.ActiveInDoubt = true }, want: true},
		"in doubt, and it is never promoted": {site: "madrid", change: func(g *Group) { g.ActiveInDoubt = true }},
		"in doubt itself":                    {site: "paris", prefer: active, change: func(g *Group) { g.ActiveInDoubt = true }},
		"it became active":                   {site: "paris", want: true},
		"it is active, as asked for":         {site: "paris", prefer: active},
		"it is cloned":                       {site: "madrid", change: func(g *Group) { g.Sites[2].Cloning = true }, want: true},
		"it is rotated":                      {site: "madrid", change: func(g *Group) { g.Sites[2].Rotating = true }, want: true},
		"it leaves":                          {site: "madrid", change: func(g *Group) { g.Sites[2].Leaving = true }, want: true},
		"it diverged":                        {site: "madrid", change: func(g *Group) { g.Sites[2].Diverged = true }, want: true},
		"it is gone":                         {site: "rome", want: true},
		"it lags":                            {site: "madrid", change: func(g *Group) { g.Sites[2].Lag = time.Hour }},
		"it does not answer":                 {site: "madrid", change: func(g *Group) { g.Sites[2].Reachable = false }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := three()
			if tc.change != nil {
				tc.change(&g)
			}
			if tc.prefer == "" {
				tc.prefer = drOnly
			}
			reason, message := Yield(g, tc.site, tc.prefer)
			if (reason != "") != tc.want || (message != "") != tc.want {
				t.Errorf("Yield = %q, %q", reason, message)
			}
		})
	}
}

// A site that was chosen does not have to yield to the same facts: no backup is started in order to be stopped.
func TestWhatIsChosenNeedNotYield(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		flag := func(name string) bool { return rapid.IntRange(0, 3).Draw(r, name) == 0 }
		g := Group{ActiveInDoubt: flag("doubt")}
		for i, name := range []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(r, "sites")] {
			g.Sites = append(g.Sites, Site{
				Name: name, Active: i == 0, Candidate: !flag("dr"), Reachable: !flag("away"), Replicating: !flag("stopped"), LagKnown: !flag("unknown"),
				Lag: time.Duration(rapid.IntRange(0, 100).Draw(r, "lag")) * time.Second, HasData: !flag("empty"), Cloning: flag("cloning"),
				Rotating: flag("rotating"), Leaving: flag("leaving"), Diverged: flag("diverged"),
			})
			if flag("target") {
				g.Target = name
			}
		}
		o := Source{Prefer: rapid.SampledFrom([]v1alpha1.BackupPrefer{drOnly, replica, active}).Draw(r, "prefer"), MaxLag: time.Minute}
		c := Choose(g, o)
		if c.Site == "" {
			return
		}
		if reason, why := Yield(g, c.Site, o.Prefer); reason != "" {
			r.Fatalf("%s was chosen and must yield: %s", c.Site, why)
		}
		for _, s := range g.Sites {
			if s.Name == c.Site && (s.Active && o.Prefer != active || !s.Active && s.Lag > o.MaxLag || !s.Reachable || !s.HasData) {
				r.Fatalf("%+v was chosen by %s", s, o.Prefer)
			}
		}
	})
}
