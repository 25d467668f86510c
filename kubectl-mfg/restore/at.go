// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pitr"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// gtidForm is one GTID, with a tag or without.
var gtidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(:[a-zA-Z_][a-zA-Z0-9_]{0,31})?:[1-9][0-9]{0,18}$`)

// Prefixes of --at.
const (
	atLatest         = "latest"
	atGTID           = "gtid:"
	atBefore         = "before:"
	atBeforeFailover = "before-failover:"
)

// parseAt reads --at: a time, a GTID, before:GTID, before-failover:EPOCH or latest.
func parseAt(text string) (wire.BackupTarget, error) {
	text = strings.TrimSpace(text)
	one := func(id string) (string, error) {
		if !gtidForm.MatchString(id) {
			return "", fmt.Errorf("--at: %q is not the GTID of one transaction, as in 3e11fa47-71ca-11e1-9e33-c80aa9429562:4711", id)
		}
		return strings.ToLower(id), nil
	}
	var t wire.BackupTarget
	var err error
	switch {
	case text == atLatest:
		t.Latest = true
	case strings.HasPrefix(text, atBeforeFailover):
		t.BeforeFailover, err = strconv.ParseInt(text[len(atBeforeFailover):], 10, 64)
		if err != nil || t.BeforeFailover < 2 {
			return t, fmt.Errorf("--at %s: after before-failover: comes the epoch that the failover began, at least 2; kubectl mfg backup timeline shows them", text)
		}
	case strings.HasPrefix(text, atBefore):
		t.BeforeGTID, err = one(text[len(atBefore):])
	case strings.HasPrefix(text, atGTID):
		t.GTID, err = one(text[len(atGTID):])
	case gtidForm.MatchString(text):
		t.GTID, err = one(text)
	default:
		t.Time, err = pitr.ParseTime(text)
		if err != nil {
			err = fmt.Errorf("--at %w; or a GTID, before:GTID, before-failover:EPOCH, or latest", err)
		}
	}
	return t, err
}

// pointInTime returns the same for the new group's specification.
func pointInTime(t wire.BackupTarget) *v1alpha1.PointInTime {
	p := &v1alpha1.PointInTime{GTID: t.GTID, BeforeGTID: t.BeforeGTID, BeforeFailover: t.BeforeFailover}
	if !t.Time.IsZero() {
		m := v1alpha1.NewMoment(t.Time)
		p.Time = &m
	}
	if t.Latest {
		yes := true
		p.Latest = &yes
	}
	return p
}

// targetWords names a target for people.
func targetWords(t wire.BackupTarget) string {
	switch {
	case !t.Time.IsZero():
		return "all that was committed until " + t.Time.UTC().Format("2006-01-02T15:04:05.999999Z07:00")
	case t.GTID != "":
		return "all up to and with transaction " + t.GTID
	case t.BeforeGTID != "":
		return "all before transaction " + t.BeforeGTID
	case t.BeforeFailover != 0:
		return fmt.Sprintf("what epoch %d began with, so without what that failover lost", t.BeforeFailover)
	}
	return "all that is archived"
}

// archiveProfile takes the profile of the archive, unless another place was named.
func (op *Op) archiveProfile(t template) error {
	if op.At == "" || op.Profile != "" || op.StorageFile != "" {
		return nil
	}
	b := t.spec.Backup
	if b == nil || b.PITR == nil || b.PITR.Profile == "" {
		return cli.Refused("refused: %s has no archive of binary logs (spec.backup.pitr), so only the moments of its backups can be restored\n  leave --at out, or say where the archive is: --profile NAME or --storage-file FILE", op.rep.From)
	}
	op.Profile = b.PITR.Profile
	return nil
}

// aim makes the new group stop at the target, once the archive says that it can be reached.
func (op *Op) aim(ctx context.Context, c Cluster, p *planned) error {
	if op.At == "" {
		return nil
	}
	init := p.group.Spec.InitFromBackup
	init.PointInTime, init.Backup = pointInTime(op.target), op.Backup
	op.rep.Target = targetWords(op.target)
	p.checks = withoutBackup(p, op.Backup)
	p.say("Target", "%s", op.rep.Target)
	if !op.Check {
		p.say("Unchecked", "whether the archive reaches it was not checked: the operator does that before it touches anything")
		return nil
	}
	place := pitr.Place{Namespace: op.Namespace, FromNamespace: op.FromNamespace, Group: op.From, Storage: p.storage, PullSecrets: p.group.Spec.ImagePullSecrets}
	access := pitr.Access{Image: op.Image, OperatorNamespace: op.OperatorNamespace, Timeout: lookTimeout}
	r, err := pitr.Look(ctx, c, place, access, wire.AskTimeline{Target: &op.target, Backup: op.Backup})
	if err != nil {
		return withoutLooking(err)
	}
	if r.Check.Refusal != "" {
		return op.unreachable(r)
	}
	init.Backup = r.Check.Backup
	p.say("Backup", "%s: the newest from which the archive leads there", r.Check.Backup)
	p.say("Replay", "%d files of the archive after it, %s as they are stored", r.Check.Files, report.Bytes(r.Check.Bytes))
	return nil
}

// lookTimeout is how long a look into the archive may take: it reads none of the logs.
const lookTimeout = 10 * time.Minute

// withoutBackup removes the plan's lines about a backup: the archive says which one it is.
func withoutBackup(p *planned, named string) (kept []lineOfPlan) {
	for _, line := range p.checks {
		if named == "" && (line.Label == "Backup" || line.Label == "Passed") {
			continue
		}
		kept = append(kept, line)
	}
	return kept
}

// withoutLooking says how to continue if the user may not look.
func withoutLooking(err error) error {
	var own *cli.Error
	if errors.As(err, &own) {
		return err
	}
	return fmt.Errorf("%w\n  to go on without looking into the archive: --check=false; the operator looks before it touches anything", err)
}

// unreachable returns the refusal, with what is in the way and what to do.
func (op *Op) unreachable(r *report.Timeline) error {
	check := r.Check
	text := "refused: " + strings.TrimPrefix(check.Message, "refused: ")
	if g := check.Gap; g != nil {
		text += fmt.Sprintf("\n  the gap: %d transactions", g.Transactions)
		if g.GTIDs != "" {
			text += " (" + g.GTIDs + ")"
		}
		if !g.After.IsZero() {
			text += ", after " + g.After.UTC().Format(time.RFC3339Nano)
			text += fmt.Sprintf("\n  the last moment before it: --at %s", g.After.UTC().Format(time.RFC3339Nano))
		}
		if !g.Before.IsZero() {
			text += "\n  or one that a backup after it leads to: after " + g.Before.UTC().Format(time.RFC3339Nano)
		}
	}
	if from, to := r.Recoverable(); !from.IsZero() {
		text += fmt.Sprintf("\n  what can be reached is from %s to %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339Nano))
	}
	text += fmt.Sprintf("\n  see all of it: kubectl mfg backup timeline %s -n %s", op.From, op.FromNamespace)
	return &cli.Error{Code: cli.ExitRefused, Reason: v1alpha1.Reason(check.Refusal), Err: errors.New(text)}
}
