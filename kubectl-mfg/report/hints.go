// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// hintsOf names the next command for each problem. The first problem to name a command says what it is for.
func hintsOf(cr *v1alpha1.MysqlFailoverGroup, r MysqlFailoverGroupReport) []Hint {
	var hints []Hint
	for _, p := range r.Problems {
		for _, h := range r.hintsFor(cr, p) {
			if !slices.ContainsFunc(hints, func(said Hint) bool { return said.Command == h.Command }) {
				hints = append(hints, h)
			}
		}
	}
	return hints
}

func (r MysqlFailoverGroupReport) hintsFor(cr *v1alpha1.MysqlFailoverGroup, p Problem) []Hint {
	if hints, is := r.backupHints(p); is {
		return hints
	}
	switch {
	case p.Reason == v1alpha1.ReasonKeyringEscrowMissing:
		return escrowHints(r)
	case r.says(v1alpha1.ConditionFailoverBlocked, metav1.ConditionTrue, p.Reason):
		return r.why("see what keeps the failover from happening, and the way out")
	case r.Transition == nil && r.says(v1alpha1.ConditionAvailable, metav1.ConditionFalse, p.Reason):
		return r.why("see why no site takes writes, and what the operator waits for")
	case r.Cache != nil && r.says(v1alpha1.ConditionCacheReady, metav1.ConditionFalse, p.Reason):
		return CacheHints(r.Metadata.Namespace, r.Metadata.Name, r.Cache)
	case p.Site != "":
		return r.siteHints(cr, p)
	}
	switch p.Reason {
	case v1alpha1.ReasonSeveralWritableSites:
		return r.foreignHints()
	case v1alpha1.ReasonNoActiveSite:
		return r.why("see what the first opening of a site waits for")
	case v1alpha1.ReasonOperatorDown, v1alpha1.ReasonOperatorSilent, v1alpha1.ReasonNotObserved, v1alpha1.ReasonStale:
		return r.operatorHints()
	default:
		return nil // what it says needs no command
	}
}

// siteHints returns the hints for what is wrong with one site. While the role moves, other sites that are closed and
// replicate from none are part of it.
func (r MysqlFailoverGroupReport) siteHints(cr *v1alpha1.MysqlFailoverGroup, p Problem) []Hint {
	switch reason := p.Reason; {
	case reason == v1alpha1.ReasonSidecarSilent, reason == v1alpha1.ReasonSiteUnreachable, reason == v1alpha1.ReasonSitePending && !r.cloning() && !r.restoring():
		return []Hint{{"see whether the pod of " + p.Site + " runs, and on which node", r.kubectl("get pods -o wide", p.Site)}}
	case reason == v1alpha1.ReasonSiteDiverged:
		return r.divergedHints(p.Site)
	case r.Transition != nil:
		return nil
	case reason == v1alpha1.ReasonForeignWriter:
		return r.foreignHints()
	case reason == v1alpha1.ReasonActiveSiteReadOnly, reason == v1alpha1.ReasonSiteFenced:
		return append(r.why("see what keeps "+p.Site+" from being opened"), r.sidecarHint(p.Site, "see what the sidecar of "+p.Site+" says of it"))
	case reason == v1alpha1.ReasonSiteDetached && isSpecified(cr, p.Site):
		return []Hint{{"see what stopped the replication of " + p.Site, r.verb("mysql", p.Site) + ` -e 'SHOW REPLICA STATUS\G'`}}
	}
	return nil
}

// isSpecified is false for a site that left the specification: it should no longer replicate.
func isSpecified(cr *v1alpha1.MysqlFailoverGroup, site string) bool {
	return slices.ContainsFunc(cr.Spec.Sites, func(s v1alpha1.Site) bool { return s.Name == site })
}

// foreignHints says which sites must stop, what stops them, and where to look if they go on.
func (r MysqlFailoverGroupReport) foreignHints() []Hint {
	hints := r.why(strings.Join(r.foreign(), " and ") +
		" must stop: keep clients away from there; the operator fences it, and so does the sidecar there; see how far that is")
	for _, site := range r.foreign() {
		hints = append(hints, r.sidecarHint(site, "while "+site+" stays open, see in the log of its sidecar why it is not fenced"))
	}
	return hints
}

// divergedHints: the operator refuses an order for a diverged site that does not confirm the loss, so the hint names the one that does.
func (r MysqlFailoverGroupReport) divergedHints(site string) []Hint {
	return []Hint{
		{"see which rows only " + site + " has changed, as far as they were counted, and save what you need", r.verb("history", "")},
		{"then copy " + site + " again, which discards those transactions for good (it shows the plan and asks first)", r.verb("reclone", site) + " --confirm-data-loss"},
	}
}

// operatorHints: a pod that runs need not lead, and only the leader fails over. Not everyone may see the Leases of all
// namespaces; doctor asks for that one Lease alone, and names the right that is missing even for that.
func (r MysqlFailoverGroupReport) operatorHints() []Hint {
	return []Hint{
		{
			"see whether an operator leads: who holds the lease, and when it was renewed last (if you may list leases of all namespaces)",
			"kubectl get leases -A --field-selector metadata.name=mfg-operator -o custom-columns=HOLDER:.spec.holderIdentity,RENEWED:.spec.renewTime",
		},
		{"see what you may ask the operator, and which right you lack", r.verb("doctor", "")},
	}
}

func (r MysqlFailoverGroupReport) why(message string) []Hint {
	return []Hint{{message, r.verb("explain", "")}}
}

func (r MysqlFailoverGroupReport) sidecarHint(site, message string) Hint {
	return Hint{message, r.kubectl("logs -c "+v1alpha1.ContainerSidecar+" --tail=100", site)}
}

// verb is a command of the plugin for this group, and kubectl one for the pod of a site.
func (r MysqlFailoverGroupReport) verb(verb, site string) string {
	words := []string{"kubectl mfg", verb, r.Metadata.Name}
	if site != "" {
		words = append(words, site)
	}
	return strings.Join(append(words, "-n", r.Metadata.Namespace), " ")
}

func (r MysqlFailoverGroupReport) kubectl(verb, site string) string {
	return fmt.Sprintf("kubectl %s -n %s -l %s", verb, r.Metadata.Namespace, v1alpha1.MySQLPods(r.Metadata.Name, site))
}

// cloning is true while any site receives a copy: a site without one waits for its turn, or will soon begin.
func (r MysqlFailoverGroupReport) cloning() bool {
	return slices.ContainsFunc(r.Sites, func(s Site) bool { return s.Clone != nil || s.State == string(v1alpha1.SiteCloning) })
}

// restoring is true while the group waits for the data of its backup: until then no site has any.
func (r MysqlFailoverGroupReport) restoring() bool { return r.Restore != nil && !r.Restore.Over() }

// escrowHints: each site whose escrow Secret is gone has the only copy of its keyring in the memory of its pod, even one that
// loses it while it is being sealed: its keyring is no longer written.
func escrowHints(r MysqlFailoverGroupReport) []Hint {
	var hints []Hint
	for _, s := range r.Sites {
		if k := s.Keyring; k != nil && k.Phase == string(v1alpha1.KeyringFailed) && (k.Work == "" || k.Stage == string(v1alpha1.KeyringSealing)) {
			hints = append(hints, Hint{
				"do not delete or restart the pod of " + s.Name + ", it has the only copy of its keyring; bring that back into escrow", r.verb("recover-keyring", s.Name),
			})
		}
	}
	if len(hints) == 0 {
		return []Hint{{"see which keyring is missing", r.verb("keyring verify", "")}}
	}
	return hints
}

// says is true if a reason comes from that condition.
func (r MysqlFailoverGroupReport) says(kind string, status metav1.ConditionStatus, reason v1alpha1.Reason) bool {
	return slices.ContainsFunc(r.Conditions, func(c Condition) bool { return c.Type == kind && c.Status == string(status) && c.Reason == reason })
}
