// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// How is the cache store, and where are the sessions?

// CacheReport draws the answer of `kubectl mfg cache status`.
func CacheReport(r report.CacheReport, o Options) string {
	var b strings.Builder
	c := r.Cache
	ready := text{"ready", good}
	switch {
	case c.Ready == nil:
		ready = text{"not looked at yet", warn}
	case !*c.Ready:
		ready = text{"not ready", bad}
	}
	b.WriteString(o.flow(labelWidth, text{r.Metadata.Name, bold}, text{s: r.Metadata.Namespace}, text{s: "cache"}, text{s: c.Engine}, ready))
	b.WriteString(o.paragraph(text{s: "Clients"}, c.Endpoint+", "+r.Encrypted()))
	b.WriteString(o.paragraph(text{s: "Password"}, "key "+v1alpha1.CachePassword+" of Secret "+r.PasswordSecret))
	b.WriteString(o.cacheMaster(&c, r.ActiveSite))
	b.WriteString(o.cacheChanging(c.Transition))
	b.WriteString(o.cachePast(c.LastPromotion))
	if l := r.LastRequest; l != nil {
		b.WriteString(o.paragraph(text{s: "Asked for"}, fmt.Sprintf("promotion to %s, %s ago: %s (%s): %s", orNone(l.Target), o.ago(l.AnsweredAt.Time), lower(string(l.Outcome)), l.Reason, l.Message)))
	}
	b.WriteString(o.cacheOutlook(c.Outlook))
	o.Wide = true
	b.WriteString("\n" + o.table(o.cacheColumns(&c)))
	if c.Ready != nil && !*c.Ready {
		b.WriteString("\n" + o.cacheNotReady(&c))
	}
	for _, h := range r.Hints {
		b.WriteString(o.hint(h))
	}
	return b.String()
}

// cacheSummary draws the cache among the lines of a group.
func (o Options) cacheSummary(r report.MysqlFailoverGroupReport) string {
	if r.Cache == nil {
		return ""
	}
	words := r.Cache.Endpoint + " (" + r.Cache.Engine
	if r.Cache.TLS {
		words += ", TLS"
	}
	return o.paragraph(text{s: "Cache"}, words+")") + o.cacheMaster(r.Cache, r.ActiveSite) + o.cacheChanging(r.Cache.Transition) + o.cachePast(r.Cache.LastPromotion)
}

// cacheMaster draws where the sessions are.
func (o Options) cacheMaster(c *report.Cache, active string) string {
	switch {
	case c.MasterSite == "":
		return o.paragraph(text{"Master", bad}, "no site: applications have no cache")
	case c.MasterSite != active && c.Transition == nil:
		return o.paragraph(text{"Master", warn}, c.MasterSite+", away from the active site "+orNone(active))
	}
	return o.paragraph(text{s: "Master"}, c.MasterSite)
}

// cacheChanging draws a change of the master that is under way.
func (o Options) cacheChanging(t *report.CacheTransition) string {
	if t == nil {
		return ""
	}
	return o.paragraph(text{"Moving", warn}, fmt.Sprintf("cache %s, %s; begun %s ago", arrow(t.From, t.To), report.CacheMoveWords(t.Kind), o.ago(t.StartedAt)))
}

// cachePast draws the last change of the master.
func (o Options) cachePast(p *report.CachePromotion) string {
	if p == nil {
		return ""
	}
	label := text{s: "Promoted"}
	if p.IsFirst() {
		return o.paragraph(label, fmt.Sprintf("%s, for %s", p.What(arrow), o.ago(p.At)))
	}
	words, sessions := fmt.Sprintf("%s, %s ago, %s, ", p.What(arrow), o.ago(p.At), millis(p.TookMillis)), "sessions preserved"
	if !p.SessionsPreserved {
		label.colour, sessions = warn, "sessions NOT preserved"
		if p.Reason != "" {
			sessions += " [" + string(p.Reason) + "]"
		}
		if p.Message != "" {
			sessions += ": " + p.Message
		}
	}
	return o.paragraph(label, words+sessions)
}

// cacheOutlook draws what would happen to the sessions.
func (o Options) cacheOutlook(out *report.CacheOutlook) string {
	if out == nil {
		return ""
	}
	label := text{s: "Sessions"}
	if out.Emergency == report.SessionsLost || out.Emergency == report.SessionsNone {
		label.colour = warn
	}
	words := out.Message
	if out.Site != "" && out.Emergency != report.SessionsStay {
		words = "in a failover to " + out.Site + ": " + words
	}
	drawn := o.paragraph(label, words)
	if out.PlannedMessage != "" {
		drawn += o.paragraph(text{}, "in a planned failover: "+out.PlannedMessage)
	}
	return drawn
}

func (o Options) cacheNotReady(c *report.Cache) string {
	return o.paragraph(text{"Problem", bad}, c.Message+" ["+string(c.Reason)+"]")
}

// explainedCache draws the cache in an explanation: what happens to the sessions, and why it is not ready.
func (o Options) explainedCache(e report.Explained) string {
	if e.Cache == nil {
		return ""
	}
	drawn := o.cacheOutlook(e.Cache.Outlook)
	if e.Explanation == nil || e.Cache.Ready == nil || *e.Cache.Ready {
		return drawn // without an explanation it is among the problems
	}
	drawn += o.paragraph(text{"Cache", warn}, "not ready, which keeps no failover from happening: "+e.Cache.Message+" ["+string(e.Cache.Reason)+"]")
	for _, h := range e.CacheHints {
		drawn += o.hint(h)
	}
	return drawn
}

// cacheTable draws the caches of a group, one row each.
func (o Options) cacheTable(c *report.Cache) string {
	if c == nil {
		return ""
	}
	return "\n" + o.table(o.cacheColumns(c))
}

func (o Options) cacheColumns(c *report.Cache) []column {
	site, role, link := column{title: "CACHE"}, column{title: "ROLE"}, column{title: "LINK"}
	behind, memory := column{title: "BEHIND"}, column{title: "MEMORY"}
	image, said := column{title: "IMAGE", drop: 2}, column{title: "MESSAGE", drop: 1}
	several := len(c.Masters()) > 1
	for _, s := range c.Sites {
		mark := "  "
		if s.Master {
			mark = "* "
		}
		site.cells = append(site.cells, text{s: mark + s.Name})
		role.cells = append(role.cells, cacheRoleCell(s, several))
		link.cells = append(link.cells, cacheLinkCell(s))
		behind.cells = append(behind.cells, text{s: cacheBehind(s)})
		memory.cells = append(memory.cells, cacheMemoryCell(c, s))
		image.cells = append(image.cells, text{s: orNone(s.Image)})
		said.cells = append(said.cells, text{s: orNone(s.Message)})
	}
	columns := []column{site, role, link, behind, memory}
	if o.Wide {
		columns = append(columns, image, said)
	}
	return columns
}

func cacheRoleCell(s report.CacheSite, several bool) text {
	switch {
	case s.Role == "":
		return text{"silent", bad}
	case s.Role == string(v1alpha1.CacheMaster) && (several || !s.Master):
		return text{s.Role + "!", bad}
	}
	return text{s.Role, good}
}

func cacheLinkCell(s report.CacheSite) text {
	switch {
	case s.Role != string(v1alpha1.CacheReplica):
		return text{s: none}
	case s.Link == report.CacheLinkUp:
		return text{lower(s.Link), good}
	case s.Link == report.CacheLinkSyncing:
		return text{lower(s.Link), warn}
	case s.Link == "":
		return text{unknown, warn}
	}
	return text{lower(s.Link), bad}
}

func cacheBehind(s report.CacheSite) string {
	switch {
	case s.Role != string(v1alpha1.CacheReplica):
		return none
	case s.Behind() == "":
		return unknown
	}
	return s.Behind()
}

func cacheMemoryCell(c *report.Cache, s report.CacheSite) text {
	if s.UsedMemoryBytes == nil {
		return text{s: unknown}
	}
	cell := text{s: report.Bytes(*s.UsedMemoryBytes) + " of " + report.Bytes(c.MaxMemoryBytes)}
	if c.Full(s) {
		cell.colour = warn
	}
	return cell
}

// cacheCell draws the cache in a list: where its master is, and why it is not ready.
func cacheCell(c *report.Cache) text {
	if c == nil {
		return text{s: none}
	}
	cell := text{s: orNone(c.MasterSite)}
	switch {
	case c.Transition != nil:
		return text{arrow(c.Transition.From, c.Transition.To), warn}
	case c.Ready == nil:
		cell.colour = warn
	case !*c.Ready:
		return text{cell.s + " " + string(c.Reason), bad}
	}
	return cell
}

// historyCache draws the last change of the cache's master; status keeps only one.
func (o Options) historyCache(p *report.CachePromotion) string {
	if p == nil {
		return ""
	}
	return "\n" + o.paint(text{"The last change of the cache's master", bold}) + "\n" + o.cachePast(p)
}
