// SPDX-License-Identifier: Apache-2.0

package reclone

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// recloneConfirmed is what the operator must read before it throws away the only copy of something.
const recloneConfirmed = ":confirm"

// confirmFlag is the same for people.
const confirmFlag = "--confirm-data-loss"

// command returns the order as a person types it.
func (op *Op) command() string {
	return fmt.Sprintf("kubectl mfg reclone %s %s -n %s", op.Group, op.Site, op.Namespace)
}

// loss is what the plan says will be lost, by status. The operator checks for itself and has the last word; but a user whom it
// would refuse learns that before the question.
func (op *Op) loss(view request.Outlook) string {
	s, _ := view.Site(op.Site)
	active := cli.OrNoSite(view.Report.ActiveSite)
	lost := ""
	switch {
	case s.ErrantSet != "":
		lost = "transactions that only " + op.Site + " has: " + s.ErrantSet
	case s.State == string(v1alpha1.SiteDiverged), s.Errant > 0:
		lost = "transactions that only " + op.Site + " has; which they are is not known"
	case isUnsettled(view.Group, op.Site):
		lost = "not known: " + op.Site + " was the active site, and what it alone has was not found out yet"
	case onlyOtherCopy(view, op.Site):
		lost = "nothing at once, but " + op.Site + " is the only healthy copy beside " + active + ", which is the only one until it has copied itself"
	default:
		return "nothing that is known: all that " + op.Site + " has, " + active + " has too"
	}
	if !op.ConfirmDataLoss {
		lost += "; the operator will refuse without " + confirmFlag
	}
	return lost
}

// isUnsettled is true for a site whose role went to another before all of its data was seen.
func isUnsettled(g *v1alpha1.MysqlFailoverGroup, site string) bool {
	for _, record := range g.Status.Failovers { // the newest first
		switch {
		case record.To == site:
			return false
		case record.From == site:
			return !record.LossExact
		}
	}
	return false
}

// onlyOtherCopy is true for a healthy replica if there is no other.
func onlyOtherCopy(view request.Outlook, site string) bool {
	mine, others := false, 0
	for _, s := range view.Report.Sites {
		switch {
		case s.Active || !healthyCopy(s):
		case s.Name == site:
			mine = true
		default:
			others++
		}
	}
	return mine && others == 0
}

func healthyCopy(s report.Site) bool {
	return s.Fit() && s.Provisioned && s.Clone == nil && s.Errant == 0
}

// refusal puts the operator's refusal into the words of this command: the operator speaks of the annotation.
func (op *Op) refusal(rep *request.Report) {
	rep.Message = strings.ReplaceAll(rep.Message, "order "+op.Site+recloneConfirmed, "order it with "+confirmFlag)
	if !op.ConfirmDataLoss && v1alpha1.IsConfirmable(string(rep.Reason)) {
		rep.Next = "to go on all the same: " + op.command() + " " + confirmFlag
		return
	}
	rep.Next = "see how it is: kubectl mfg status " + op.Group + " -n " + op.Namespace + "; then: " + op.command()
	if op.ConfirmDataLoss {
		rep.Next += " " + confirmFlag
	}
}

// noSuchSite names the flag to a user who types the operator's word for it.
func (op *Op) noSuchSite(g *v1alpha1.MysqlFailoverGroup) error {
	next := "see them: kubectl mfg status " + op.Group + " -n " + op.Namespace
	if site, confirmed := strings.CutSuffix(op.Site, recloneConfirmed); confirmed {
		if _, known := request.RoleOf(g, site); known {
			meant := *op
			meant.Site = site
			next = "if what only " + site + " has may be lost: " + meant.command() + " " + confirmFlag
		}
	}
	return cli.Refused("refused: %s has no site %q; its sites are %s\n  %s", op.Group, op.Site, request.SiteNames(g), next)
}
