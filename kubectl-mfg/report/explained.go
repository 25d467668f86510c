// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// ExplainedKind is the kind of Explained.
const ExplainedKind = "MysqlFailoverExplanation"

// Explained says why a group does, or does not, fail over.
type Explained struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Facts      Facts    `json:"facts"`
	Phase      string   `json:"phase,omitempty"`
	ActiveSite string   `json:"activeSite,omitempty"`
	Epoch      int64    `json:"epoch"`
	// OperatorDown is true if it is certain that no operator leads: nothing happens automatically.
	OperatorDown bool `json:"operatorDown,omitempty"`
	// Transition is a change of the active site that is under way.
	Transition *Transition `json:"transition,omitempty"`
	// Explanation is the operator's own; nil if it could not be asked.
	Explanation *wire.Explanation `json:"explanation,omitempty"`
	// Forecast and Conditions are what the custom resource says.
	Forecast   *Forecast   `json:"forecast,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Cache is the cache store with what would happen to its sessions; nil in groups without one. CacheHints are the next steps while
	// it is not ready.
	Cache      *Cache `json:"cache,omitempty"`
	CacheHints []Hint `json:"cacheHints,omitempty"`
	// Backups and Restore are from status. Neither prevents a failover.
	Backups *Backups `json:"backups,omitempty"`
	Restore *Restore `json:"restore,omitempty"`
	PITR    *PITR    `json:"pitr,omitempty"`
	// Campaign is the present rotation of all sites; nil if there is none. It prevents no failover. CampaignHints are the next steps.
	Campaign      *Campaign `json:"campaign,omitempty"`
	CampaignHints []Hint    `json:"campaignHints,omitempty"`
	// Problems and Hints are from status; only without an Explanation, which says more. With one, Problems has no more than that it is old.
	Problems []Problem `json:"problems,omitempty"`
	Hints    []Hint    `json:"hints,omitempty"`
}

// Forecast is what would happen if the active site were lost now.
type Forecast struct {
	Site             string   `json:"site,omitempty"`
	Rule             string   `json:"rule,omitempty"`
	LostTransactions *int64   `json:"lostTransactions,omitempty"`
	LostSeconds      *float64 `json:"lostSeconds,omitempty"`
	// LostTransactionsStep and LagStep are the same from the custom resource alone, in its steps, such as <100 and <10s.
	LostTransactionsStep string          `json:"lostTransactionsStep,omitempty"`
	LagStep              string          `json:"lagStep,omitempty"`
	BlockedBy            v1alpha1.Reason `json:"blockedBy,omitempty"`
	Message              string          `json:"message,omitempty"`
}

// Words says which site would take over, or what keeps it from that. The operator's own words already name the site if nothing
// prevents it, or only time does.
func (f Forecast) Words() string {
	switch {
	case f.Site == "" && f.Message != "":
		return "no site would take over: " + f.Message
	case f.Site == "" || f.Message != "" && (f.BlockedBy == "" || f.BlockedBy == v1alpha1.ReasonSiteMayStillVouch):
		return f.Message
	case f.Message == "":
		return f.Site + " would take over"
	}
	return f.Site + " would take over, but: " + f.Message
}

// Loss says in words what would be lost at least, or nothing if that is unknown.
func (f Forecast) Loss() string {
	if f.LostTransactions != nil && *f.LostTransactions == 0 {
		return "no known loss"
	}
	if f.LostTransactions != nil {
		return "at least " + gtid.Transactions(*f.LostTransactions) + " lost"
	}
	if f.LostTransactionsStep == "" {
		return ""
	}
	words := fmt.Sprintf("last known: %s transactions would be lost", f.LostTransactionsStep)
	if f.LagStep != "" {
		words += ", lag " + f.LagStep
	}
	return words
}

// Blocked is true if a failover is due and cannot continue, or would not happen automatically. Only the operator can say
// that it would: without its answer that is unknown, whatever the custom resource remembers, and so it is if the answer is old.
func (e Explained) Blocked() bool {
	x := e.Explanation
	switch {
	case x == nil, len(x.Blockers) > 0, x.Verdict == wire.VerdictBlocked, x.Verdict == wire.VerdictAlert, IsStale(e.Problems):
		return true
	case !x.Now && (e.Epoch == 0 || x.DecidedBy == wire.RuleActiveSiteKnown): // no active site is known that another could replace
		return true
	}
	// The active site does not serve, and that is no reason to fail over. A stall becomes one once its timeout is over: until then no one can tell.
	return x.Verdict == wire.VerdictNothing && !e.Healthy()
}

// Healthy is true if the operator only says that the active site accepts writes: then nothing is due.
func (e Explained) Healthy() bool {
	x := e.Explanation
	if x == nil || e.OperatorDown || x.Verdict != wire.VerdictNothing || x.Reason != string(v1alpha1.ReasonHealthy) {
		return false
	}
	for _, r := range x.Rules {
		if r.Name == x.DecidedBy {
			return r.Reason == string(v1alpha1.ReasonHealthy) // any other reason says why the active site cannot write although it is open
		}
	}
	return false
}

// Outlook says what would happen to a healthy group if the active site were lost now.
func (e Explained) Outlook() string {
	if len(e.Explanation.Blockers) > 0 {
		return "healthy; would not fail over: " + strings.Join(e.Explanation.Blockers, ", ")
	}
	for _, c := range e.Explanation.Candidates { // the best first
		if c.Fit {
			return "healthy; would fail over to " + c.Site
		}
	}
	return "healthy; no site is fit to take over"
}

// BuildExplained makes the report.
func BuildExplained(cr *v1alpha1.MysqlFailoverGroup, view LiveView, e *wire.Explanation) Explained {
	live := view.group(cr.Namespace, cr.Name)
	out := Explained{
		APIVersion: APIVersion, Kind: ExplainedKind, Metadata: Metadata{Name: cr.Name, Namespace: cr.Namespace},
		Facts: factsOf(cr, view, live), Phase: string(cr.Status.Phase), ActiveSite: cr.Status.ActiveSite, Epoch: cr.Status.Epoch,
		OperatorDown: view.Down, Transition: transitionOf(cr.Status.Transition),
		Forecast: forecastOf(cr, view, live), Explanation: e,
	}
	if live != nil && live.Epoch > out.Epoch {
		out.Epoch, out.ActiveSite = live.Epoch, live.ActiveSite
	}
	out.Cache = CacheOf(cr, out.ActiveSite, out.Forecast)
	out.Backups, out.Restore, out.PITR = BackupsOf(cr), RestoreOf(cr), PITROf(cr)
	out.Campaign, out.CampaignHints = CampaignOf(cr), CampaignHints(cr)
	if c := out.Cache; c != nil && c.Ready != nil && !*c.Ready {
		out.CacheHints = CacheHints(cr.Namespace, cr.Name, c)
	}
	if e == nil {
		out.Conditions = conditionsOf(cr.Status.Conditions)
		r := Build(cr, view)
		out.Problems, out.Hints = r.Problems, r.Hints
		if live != nil {
			out.Facts.Message = "this operator cannot explain its decisions: it is older than this plugin, or has not decided yet"
		}
		return out
	}
	out.Problems = stale(cr, view, live)
	return out
}

// forecastOf prefers the live one, which also knows what would be lost. There is none if nothing would happen
// automatically, nor while the role moves: what status then still has is about the site that lost the role.
func forecastOf(cr *v1alpha1.MysqlFailoverGroup, view LiveView, live *wire.GroupStatus) *Forecast {
	if view.Down || cr.Status.Transition != nil || live != nil && live.Epoch < cr.Status.Epoch {
		return nil
	}
	if live != nil {
		if f := live.Forecast; f != nil {
			return &Forecast{Site: f.Site, Rule: f.Rule, LostTransactions: f.LostTransactions, LostSeconds: f.LostSeconds, BlockedBy: v1alpha1.Reason(f.BlockedBy), Message: f.Message}
		}
		return nil
	}
	if f := cr.Status.Forecast; f != nil {
		return &Forecast{Site: f.Site, Rule: f.Rule, LostTransactionsStep: f.LostTransactions, LagStep: f.Lag, BlockedBy: f.BlockedBy, Message: f.Message}
	}
	return nil
}
