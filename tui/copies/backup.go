// SPDX-License-Identifier: Apache-2.0

// Package copies draws what a group could be restored from: its backups and its archive of binary logs; and a restore that is under way.
package copies

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// View draws them for one group.
type View struct {
	paint.Painter
	Report report.MysqlFailoverGroupReport
}

// Backups draws the backups of the group, a line for each profile. It draws nothing if there are none.
func (v View) Backups(width int) canvas.Block {
	var out canvas.Block
	b := v.Report.Backups
	if b == nil {
		return nil
	}
	label := canvas.Span{Text: "Backups"}
	if b.Bad() {
		label.Style = canvas.Warn
	}
	for _, p := range b.Profiles {
		out = append(out, v.Signs.Paragraph(label, v.profileWords(p), width)...)
		label = canvas.Span{}
	}
	for _, said := range []struct {
		is      *bool
		message string
		reason  v1alpha1.Reason
	}{{b.Ready, b.Message, b.Reason}, {b.Verified, b.VerifiedMessage, b.VerifiedReason}} {
		if said.is != nil && !*said.is {
			out = append(out, v.Signs.Paragraph(canvas.Span{}, said.message+" ["+string(said.reason)+"]", width)...)
		}
	}
	return out
}

// profileWords says how old the newest backup and its proof are, what is being made, and when the next is due.
func (v View) profileWords(p report.BackupProfile) string {
	words := p.Name + " "
	if p.LastSuccess == nil {
		words += "none yet"
	} else {
		words += v.Ago(*p.LastSuccess) + " old"
	}
	switch {
	case p.VerifiedAt != nil:
		words += ", verified " + v.Ago(*p.VerifiedAt) + " ago"
		if p.RestoreSeconds > 0 {
			words += fmt.Sprintf(" in %s", time.Duration(p.RestoreSeconds)*time.Second)
		}
	case p.LastSuccess != nil:
		words += ", never verified"
	}
	if p.Backups > 0 {
		words += fmt.Sprintf(", %d kept", p.Backups)
		if p.Bytes > 0 {
			words += " (" + report.Bytes(p.Bytes) + ")"
		}
	}
	switch {
	case p.Running != "":
		words += ", " + p.Running + " is being made"
	case p.Removed:
		words += ", its profile is gone"
	case p.Suspended:
		words += ", schedule suspended"
	case p.Next != nil:
		words += ", next in " + v.Left(*p.Next)
	}
	return words
}

// Restore draws how far the restore of a new group is, until it is over.
func (v View) Restore(width int) canvas.Block {
	r := v.Report.Restore
	if r == nil || r.Over() {
		return nil
	}
	label, words := canvas.Span{Text: "Restoring", Style: canvas.Warn}, "from "+r.From
	if r.Backup != "" {
		words += ", backup " + r.Backup
	}
	if r.Phase == string(v1alpha1.RestoreLoading) {
		words += ", loaded into " + paint.OrNone(r.Site)
		if r.Progress > 0 { // else the progress is unknown
			words += fmt.Sprintf(", %d%%", r.Progress)
		}
	}
	if r.Phase == string(v1alpha1.RestoreFailed) {
		label, words = canvas.Span{Text: "Restore", Style: canvas.Bad}, words+": failed"
	}
	if r.Message != "" {
		words += ": " + r.Message
	}
	if r.Reason != "" {
		words += " [" + string(r.Reason) + "]"
	}
	return v.Signs.Paragraph(label, words, width)
}
