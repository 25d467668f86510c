// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// From when to when can the group be restored, and what happened then?

// instant returns a point in time as a restore accepts it.
func instant(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999Z07:00")
}

func second(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// Timeline draws the answer of `kubectl mfg backup timeline`.
func Timeline(r *report.Timeline, o Options) string {
	var b strings.Builder
	a := r.Archive
	b.WriteString(o.flow(labelWidth, text{r.Metadata.Name, bold}, text{s: r.Metadata.Namespace}, text{s: a.Location}))
	from, to := r.Recoverable()
	switch {
	case from.IsZero() && len(a.Backups) == 0:
		b.WriteString(o.paragraph(text{"Recover", bad}, "nothing: there is no backup to begin with"))
	case from.IsZero():
		b.WriteString(o.paragraph(text{"Recover", bad}, "nothing beyond the backups: from none of them the archive leads on"))
	default:
		b.WriteString(o.paragraph(text{"Recover", good}, fmt.Sprintf("any moment from %s to %s (%s ago)%s", second(from), instant(to), o.ago(to), exceptGaps(a))))
	}
	b.WriteString(o.paragraph(text{s: "Archive"}, fmt.Sprintf("%s in %d files%s", report.Bytes(a.Bytes), a.Files, heartWords(a))))
	for _, p := range a.Problems {
		b.WriteString(o.paragraph(text{"Problem", bad}, p))
	}
	b.WriteString(o.picture(r))
	b.WriteString(o.epochTable(a))
	b.WriteString(o.gapTable(a))
	b.WriteString(o.archivedBackups(r))
	if r.Truncated {
		b.WriteString(o.paragraph(text{"Note", warn}, "there is more than is shown: the oldest epochs and gaps are left out"))
	}
	return b.String()
}

func exceptGaps(a wire.ArchiveTimeline) string {
	switch n := len(a.Gaps); n {
	case 0:
		return ""
	case 1:
		return ", but for one gap"
	default:
		return fmt.Sprintf(", but for %d gaps", n)
	}
}

func heartWords(a wire.ArchiveTimeline) string {
	if a.Heart == nil {
		return ""
	}
	return fmt.Sprintf("; %s has written nothing more until %s", a.Heart.Site, second(a.Heart.At))
}

func (o Options) epochTable(a wire.ArchiveTimeline) string {
	if len(a.Epochs) == 0 {
		return ""
	}
	epoch, site, kind, began := column{title: "EPOCH"}, column{title: "SITE"}, column{title: "BY", drop: 2}, column{title: "BEGAN"}
	last, count, lost, size := column{title: "LAST COMMIT", drop: 3}, column{title: "TRANSACTIONS", short: "TRX"}, column{title: "LOST"}, column{title: "SIZE", drop: 1}
	for _, e := range a.Epochs {
		epoch.cells = append(epoch.cells, text{s: strconv.FormatInt(e.Epoch, 10)})
		site.cells = append(site.cells, text{s: orNone(e.Site)})
		kind.cells = append(kind.cells, text{s: cmp.Or(lower(e.Kind), none)})
		began.cells = append(began.cells, text{s: second(e.PromotedAt)})
		last.cells = append(last.cells, text{s: second(e.Last)})
		count.cells = append(count.cells, text{s: strconv.FormatInt(e.Transactions, 10)})
		cell := text{s: none}
		if e.Lost > 0 {
			cell = text{strconv.FormatInt(e.Lost, 10), bad}
		}
		lost.cells = append(lost.cells, cell)
		size.cells = append(size.cells, text{s: report.Bytes(e.Bytes)})
	}
	return "\n" + o.table([]column{epoch, site, kind, began, last, count, lost, size})
}

func (o Options) gapTable(a wire.ArchiveTimeline) string {
	if len(a.Gaps) == 0 {
		return ""
	}
	gap, site, after, before, count := column{title: "GAP"}, column{title: "SITE", drop: 1}, column{title: "AFTER"}, column{title: "BEFORE"}, column{title: "TRANSACTIONS", short: "TRX"}
	gtids := column{title: "GTIDS", drop: 2}
	for i, g := range a.Gaps {
		gap.cells = append(gap.cells, text{strconv.Itoa(i + 1), bad})
		site.cells = append(site.cells, text{s: orNone(g.Site)})
		after.cells, before.cells = append(after.cells, text{s: instant(g.After)}), append(before.cells, text{s: instant(g.Before)})
		count.cells = append(count.cells, text{s: strconv.FormatInt(g.Transactions, 10)})
		gtids.cells = append(gtids.cells, text{s: cmp.Or(g.GTIDs, "too many to be shown")})
	}
	return "\n" + o.table([]column{gap, site, after, before, count, gtids})
}

func (o Options) archivedBackups(r *report.Timeline) string {
	if len(r.Archive.Backups) == 0 {
		return ""
	}
	name, done, method, verified := column{title: "BACKUP"}, column{title: "COMPLETED"}, column{title: "METHOD", drop: 2}, column{title: "VERIFIED"}
	leads, size := column{title: "LEADS ON"}, column{title: "SIZE", drop: 1}
	for _, b := range r.Archive.Backups {
		name.cells = append(name.cells, text{s: b.Name})
		done.cells = append(done.cells, text{s: second(b.FinishedAt)})
		method.cells = append(method.cells, text{s: orNone(b.Method)})
		verified.cells = append(verified.cells, outcomeCell(r.Verified[b.Name]))
		cell := text{"yes", good}
		if !b.Reaches {
			cell = text{"no: " + b.Why, warn}
		}
		leads.cells = append(leads.cells, cell)
		size.cells = append(size.cells, text{s: report.Bytes(b.Bytes)})
	}
	return "\n" + o.table([]column{name, done, method, size, verified, leads})
}

func outcomeCell(outcome string) text {
	switch outcome {
	case "":
		return text{s: none}
	case string(v1alpha1.BackupPassed):
		return text{lower(outcome), good}
	}
	return text{strings.ToUpper(outcome), bad}
}

// Found draws transactions of an archive, each with what is needed to restore to it.
func Found(items []wire.ArchivedTransaction, o Options) string {
	var b strings.Builder
	for i, t := range items {
		if i > 0 {
			b.WriteString("\n")
		}
		label := text{t.Role, bold}
		if t.Role == wire.RoleMatch {
			label = text{"Found", bold}
		}
		b.WriteString(o.paint(label) + strings.Repeat(" ", max(1, labelWidth-width(label.s))) + t.GTID + "\n")
		b.WriteString(o.paragraph(text{s: "At"}, fmt.Sprintf("%s, epoch %d, site %s", instant(t.Time), t.Epoch, t.Site)))
		b.WriteString(o.paragraph(text{s: "In"}, fmt.Sprintf("%s at %d, %s", t.Log, t.Position, report.Bytes(t.Bytes))))
		b.WriteString(o.paragraph(text{s: "Does"}, doesWords(t)))
		if t.Previous != "" {
			b.WriteString(o.paint(text{s: "Prior"}) + strings.Repeat(" ", labelWidth-width("Prior")) + t.Previous + "\n")
		}
	}
	return b.String()
}

func doesWords(t wire.ArchivedTransaction) string {
	all := append([]string(nil), t.Statements...)
	for _, table := range t.Tables {
		var counts []string
		for _, c := range []struct {
			n    int64
			what string
		}{{table.Inserted, "inserted"}, {table.Updated, "updated"}, {table.Deleted, "deleted"}} {
			if c.n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
			}
		}
		all = append(all, table.Schema+"."+table.Table+": "+strings.Join(counts, ", "))
	}
	if t.More > 0 {
		all = append(all, fmt.Sprintf("and %d more", t.More))
	}
	return cmp.Or(strings.Join(all, "; "), "nothing that is a row or a definition")
}

// FoundTable draws transactions, one per line.
func FoundTable(items []wire.ArchivedTransaction, o Options) string {
	id, at, epoch, site := column{title: "GTID"}, column{title: "COMMITTED"}, column{title: "EPOCH"}, column{title: "SITE", drop: 2}
	size, does := column{title: "SIZE", drop: 1}, column{title: "DOES"}
	for _, t := range items {
		id.cells, at.cells = append(id.cells, text{s: t.GTID}), append(at.cells, text{s: instant(t.Time)})
		epoch.cells = append(epoch.cells, text{s: strconv.FormatInt(t.Epoch, 10)})
		site.cells = append(site.cells, text{s: t.Site})
		size.cells = append(size.cells, text{s: report.Bytes(t.Bytes)})
		does.cells = append(does.cells, text{s: doesWords(t)})
	}
	return o.table([]column{id, at, epoch, site, size, does})
}
