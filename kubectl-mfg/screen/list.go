// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// List draws several groups, one line each. Those with two writers come first, whatever their name, then the others that are not healthy.
func List(reports []report.MysqlFailoverGroupReport, o Options) string {
	namespace := column{title: "NAMESPACE"}
	name := column{title: "NAME"}
	status := column{title: "STATUS"}
	active := column{title: "ACTIVE"}
	sites := column{title: "SITES"}
	lag := column{title: "LAG"}
	epoch := column{title: "EPOCH", drop: 4}
	failover := column{title: "FAILOVER", drop: 3}
	age := column{title: "AGE", drop: 2}
	version := column{title: "MYSQL", drop: 6}
	facts := column{title: "FACTS", drop: 7}
	remembered, caches, backups := false, false, false
	cache := column{title: "CACHE", drop: 5}
	backup := column{title: "BACKUP", drop: 5}
	problem := column{title: "PROBLEM", drop: 8}
	for _, r := range troubledFirst(reports) {
		namespace.cells = append(namespace.cells, text{s: r.Metadata.Namespace})
		name.cells = append(name.cells, text{s: r.Metadata.Name})
		status.cells = append(status.cells, text{string(r.Summary), summaryColour(r.Summary)})
		active.cells = append(active.cells, text{s: orNone(r.ActiveSite)})
		sites.cells = append(sites.cells, sitesCell(r))
		lag.cells = append(lag.cells, text{s: seconds(greatestLag(r.Sites))})
		epoch.cells = append(epoch.cells, text{s: fmt.Sprint(r.Epoch)})
		failover.cells = append(failover.cells, o.failoverCell(r.LastFailover))
		age.cells = append(age.cells, o.ageCell(r.Metadata))
		version.cells = append(version.cells, text{s: orNone(r.MySQL)})
		facts.cells = append(facts.cells, text{s: string(r.Facts.Source)})
		remembered = remembered || r.Facts.Source == report.LastKnown
		caches = caches || r.Cache != nil
		cache.cells = append(cache.cells, cacheCell(r.Cache))
		backups = backups || r.Backups != nil
		backup.cells = append(backup.cells, o.backupCell(r.Backups))
		problem.cells = append(problem.cells, problemCell(r.Problems))
	}
	columns := []column{name, status, active, sites, lag, epoch, failover, age}
	if o.Namespace {
		columns = append([]column{namespace}, columns...)
	}
	if o.Wide {
		columns = append(columns, version)
	}
	if o.Wide && caches {
		columns = append(columns, cache)
	}
	if o.Wide && backups {
		columns = append(columns, backup)
	}
	if remembered { // remembered facts are always marked as such
		facts.drop = 0
	}
	if o.Wide || remembered {
		columns = append(columns, facts)
	}
	if o.Wide {
		columns = append(columns, problem)
	}
	return o.table(columns)
}

func troubledFirst(reports []report.MysqlFailoverGroupReport) []report.MysqlFailoverGroupReport {
	order := func(r report.MysqlFailoverGroupReport) int {
		switch r.Health {
		case report.SplitBrain:
			return 0
		case report.Degraded, report.Unknown:
			return 1
		case report.Healthy:
		}
		return 2
	}
	sorted := slices.Clone(reports)
	slices.SortStableFunc(sorted, func(a, b report.MysqlFailoverGroupReport) int { return cmp.Compare(order(a), order(b)) })
	return sorted
}

// sitesCell draws how many sites do their work.
func sitesCell(r report.MysqlFailoverGroupReport) text {
	fit := 0
	for _, s := range r.Sites {
		if s.Fit() {
			fit++
		}
	}
	cell := text{s: fmt.Sprintf("%d/%d", fit, len(r.Sites))}
	if fit < len(r.Sites) {
		cell.colour = warn
	}
	return cell
}

// greatestLag returns nil if no replica's lag is known.
func greatestLag(sites []report.Site) *float64 {
	var greatest *float64
	for _, s := range sites {
		if s.Active || s.LagSeconds == nil {
			continue
		}
		if greatest == nil || *s.LagSeconds > *greatest {
			greatest = s.LagSeconds
		}
	}
	return greatest
}

func (o Options) failoverCell(f *report.Failover) text {
	if f == nil {
		return text{s: none}
	}
	kind := lower(f.Kind)
	if f.Reverted {
		kind = "reverted"
	}
	return text{s: fmt.Sprintf("%s %s ago", kind, o.ago(f.OpenedAt))}
}

func (o Options) ageCell(m report.Metadata) text {
	if m.CreationTimestamp == nil {
		return text{s: none}
	}
	return text{s: o.ago(*m.CreationTimestamp)}
}

func problemCell(problems []report.Problem) text {
	if len(problems) == 0 {
		return text{s: none}
	}
	return text{s: string(problems[0].Reason)}
}
