// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Tree draws groups with their sites below those from which they replicate.
func Tree(all []report.MysqlFailoverGroupReport, o Options) string {
	var b strings.Builder
	for i, r := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(o.flow(labelWidth, text{r.Metadata.Name, bold}, text{s: r.Metadata.Namespace}, text{string(r.Summary), summaryColour(r.Summary)},
			text{s: fmt.Sprintf("epoch %d", r.Epoch)}, sourceText(r.Facts)))
		drawn := map[string]bool{}
		b.WriteString(o.branches(r, "", "", drawn))
		for _, s := range r.Sites {
			if !drawn[s.Name] { // two sites follow each other
				b.WriteString(o.branches(r, sourceOf(r, s), "", drawn))
			}
		}
		b.WriteString(o.changing(r.Transition) + o.problems(r.Problems, r.Transition))
	}
	return b.String()
}

// branches draws the sites that follow a site; the roots follow no known site. Each site is drawn once, even if two
// follow each other.
func (o Options) branches(r report.MysqlFailoverGroupReport, source, indent string, drawn map[string]bool) string {
	var below []report.Site
	for _, s := range r.Sites {
		if !drawn[s.Name] && sourceOf(r, s) == source {
			below = append(below, s)
			drawn[s.Name] = true
		}
	}
	var b strings.Builder
	for i, s := range below {
		branch, further := "├─ ", "│  "
		if i == len(below)-1 {
			branch, further = "└─ ", "   "
		}
		mark := ""
		if s.Active {
			mark = "* "
		}
		pieces := []text{{mark + s.Name, bold}, stateCell(s), {s: s.Role}, {s: "fence " + fenceCell(s).s}}
		if !s.Active {
			pieces = append(pieces, text{s: "lag " + replicaCell(s, seconds(s.LagSeconds)).s}, text{s: "behind " + replicaCell(s, count(s.Behind)).s})
		}
		if s.Node != "" {
			pieces = append(pieces, text{s: "node " + s.Node})
		}
		b.WriteString(indent + branch + Options{Color: o.Color}.flow(0, pieces...))
		b.WriteString(o.branches(r, s.Name, indent+further, drawn))
	}
	return b.String()
}

// sourceOf returns the site that another one follows, if that is another site of the group.
func sourceOf(r report.MysqlFailoverGroupReport, s report.Site) string {
	if s.Active {
		return ""
	}
	for _, other := range r.Sites {
		if other.Name == s.ReplicatingFrom && other.Name != s.Name {
			return other.Name
		}
	}
	return ""
}
