// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Can the data be restored, and how old would it be?

// Bar draws how much is done, in percent, in the given width.
func Bar(percent int32, width int) string {
	percent = min(100, max(0, percent))
	done := int(percent) * width / 100
	return "[" + strings.Repeat("#", done) + strings.Repeat(".", width-done) + "]"
}

// Backups draws the answer of `kubectl mfg backup list`.
func Backups(l report.BackupList, groups bool, o Options) string {
	name, group, profile := column{title: "NAME"}, column{title: "GROUP"}, column{title: "PROFILE", drop: 3}
	method, phase, site := column{title: "METHOD", drop: 4}, column{title: "PHASE"}, column{title: "SITE", drop: 5}
	size, age, verified := column{title: "SIZE", drop: 2}, column{title: "AGE"}, column{title: "VERIFIED"}
	encrypted, version := column{title: "ENCRYPTED"}, column{title: "MYSQL"}
	location, said := column{title: "LOCATION"}, column{title: "MESSAGE"}
	for _, b := range l.Items {
		name.cells = append(name.cells, text{s: b.Metadata.Name})
		group.cells = append(group.cells, text{s: b.Group})
		profile.cells = append(profile.cells, text{s: b.Profile})
		method.cells = append(method.cells, text{s: orNone(b.Method)})
		phase.cells = append(phase.cells, backupPhaseCell(b))
		site.cells = append(site.cells, text{s: orNone(b.Site)})
		size.cells = append(size.cells, text{s: orNone(b.Size)})
		age.cells = append(age.cells, text{s: o.ago(b.When())})
		verified.cells = append(verified.cells, o.verifiedCell(b))
		encrypted.cells = append(encrypted.cells, text{s: yesNo(b.Encrypted)})
		version.cells = append(version.cells, text{s: orNone(b.MySQLVersion)})
		location.cells = append(location.cells, text{s: orNone(b.Location)})
		said.cells = append(said.cells, text{s: orNone(b.Message)})
	}
	columns := []column{name}
	if groups {
		columns = append(columns, group)
	}
	columns = append(columns, profile, method, phase, site, size, age, verified)
	if o.Wide {
		columns = append(columns, encrypted, version, location, said)
	}
	return o.table(columns)
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func backupPhaseCell(b report.Backup) text {
	switch v1alpha1.BackupPhase(b.Phase) {
	case v1alpha1.BackupRunning:
		return text{b.Phase + percentWords(b.Progress), warn}
	case v1alpha1.BackupFailed:
		return text{b.Phase, bad}
	case v1alpha1.BackupCompleted:
		return text{b.Phase, good}
	case v1alpha1.BackupPending, v1alpha1.BackupDeleting:
	}
	return text{b.Phase, warn}
}

// percentWords returns the percentage in words; empty while unknown.
func percentWords(percent int32) string {
	if percent <= 0 {
		return ""
	}
	return fmt.Sprintf(" %d%%", percent)
}

// verifiedCell says when the backup was verified, or that it could not be restored.
func (o Options) verifiedCell(b report.Backup) text {
	switch {
	case b.VerificationWaits != nil:
		return text{"waits", warn}
	case b.VerificationAsked:
		return text{"under way", warn}
	case b.Verified == nil:
		return text{s: none}
	case b.NotRestorable():
		return text{"FAILED", bad}
	case b.Verified.At == nil:
		return text{lower(b.Verified.Outcome), good}
	}
	return text{lower(b.Verified.Outcome) + " " + o.ago(*b.Verified.At) + " ago", good}
}

// Backup draws the answer of `kubectl mfg backup show`.
func Backup(r report.Backup, o Options) string {
	var b strings.Builder
	phase := backupPhaseCell(r)
	b.WriteString(o.flow(labelWidth, text{r.Metadata.Name, bold}, text{s: r.Metadata.Namespace}, text{s: "MysqlBackup"}, phase))
	b.WriteString(o.paragraph(text{s: "Of"}, fmt.Sprintf("group %s, profile %s, %s", r.Group, r.Profile, orNone(r.Method))))
	if r.Site != "" {
		b.WriteString(o.paragraph(text{s: "Taken"}, "from "+r.Site+epochWords(r.Epoch)+o.tookWords(r)))
	}
	if r.Size != "" {
		b.WriteString(o.paragraph(text{s: "Size"}, r.Size))
	}
	if r.Location != "" {
		words := "in the clear: anyone who can read it there can read the data"
		if r.Encrypted {
			words = "encrypted with age: only an identity opens it"
		}
		b.WriteString(o.paragraph(text{s: "Stored"}, r.Location+", "+words))
	}
	if r.MySQLVersion != "" {
		b.WriteString(o.paragraph(text{s: "MySQL"}, r.MySQLVersion))
	}
	if r.GTIDExecuted != "" {
		b.WriteString(o.paragraph(text{s: "Holds"}, r.GTIDExecuted))
	}
	b.WriteString(o.proof(r))
	if r.KeepsArtifact {
		b.WriteString(o.paragraph(text{"Kept", warn}, "what is in the storage stays when this object is deleted"))
	}
	if r.Message != "" || r.Reason != "" {
		label := text{s: "Says"}
		if r.Phase == string(v1alpha1.BackupFailed) {
			label = text{"Problem", bad}
		}
		b.WriteString(o.paragraph(label, strings.TrimSpace(r.Message+" ["+string(r.Reason)+"]")))
	}
	if r.Next != "" {
		message, command, is := strings.Cut(r.Next, ": kubectl ")
		if !is {
			return b.String() + o.paragraph(text{"Hint", good}, r.Next)
		}
		b.WriteString(o.hint(report.Hint{Message: message, Command: "kubectl " + command})) // a command broken over several lines cannot be copied
	}
	return b.String()
}

// tookWords says when the backup was completed, and how long it took.
func (o Options) tookWords(r report.Backup) string {
	switch {
	case r.FinishedAt != nil && r.StartedAt != nil:
		return fmt.Sprintf(", %s ago, in %s", o.ago(*r.FinishedAt), duration.HumanDuration(r.FinishedAt.Sub(*r.StartedAt)))
	case r.StartedAt != nil && r.Phase == string(v1alpha1.BackupRunning) && r.Progress > 0:
		return fmt.Sprintf(", begun %s ago, %s %d%%", o.ago(*r.StartedAt), Bar(r.Progress, barWidth), r.Progress)
	case r.StartedAt != nil:
		return fmt.Sprintf(", begun %s ago", o.ago(*r.StartedAt))
	}
	return ""
}

func epochWords(epoch int64) string {
	if epoch == 0 {
		return ""
	}
	return fmt.Sprintf(" at epoch %d", epoch)
}

const barWidth = 20

func (o Options) proof(r report.Backup) string {
	switch {
	case r.VerificationWaits != nil:
		return o.paragraph(text{"Verified", warn}, waitWords(r))
	case r.VerificationAsked:
		return o.paragraph(text{"Verified", warn}, "under way")
	case r.Verified == nil && r.Completed():
		return o.paragraph(text{"Verified", warn}, "never: it is unknown whether it can be restored")
	case r.Verified == nil:
		return ""
	case r.NotRestorable():
		return o.paragraph(text{"Verified", bad}, "FAILED"+atWords(r.Verified.At)+": "+r.Verified.Message)
	}
	words := lower(r.Verified.Outcome) + atWords(r.Verified.At)
	if s := r.Verified.RestoreSeconds; s > 0 {
		words += ", restored in " + duration.HumanDuration(time.Duration(s)*time.Second)
	}
	return o.paragraph(text{"Verified", good}, words)
}

// waitWords says what a verification waits for, and what an earlier one found.
func waitWords(r report.Backup) string {
	w := r.VerificationWaits
	words := fmt.Sprintf("not yet: %s; tried %d times", w.Message, w.Tries)
	if w.Tries == 1 {
		words = "not yet: " + w.Message + "; tried once"
	}
	if w.NotBefore != nil {
		words += ", again after " + w.NotBefore.UTC().Format(time.RFC3339)
	}
	if r.Verified != nil {
		words += "; before that it " + lower(r.Verified.Outcome) + atWords(r.Verified.At)
	}
	return words
}

func atWords(t *time.Time) string {
	if t == nil {
		return ""
	}
	return " at " + t.UTC().Format(time.RFC3339)
}

// backupSummary draws the backups among the lines of a group, and a restore that is not over.
func (o Options) backupSummary(b *report.Backups, r *report.Restore) string {
	return o.restoring(r) + o.backedUp(b)
}

func (o Options) backedUp(b *report.Backups) string {
	if b == nil {
		return ""
	}
	label, words := text{s: "Backups"}, ""
	last, proven := b.Last()
	if last == nil {
		label.colour, words = warn, "none yet"
	} else {
		words = "the newest is " + o.ago(*last) + " old"
	}
	switch {
	case proven != nil:
		words += ", the last verification passed " + o.ago(*proven) + " ago"
	case last != nil:
		label.colour, words = warn, words+", never verified"
	}
	if b.Bad() {
		label.colour = bad
	}
	drawn := o.paragraph(label, words)
	for _, p := range b.Profiles {
		switch {
		case p.Running != "":
			drawn += o.paragraph(text{}, p.Name+": "+p.Running+" is being made")
		case p.Suspended:
			drawn += o.paragraph(text{}, p.Name+": its schedule is suspended")
		}
		if p.Reason != "" && p.Message != "" {
			drawn += o.paragraph(text{}, p.Name+": "+p.Message+" ["+string(p.Reason)+"]")
		}
	}
	return drawn
}

// restoring draws a restore that is not over, or failed.
func (o Options) restoring(r *report.Restore) string {
	if r == nil || r.Over() {
		return ""
	}
	label, words := text{"Restoring", warn}, "from "+r.From
	if r.Backup != "" {
		words += ", backup " + r.Backup
	}
	switch v1alpha1.RestorePhase(r.Phase) {
	case v1alpha1.RestoreLoading:
		words += ", into " + orNone(r.Site)
		if r.Progress > 0 {
			words += " " + Bar(r.Progress, barWidth) + percentWords(r.Progress)
		}
	case v1alpha1.RestoreFailed:
		label, words = text{"Restore", bad}, words+": FAILED"
	case v1alpha1.RestorePending, v1alpha1.RestoreCompleted:
	}
	if r.Message != "" {
		words += ": " + r.Message
	}
	if r.Reason != "" {
		words += " [" + string(r.Reason) + "]"
	}
	return o.paragraph(label, words)
}

// backupCell draws the backups in a list: the age of the newest, and the age of the proof.
func (o Options) backupCell(b *report.Backups) text {
	if b == nil {
		return text{s: none}
	}
	last, proven := b.Last()
	cell := text{s: "none"}
	if last != nil {
		cell.s = o.ago(*last)
	}
	switch {
	case proven != nil:
		cell.s += ", verified " + o.ago(*proven)
	case last != nil:
		cell.s += ", not verified"
	}
	switch {
	case b.Bad():
		cell.s, cell.colour = cell.s+"!", bad
	case last == nil || proven == nil:
		cell.colour = warn
	}
	return cell
}

// explainedBackups draws the backups and the restore in an explanation.
func (o Options) explainedBackups(e report.Explained) string {
	drawn := o.restoring(e.Restore)
	if e.Backups == nil || !e.Backups.Bad() || e.Explanation == nil { // without an explanation it is among the problems
		return drawn
	}
	words := e.Backups.Message + " [" + string(e.Backups.Reason) + "]"
	if e.Backups.Ready == nil || *e.Backups.Ready {
		words = e.Backups.VerifiedMessage + " [" + string(e.Backups.VerifiedReason) + "]"
	}
	return drawn + o.paragraph(text{"Backups", warn}, "not as they should be, which keeps no failover from happening: "+words)
}
