// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// shownSet is how much of a GTID set is shown unless all is requested.
const shownSet = 60

// History draws the changes of the active site: a table, then each with its timeline and what was lost.
func History(h report.History, o Options) string {
	if len(h.Items) == 0 {
		return o.flow(labelWidth, text{h.Metadata.Name, bold}, text{s: h.Metadata.Namespace}, text{s: "the active site never changed"}) + o.historyCache(h.LastCachePromotion)
	}
	var b strings.Builder
	b.WriteString(o.table(o.changeColumns(h.Items)))
	for _, c := range h.Items {
		b.WriteString("\n" + o.change(c))
	}
	return b.String() + o.historyCache(h.LastCachePromotion)
}

func (o Options) changeColumns(all []report.Change) []column {
	epoch, kind, role := column{title: "EPOCH"}, column{title: "KIND"}, column{title: "ROLE"}
	opened, took := column{title: "OPENED"}, column{title: "TOOK"}
	pause, lost, reason := column{title: "WRITE PAUSE", short: "PAUSE"}, column{title: "LOST"}, column{title: "REASON", drop: 1}
	for _, c := range all {
		epoch.cells = append(epoch.cells, text{s: fmt.Sprint(c.Epoch)})
		kind.cells = append(kind.cells, text{s: lower(string(c.Kind))})
		role.cells = append(role.cells, roleCell(c))
		opened.cells = append(opened.cells, text{s: o.ago(c.OpenedAt.Time) + " ago"})
		took.cells = append(took.cells, text{s: millis(c.DurationMillis)})
		pause.cells = append(pause.cells, text{s: millisOrNone(c.WritePauseMillis)})
		lost.cells = append(lost.cells, lostCell(c))
		reason.cells = append(reason.cells, text{s: string(c.Reason)})
	}
	return []column{epoch, kind, role, opened, took, pause, lost, reason}
}

func roleCell(c report.Change) text {
	if !c.Reverted {
		return text{s: arrow(c.From, c.To)}
	}
	if c.IntendedTo == "" {
		return text{c.To + ", reverted", warn}
	}
	return text{arrow(c.From, c.IntendedTo) + ", reverted", warn}
}

func millisOrNone(ms *int64) string {
	if ms == nil {
		return none
	}
	return millis(*ms)
}

func lostCell(c report.Change) text {
	switch {
	case c.LostTransactions > 0 && c.LossExact:
		return text{fmt.Sprint(c.LostTransactions), bad}
	case c.LostTransactions > 0:
		return text{fmt.Sprintf("at least %d", c.LostTransactions), bad}
	case c.LossExact:
		return text{"0", good}
	}
	return text{"not known yet", warn}
}

// change draws one change in full.
func (o Options) change(c report.Change) string {
	var b strings.Builder
	what := lower(string(c.Kind)) + " " + arrow(c.From, c.To)
	if c.Reverted {
		what = revertedWords(c.To, c.IntendedTo)
	}
	b.WriteString(o.paragraph(text{fmt.Sprintf("Epoch %d", c.Epoch), bold}, fmt.Sprintf("%s, open since %s, because %s",
		what, c.OpenedAt.UTC().Format(time.RFC3339), c.Reason)))
	if len(c.Timeline) > 0 {
		steps := make([]string, 0, len(c.Timeline))
		for _, s := range c.Timeline {
			steps = append(steps, "+"+millis(s.Millis)+" "+s.Step)
		}
		b.WriteString(o.paragraph(text{s: "Timeline"}, strings.Join(steps, ", ")))
	}
	for _, e := range c.Evidence {
		b.WriteString(o.paragraph(text{s: "Evidence"}, e))
	}
	b.WriteString(o.paragraph(text{s: "Lost"}, o.lostWords(c)))
	for _, r := range c.LostRows {
		b.WriteString(o.paragraph(text{}, fmt.Sprintf("%s: %d inserted, %d updated, %d deleted rows", tableName(r), r.Inserted, r.Updated, r.Deleted)))
	}
	if c.LostRowsState != "" && c.LostRowsState != v1alpha1.LostRowsCounted {
		b.WriteString(o.paragraph(text{}, "rows: "+c.LostRowsState))
	}
	return b.String()
}

func (o Options) lostWords(c report.Change) string {
	set := c.LostSet
	if !o.Wide && len(set) > shownSet {
		set = set[:shownSet] + "... (-o wide shows all)"
	}
	switch {
	case c.LossExact && c.LostTransactions == 0:
		return "nothing: every transaction of " + orNone(c.From) + " is on " + c.To
	case c.LossExact:
		return fmt.Sprintf("exactly %s of %s: %s", gtid.Transactions(c.LostTransactions), c.From, set)
	case c.LostTransactions > 0:
		return fmt.Sprintf("at least %s, the exact number follows when %s is back: %s", gtid.Transactions(c.LostTransactions), c.From, set)
	}
	return fmt.Sprintf("none that is known, the exact number follows when %s is back", orNone(c.From))
}

func tableName(r v1alpha1.LostRows) string {
	if r.Schema == "" && r.Table == "" {
		return "all other tables"
	}
	return r.Schema + "." + r.Table
}
