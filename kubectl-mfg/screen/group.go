// SPDX-License-Identifier: Apache-2.0

// Package screen draws reports for people. It is pure: reports and options in, text out.
package screen

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Options say how to draw.
type Options struct {
	// Width is the number of columns; 0 means no bound.
	Width int
	Color bool
	Wide  bool
	// Namespace adds a column with the namespace to lists.
	Namespace bool
	Now       time.Time
}

// Group draws one group.
func Group(r report.MysqlFailoverGroupReport, o Options) string {
	var b strings.Builder
	b.WriteString(o.header(r))
	b.WriteString(o.active(r))
	b.WriteString(o.flow(0,
		text{s: "Writes    " + r.Endpoints.Writes},
		text{s: fmt.Sprintf("Reads     %s (%d healthy%s)", r.Endpoints.Reads, r.Endpoints.HealthyReplicas, orLastKnown(r.Facts, ", as last known"))}))
	b.WriteString(o.cacheSummary(r))
	b.WriteString(o.backupSummary(r.Backups, r.Restore))
	b.WriteString(o.recoverable(r.PITR))
	if r.Encryption != nil {
		b.WriteString(o.encryption(r))
	}
	if r.Certificate != nil {
		b.WriteString(o.certificate(*r.Certificate))
	}
	if r.Facts.Source == report.LastKnown {
		b.WriteString(o.paragraph(text{"Facts", warn}, o.lastKnown(r.Facts)))
	}
	b.WriteString(o.changing(r.Transition))
	b.WriteString(o.updating(r))
	if d := r.Decision; d != nil && d.Verdict != wire.VerdictNothing && !told(r.Problems, d.Message) {
		b.WriteString(o.paragraph(text{"Decision", warn}, fmt.Sprintf("%s (%s): %s", d.Verdict, d.Reason, d.Message)))
	}
	b.WriteString(o.outlook(r))
	b.WriteString("\n" + o.table(o.siteColumns(r)))
	b.WriteString(o.cacheTable(r.Cache))
	b.WriteString(o.remarks(r))
	return b.String()
}

// changing draws a change of the active site that is under way; its time is the time of the whole, not of its step.
func (o Options) changing(t *report.Transition) string {
	if t == nil {
		return ""
	}
	return o.paragraph(text{"Changing", warn}, fmt.Sprintf("%s %s, %s; begun %s ago: %s", lower(t.Kind), arrow(t.From, t.To), t.Step, o.ago(t.StartedAt), t.Reason))
}

// updating draws the operator's work on pods and volumes: a site that is being replaced does not answer either.
func (o Options) updating(r report.MysqlFailoverGroupReport) string {
	for _, c := range r.Conditions {
		if c.Type != v1alpha1.ConditionProgressing || c.Message == "" || told(r.Problems, c.Message) {
			continue
		}
		switch {
		case c.Status == string(metav1.ConditionTrue):
			return o.paragraph(text{"Updating", warn}, c.Message+" ["+string(c.Reason)+"]")
		case c.Status == string(metav1.ConditionFalse) && c.Reason != v1alpha1.ReasonAsExpected:
			return o.paragraph(text{"Held up", warn}, c.Message+" ["+string(c.Reason)+"]")
		}
	}
	return ""
}

// encryption draws how far encryption at rest is.
func (o Options) encryption(r report.MysqlFailoverGroupReport) string {
	label, sealed := text{s: "Encrypted"}, 0
	for _, s := range r.Sites {
		if s.Keyring != nil && s.Keyring.Phase == string(v1alpha1.KeyringSealed) {
			sealed++
		}
	}
	words := fmt.Sprintf("%d of %d keyrings sealed", sealed, len(r.Sites))
	if n := r.Encryption.UnencryptedTablespaces; n > 0 {
		words += fmt.Sprintf("; up to %d tablespaces of a site are in the clear", n)
	}
	if !r.Encryption.Sealed || r.Encryption.UnencryptedTablespaces > 0 {
		label.colour = warn
	}
	out := o.paragraph(label, words)
	if c := r.Encryption.Campaign; c != nil {
		out += o.paragraph(text{"Rotation", warn}, "of all sites: "+c.Words)
	}
	return out
}

// outlook draws a planned failover under way, copies under way, and what would happen if the active site were lost now.
func (o Options) outlook(r report.MysqlFailoverGroupReport) string {
	var b strings.Builder
	if p := r.Planned; p != nil && p.FinishedAt == nil {
		b.WriteString(o.paragraph(text{"Planned", warn}, fmt.Sprintf("%s, %s: %s", arrow(p.From, p.To), p.Phase, p.Message)))
	}
	for _, s := range r.Sites {
		if c := s.Clone; c != nil {
			words := s.Name + " from " + orNone(c.Source)
			if c.Stage != "" { // MySQL tells of none before the first one began
				words += fmt.Sprintf(", %s %d %%", c.Stage, c.Percent)
			}
			if c.ETASeconds != nil {
				words += ", about " + duration.HumanDuration(time.Duration(*c.ETASeconds)*time.Second) + " left"
			}
			b.WriteString(o.paragraph(text{"Cloning", warn}, words))
		}
	}
	if f := r.Forecast; f != nil && f.Message != "" {
		words := orLastKnown(r.Facts, "last known: ") + f.Words()
		if loss := f.Loss(); loss != "" {
			words += "; " + strings.TrimPrefix(loss, orLastKnown(r.Facts, "last known: "))
		}
		label := text{s: "If lost"}
		if f.BlockedBy != "" {
			label.colour, words = warn, words+" ["+string(f.BlockedBy)+"]"
		}
		b.WriteString(o.paragraph(label, words))
	}
	return b.String()
}

func (o Options) header(r report.MysqlFailoverGroupReport) string {
	pieces := []text{
		{r.Metadata.Name, bold}, {s: r.Metadata.Namespace}, {s: "MysqlFailoverGroup"},
		{string(r.Summary), summaryColour(r.Summary)}, {s: fmt.Sprintf("epoch %d", r.Epoch)},
	}
	if r.MySQL != "" {
		pieces = append(pieces, text{s: "MySQL " + r.MySQL})
	}
	if r.Facts.Operator != "" {
		pieces = append(pieces, text{s: "operator " + r.Facts.Operator})
	}
	return o.flow(labelWidth, append(pieces, sourceText(r.Facts))...)
}

// sourceText says how far to trust the rest.
func sourceText(f report.Facts) text {
	if f.Source == report.LastKnown {
		return text{"last known", warn}
	}
	return text{"live", good}
}

// orLastKnown returns words for facts that are not live, and nothing for those that are.
func orLastKnown(f report.Facts, words string) string {
	if f.Source == report.LastKnown {
		return words
	}
	return ""
}

func summaryColour(s report.Summary) Colour {
	switch s {
	case report.SummaryReady:
		return good
	case report.SummarySplitBrain, report.SummaryUnavailable:
		return bad
	default:
		return warn
	}
}

func (o Options) active(r report.MysqlFailoverGroupReport) string {
	active, since := text{none, bad}, ""
	if r.ActiveSite != "" {
		active = text{r.ActiveSite, bold}
	}
	switch {
	case r.Transition != nil:
		active.colour, since = warn, " (not open yet)"
	case r.ActiveSiteSince != nil:
		since = " (active for " + o.ago(*r.ActiveSiteSince) + ")"
	}
	line, past := "Active    "+active.s+since, o.failover(r)
	painted := "Active    " + o.paint(active) + since
	if o.Width > 0 && width(line)+2+width(past) > o.Width {
		return painted + "\n" + o.paragraph(text{}, past)
	}
	return painted + "  " + past + "\n"
}

func (o Options) failover(r report.MysqlFailoverGroupReport) string {
	f := r.LastFailover
	if f == nil {
		return "no failover yet"
	}
	ago := ""
	if r.ActiveSiteSince == nil || f.To != r.ActiveSite { // else the line already says it
		ago = o.ago(f.OpenedAt) + " ago, "
	}
	if f.Reverted {
		return fmt.Sprintf("last failover: %s, %s%s, %s", revertedWords(f.To, f.IntendedTo), ago, millis(f.DurationMillis), lost(f))
	}
	return fmt.Sprintf("last failover: %s %s, %s%s, %s",
		lower(f.Kind), arrow(f.From, f.To), ago, millis(f.DurationMillis), lost(f))
}

// revertedWords says where a planned failover should have gone, if known, and that it did not.
func revertedWords(stayed, intended string) string {
	if intended == "" {
		return "planned, reverted: " + stayed + " stayed active"
	}
	return "planned " + arrow(stayed, intended) + ", reverted: " + stayed + " stayed active"
}

func lost(f *report.Failover) string {
	switch {
	case f.LossExact:
		return gtid.Transactions(f.LostTransactions) + " lost"
	case f.LostTransactions == 0:
		return "lost transactions not known yet"
	default:
		return "at least " + gtid.Transactions(f.LostTransactions) + " lost"
	}
}

func (o Options) lastKnown(f report.Facts) string {
	words := "operator not reachable: last known status"
	if f.Operator != "" {
		words = "the operator answered, but not about this group: last known status"
	}
	if f.ObservedAt != nil {
		words += ", last changed " + o.ago(*f.ObservedAt) + " ago"
	}
	return words + " (" + f.Message + ")"
}
