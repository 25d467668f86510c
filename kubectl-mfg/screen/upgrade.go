// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Upgrade draws how far groups are with the pods of the operator's version.
func Upgrade(r report.UpgradeReport, o Options) string {
	var b strings.Builder
	words := "no pod waits for a turn"
	if r.Behind > 0 {
		words = fmt.Sprintf("pods of an older version of the operator in %d of %d groups", r.Behind, len(r.Groups))
	}
	if n := r.NotSeen; n > 0 && r.Behind > 0 {
		words += fmt.Sprintf("; it has not looked at %d yet", n)
	} else if n > 0 {
		words = fmt.Sprintf("not known: this version of the operator has not looked at %d of %d groups yet", n, len(r.Groups))
	}
	b.WriteString(o.paragraph(text{"Upgrade", bold}, words))
	turn := "no group has it"
	if r.Turn != "" {
		turn = r.Turn
		if r.Since != nil {
			turn += ", for " + o.ago(*r.Since)
		}
	}
	b.WriteString(o.paragraph(text{s: "Turn"}, turn))
	if r.Stopped != "" {
		b.WriteString(o.paragraph(text{"Stopped", bad}, r.Stopped+"; no other group begins. Mend that group, or pin it ("+pinning(r.Turn)+"), then: kubectl mfg upgrade resume"+r.Flags))
	}
	if r.Paused != "" {
		b.WriteString(o.paragraph(text{"Paused", warn}, "since "+r.Paused+": no further turn begins; to go on: kubectl mfg upgrade resume"+r.Flags))
	}
	if r.Paced != "" {
		b.WriteString(o.paragraph(text{s: "Paced"}, r.Paced))
	}
	if r.Note != "" {
		b.WriteString(o.paragraph(text{"Note", warn}, r.Note))
	}
	if len(r.Groups) == 0 {
		return b.String()
	}
	namespace, name, state, sites, why := column{title: "NAMESPACE"}, column{title: "NAME"}, column{title: "STATE"}, column{title: "BEHIND"}, column{title: "WHY"}
	for _, g := range r.Groups {
		namespace.cells = append(namespace.cells, text{s: g.Namespace})
		name.cells = append(name.cells, text{s: g.Name})
		state.cells = append(state.cells, text{string(g.State), upgradeColour(g.State)})
		sites.cells = append(sites.cells, text{s: orNone(strings.Join(g.Behind, ","))})
		why.cells = append(why.cells, text{s: orNone(g.Why)})
	}
	b.WriteString("\n" + o.table([]column{namespace, name, state, sites, why}))
	return b.String()
}

// pinning is the command that keeps the pods of the group which has the turn as they are.
func pinning(turn string) string {
	namespace, group, is := strings.Cut(turn, "/")
	if !is {
		return "kubectl mfg upgrade pause GROUP"
	}
	return "kubectl mfg upgrade pause " + group + " -n " + namespace
}

func upgradeColour(s report.UpgradeState) Colour {
	switch s {
	case report.UpgradeUpToDate:
		return good
	case report.UpgradeHeld, report.UpgradePinned:
		return warn
	default:
		return plain
	}
}
