// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"cmp"
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Refusal says why something is not done, and what a person can do about it. With an empty Reason nothing stands against it.
type Refusal struct {
	Reason   Reason
	Message  string
	Remedies []Remedy
}

// pods is a command of kubectl about the pods of a site.
func pods(g Group, verb, site string) string {
	return fmt.Sprintf("kubectl %s -n %s -l %s=%s,%s=%s", verb, cmp.Or(g.Namespace, "NAMESPACE"), v1alpha1.LabelGroup, cmp.Or(g.Name, "GROUP"), v1alpha1.LabelSite, site)
}

// sidecarLog shows what the sidecar of a site says.
func sidecarLog(g Group, site string) string {
	return pods(g, "logs -c "+v1alpha1.ContainerSidecar+" --tail=100", site)
}

// remedy is words and the command that they are about.
func remedy(text, command string) Remedy { return Remedy{Text: text, Command: command} }

// advice is a remedy without a command.
func advice(format string, args ...any) Remedy { return Remedy{Text: fmt.Sprintf(format, args...)} }

// letAct is the command that ends mode Observe.
func letAct(g Group) string {
	return fmt.Sprintf(`kubectl patch mfg %s -n %s --type merge -p '{"spec":{"failover":{"mode":"Manual"}}}'`, cmp.Or(g.Name, "GROUP"), cmp.Or(g.Namespace, "NAMESPACE"))
}

// moveTo is the command for a planned failover.
func moveTo(g Group, site string) string { return g.Command("failover", "", "--to "+site) }

// forceTo is the command for one that accepts loss.
func forceTo(g Group, site string) string {
	return g.Command("failover", "", "--to "+site+" --accept-data-loss")
}

// everyRule leads to what explains the most.
func everyRule(g Group) []Remedy {
	return []Remedy{remedy("see every rule", g.Command("explain", "", ""))}
}

// theSite leads to what is wrong with the pod of a site.
func theSite(g Group, site string) []Remedy {
	return []Remedy{remedy("see what is wrong with "+site, pods(g, "describe pods", site))}
}

// waitAndAsk is a look at what goes on, and to ask again then.
func waitAndAsk(g Group, text, to string) []Remedy {
	return []Remedy{remedy(text, g.Command("status", "", "-w")), remedy("then", moveTo(g, to))}
}

// notEscrowedRemedy: the sidecar hands a keyring over by itself.
var notEscrowedRemedy = advice("wait: its sidecar hands the keyring over by itself; status.sites[].keyring says why if it does not")

// restoreEscrow is for a site whose pod has the only copy of its keyring: what looks like mending it may destroy it.
func restoreEscrow(g Group, site string) Remedy {
	return remedy("bring its keyring back, and do not touch its pod until then", g.Command("recover-keyring", site, ""))
}

// recoverAndMove does that, and asks for the planned failover again then.
func recoverAndMove(g Group, site string) []Remedy {
	return []Remedy{restoreEscrow(g, site), remedy("then", moveTo(g, site))}
}

// outlivedRemedy is for a site that was seen to accept writes after its lease must have ended.
func outlivedRemedy(site string) Remedy {
	return advice("bring the sidecar of %s back, or taint its node %s once it is down", site, v1alpha1.OutOfServiceTaint)
}

// bringBackOrTaint is for sites that do not answer and could vouch.
func bringBackOrTaint(sites string) Remedy {
	return advice("bring %s back, or taint its node %s if it is down", sites, v1alpha1.OutOfServiceTaint)
}
