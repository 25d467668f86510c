// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"cmp"
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
)

// pods is a command of kubectl about the pods of a site's MySQL.
func pods(g facts.Group, verb, site string) string {
	return fmt.Sprintf("kubectl %s -n %s -l %s", verb, cmp.Or(g.Namespace, "NAMESPACE"), v1alpha1.MySQLPods(cmp.Or(g.Name, "GROUP"), site))
}

// SidecarLog shows what the sidecar of a site says.
func SidecarLog(g facts.Group, site string) string {
	return pods(g, "logs -c "+v1alpha1.ContainerSidecar+" --tail=100", site)
}

// New is words and the command that they are about.
func New(text, command string) facts.Remedy { return facts.Remedy{Text: text, Command: command} }

// Advice is a remedy without a command.
func Advice(format string, args ...any) facts.Remedy {
	return facts.Remedy{Text: fmt.Sprintf(format, args...)}
}

// LetAct is the command that ends mode Observe.
func LetAct(g facts.Group) string { return setMode(g, v1alpha1.FailoverManual) }

// LetFailOver is the command by which the group fails over without a person.
func LetFailOver(g facts.Group) string { return setMode(g, v1alpha1.FailoverAuto) }

func setMode(g facts.Group, mode v1alpha1.FailoverMode) string {
	return fmt.Sprintf(`kubectl patch mfg %s -n %s --type merge -p '{"spec":{"failover":{"mode":"%s"}}}'`, cmp.Or(g.Name, "GROUP"), cmp.Or(g.Namespace, "NAMESPACE"), mode)
}

// MoveTo is the command for a planned failover.
func MoveTo(g facts.Group, site string) string { return g.Command("failover", "", "--to "+site) }

// ForceTo is the command for one that accepts loss.
func ForceTo(g facts.Group, site string) string {
	return g.Command("failover", "", "--to "+site+" --accept-data-loss")
}

// EndFence is the command by which a person lets a site take the role again.
func EndFence(g facts.Group, site string) string { return g.Command("fence off", site, "") }

// FenceOff is what to do about a site that a person keeps fenced.
func FenceOff(g facts.Group, site string) []facts.Remedy {
	return []facts.Remedy{New("let "+site+" take the role again", EndFence(g, site))}
}

// CloneAgain is what to do about a site whose rows cannot be trusted.
func CloneAgain(g facts.Group, site string) []facts.Remedy {
	return []facts.Remedy{New("copy the data of the active site to "+site+" again", g.Command("reclone", site, ""))}
}

// EveryRule leads to what explains the most.
func EveryRule(g facts.Group) []facts.Remedy {
	return []facts.Remedy{New("see every rule", g.Command("explain", "", ""))}
}

// TheSite leads to what is wrong with the pod of a site.
func TheSite(g facts.Group, site string) []facts.Remedy {
	return []facts.Remedy{New("see what is wrong with "+site, pods(g, "describe pods", site))}
}

// WaitAndAsk is a look at what goes on, and to ask again then.
func WaitAndAsk(g facts.Group, text, to string) []facts.Remedy {
	return []facts.Remedy{New(text, g.Command("status", "", "-w")), New("then", MoveTo(g, to))}
}

// WaitForWork is for a move to a site while long work is done to its data, or with that of the active site.
func WaitForWork(g facts.Group, site string) []facts.Remedy {
	return WaitAndAsk(g, "see how far the work on its data is", site)
}

// NewVolume gives a site whose volume claim is being deleted another volume.
func NewVolume(g facts.Group, site string) []facts.Remedy {
	return append([]facts.Remedy{New("give "+site+" a new volume, and the operator clones the data to it", pods(g, "delete pods", site))},
		WaitAndAsk(g, "watch it being cloned", site)...)
}

// CatchUp is what to do about a replica that is too far behind for a planned failover.
func CatchUp(g facts.Group, to string) []facts.Remedy {
	return append([]facts.Remedy{
		New("see what it applies: a statement that runs for long is what the others wait for", g.Command("mysql", to, "-e 'SHOW PROCESSLIST'")),
		Advice("wait until that is done, and make no DDL on a large table right before a move; for a longer wait set spec.failover.plannedLagTimeout"),
	}, WaitAndAsk(g, "watch it catch up", to)...)
}

// EndOrAwaitChange is what to do about a transaction that is too large to be ended.
func EndOrAwaitChange(g facts.Group, site string) []facts.Remedy {
	return []facts.Remedy{
		New("see whose it is", g.Command("mysql", site, "-e 'SELECT trx_mysql_thread_id, trx_started, trx_rows_modified, trx_query FROM information_schema.innodb_trx ORDER BY trx_rows_modified DESC LIMIT 3'")),
		Advice("wait for its COMMIT, or end it with KILL (the rollback takes about as long as the change did); split large changes into batches"),
	}
}

// LongSet is for an active site whose set of transactions is longer than a sidecar can report: gaps and many servers or tags make it long.
func LongSet(g facts.Group, site string) []facts.Remedy {
	return []facts.Remedy{
		New("see which gaps, servers and tags make it long", g.Command("mysql", site, "-e 'SELECT @@GLOBAL.gtid_executed'")),
		Advice("close the gaps: commit an empty transaction for each GTID that is missing (SET gtid_next; BEGIN; COMMIT) on %s; if too many servers or tags are in it, "+
			"restore a logical backup into a new group", site),
	}
}

// NotEscrowed is what to do about a keyring that is not in escrow: its sidecar hands it over.
var NotEscrowed = Advice("wait: its sidecar hands the keyring over; if it does not, status.encryptionAtRest.sites[].message says why")

// RestoreEscrow is for a site whose pod has the only copy of its keyring: what looks like mending it may destroy it.
func RestoreEscrow(g facts.Group, site string) facts.Remedy {
	return New("bring its keyring back, and do not touch its pod until then", g.Command("recover-keyring", site, ""))
}

// RecoverAndMove does that, and asks for the planned failover again then.
func RecoverAndMove(g facts.Group, site string) []facts.Remedy {
	return []facts.Remedy{RestoreEscrow(g, site), New("then", MoveTo(g, site))}
}

// Outlived is for a site that was seen to accept writes after its lease must have ended.
func Outlived(site string) facts.Remedy {
	return Advice("bring the sidecar of %s back, or, once its node is off: kubectl taint node NODE %s=nodeshutdown:NoExecute", site, v1alpha1.OutOfServiceTaint)
}

// BringBackOrTaint is for sites that do not answer and could vouch.
func BringBackOrTaint(sites string) facts.Remedy {
	return Advice("bring %s back, or, if its node is off: kubectl taint node NODE %s=nodeshutdown:NoExecute", sites, v1alpha1.OutOfServiceTaint)
}

// WaitForMore is for what may be over at the next poll.
var WaitForMore = Advice("wait: one lost answer is no outage")
