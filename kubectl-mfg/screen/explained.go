// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Explanation draws why a group does, or does not, fail over.
func Explanation(e report.Explained, o Options) string {
	var b strings.Builder
	b.WriteString(o.explainedHeader(e))
	if e.Explanation == nil {
		b.WriteString(o.unexplained(e))
		return b.String()
	}
	x := e.Explanation
	b.WriteString(o.paragraph(text{"Decision", plain}, fmt.Sprintf("%s (%s): %s", x.Verdict, x.Reason, x.Message)))
	b.WriteString("\n" + o.paint(text{"Rules, for or against a failover, in their order", bold}) + "\n")
	widest := 0
	for _, r := range x.Rules {
		widest = max(widest, width(r.Name))
	}
	for _, r := range x.Rules {
		b.WriteString(o.rule(r, r.Name == x.DecidedBy, widest))
	}
	if len(x.Candidates) > 0 {
		b.WriteString("\n" + o.paint(text{"Who would take over, the best first", bold}) + "\n")
		b.WriteString(o.table(candidateColumns(x.Candidates)))
		for _, c := range x.Candidates {
			b.WriteString(o.paragraph(text{s: c.Site}, c.RankedBy+": "+c.Because))
			if c.PlannedMessage != "" {
				b.WriteString(o.paragraph(text{}, "planned failover: "+c.PlannedMessage))
			}
		}
	}
	b.WriteString("\n" + o.consequences(e))
	b.WriteString(o.explainedCache(e))
	b.WriteString(o.explainedBackups(e))
	b.WriteString(o.explainedPITR(e))
	b.WriteString(explainedCampaign(e, o))
	return b.String()
}

func (o Options) explainedHeader(e report.Explained) string {
	answer := text{"not known why", warn}
	switch x := e.Explanation; {
	case e.OperatorDown:
		answer = text{"no operator leads", bad}
	case x == nil:
	case report.IsStale(e.Problems):
		answer = text{"old: " + e.Problems[0].Message, bad}
	case x.Topology == wire.TopologyTransition && x.DecidedBy != "":
		answer = text{"the role is moving, waits for: " + x.DecidedBy, warn}
	case x.Now, x.Topology == wire.TopologyTransition:
		answer = text{"the role moves now", warn}
	case e.Healthy() && len(x.Blockers) == 0:
		answer = text{e.Outlook(), good}
	case e.Healthy():
		answer = text{e.Outlook(), warn}
	case x.DecidedBy != "":
		answer = text{"does not fail over: " + x.DecidedBy, bold}
	}
	return o.flow(labelWidth, text{e.Metadata.Name, bold}, text{s: e.Metadata.Namespace}, text{s: "active site " + orNone(e.ActiveSite)},
		text{s: fmt.Sprintf("epoch %d", e.Epoch)}, answer, sourceText(e.Facts))
}

// unexplained draws what is known without the operator.
func (o Options) unexplained(e report.Explained) string {
	b := strings.Builder{}
	b.WriteString(o.paragraph(text{"Facts", warn}, "the operator did not explain itself: "+e.Facts.Message))
	b.WriteString(o.changing(e.Transition))
	if e.Forecast != nil {
		b.WriteString(o.paragraph(text{s: "If lost"}, orLastKnown(e.Facts, "last known: ")+e.Forecast.Message))
	}
	b.WriteString(o.explainedCache(e))
	b.WriteString(o.explainedBackups(e))
	b.WriteString(o.explainedPITR(e))
	b.WriteString(explainedCampaign(e, o))
	b.WriteString(o.problems(e.Problems, e.Transition))
	for _, c := range e.Conditions {
		if c.Message != "" && noteworthy(c) && !told(e.Problems, c.Message) {
			b.WriteString(o.paragraph(text{s: "Condition"}, fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)))
		}
	}
	for _, h := range e.Hints {
		b.WriteString(o.hint(h))
	}
	return b.String()
}

// explainedCampaign draws the rotation of all sites: at which site it is, what it waits for, since when, and what to do.
func explainedCampaign(e report.Explained, o Options) string {
	c := e.Campaign
	if c == nil {
		return ""
	}
	words := "of all sites, which keeps no failover from happening: " + c.Words
	if c.Step != string(v1alpha1.CampaignWaiting) && c.Message != "" {
		words += "; " + c.Site + ": " + c.Message
	}
	if c.Since != nil {
		words += "; since " + o.ago(*c.Since)
	}
	drawn := o.paragraph(text{"Rotation", warn}, words)
	for _, h := range e.CampaignHints {
		drawn += o.hint(h)
	}
	return drawn
}

// noteworthy is false for a condition that is as it should be: a mere memory must not reassure anyone. Ready and Degraded
// only sum up.
func noteworthy(c report.Condition) bool {
	switch c.Type {
	case v1alpha1.ConditionReady, v1alpha1.ConditionDegraded:
		return false
	case v1alpha1.ConditionProgressing:
		return c.Reason != v1alpha1.ReasonAsExpected
	case v1alpha1.ConditionFailoverBlocked, v1alpha1.ConditionPlannedBlocked, v1alpha1.ConditionPaused, v1alpha1.ConditionSitesKeptFenced,
		v1alpha1.ConditionUnbuiltFeatures, v1alpha1.ConditionSpecRefused:
		return c.Status != string(metav1.ConditionFalse)
	}
	return c.Status != string(metav1.ConditionTrue) && c.Reason != v1alpha1.ReasonAsExpected
}

// verdicts of rules in words and colours: no meaning by colour alone.
var verdicts = map[wire.RuleVerdict]text{
	wire.RuleFor: {"for", good}, wire.RuleAgainst: {"against", warn}, wire.RuleOpen: {"open", dim},
}

// rule takes one line, or more if needed; the mark shows the one that decides.
func (o Options) rule(r wire.ExplainedRule, decides bool, widest int) string {
	mark := "  "
	if decides {
		mark = "> "
	}
	v := verdicts[r.Verdict]
	head := mark + o.paint(v) + strings.Repeat(" ", max(1, 9-width(v.s))) + escape.Line(r.Name) + strings.Repeat(" ", widest-width(r.Name)+2)
	indent := 2 + 9 + widest + 2
	words := r.Input
	if r.Reason != "" && r.Verdict == wire.RuleAgainst {
		words += " [" + r.Reason + "]"
	}
	body := o.wrap(indent, words)
	remedies := r.Remedies
	if len(remedies) == 0 && r.Remedy != "" {
		remedies = []wire.Remedy{{Text: r.Remedy}} // of an operator of an older version
	}
	return head + body + o.remedies(indent, remedies)
}

// wrap puts words on lines that begin at a column.
func (o Options) wrap(indent int, words string) string {
	var b strings.Builder
	used := indent
	for i, w := range strings.Fields(words) {
		switch {
		case i == 0:
		case o.Width > 0 && used+1+width(w) > o.Width && used > indent:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(escape.Line(w))
		used += width(w)
	}
	return b.String() + "\n"
}

func candidateColumns(all []wire.ExplainedCandidate) []column {
	site, fit, has := column{title: "SITE"}, column{title: "FIT"}, column{title: "HAS", drop: 3}
	apply, lag, priority := column{title: "TO APPLY", drop: 2}, column{title: "LAG"}, column{title: "PRIORITY", short: "PRIO", drop: 4}
	lost, planned := column{title: "WOULD LOSE"}, column{title: "PLANNED FAILOVER", short: "PLANNED"}
	for _, c := range all {
		site.cells = append(site.cells, text{s: c.Site})
		word, moves := text{"yes", good}, text{"possible", good}
		if !c.Fit {
			word = text{"no", warn}
		}
		if c.PlannedBlockedBy != "" {
			moves = text{c.PlannedBlockedBy, warn}
		}
		fit.cells = append(fit.cells, word)
		has.cells = append(has.cells, text{s: strconv.FormatInt(c.Transactions, 10)})
		apply.cells = append(apply.cells, text{s: strconv.FormatInt(c.ToApply, 10)})
		lag.cells = append(lag.cells, text{s: seconds(c.LagSeconds)})
		priority.cells = append(priority.cells, text{s: strconv.Itoa(int(c.Priority))})
		lost.cells = append(lost.cells, text{s: count(c.LostTransactions)})
		planned.cells = append(planned.cells, moves)
	}
	return []column{site, fit, has, apply, lag, priority, lost, planned}
}

// consequences draws what would be lost, and what blocks. While the role moves there is no "would": it shows the loss as
// far as the operator tells it, and the lines above show what the move waits for.
func (o Options) consequences(e report.Explained) string {
	x := e.Explanation
	loss, blocked := "no site is fit to take over", "nothing: the operator would fail over automatically"
	if e.Blocked() {
		blocked = "" // the header and the decision say why; what blocks by name follows
	}
	if x.Topology == wire.TopologyTransition {
		loss, blocked = "", ""
	}
	if x.Loss != nil {
		loss = "by a failover to " + x.Loss.Site + ": " + x.Loss.Message
	}
	if len(x.Blockers) > 0 {
		blocked = strings.Join(x.Blockers, ", ")
	}
	words := ""
	if loss != "" {
		words += o.paragraph(text{s: "Loss"}, loss)
	}
	if blocked != "" {
		words += o.paragraph(text{s: "Blocked"}, "by "+blocked)
	}
	return words
}
