// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/failover"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// rotation is the work of one run.
type rotation struct {
	op       *Op
	campaign Campaign
	// resumed is true if an earlier run began it, noted if the group's note of it is as it should be.
	resumed, noted bool
	// to is the site that becomes active; empty if the role stays.
	to string
	// before are the sites that earlier runs have rotated, first is the one to begin with, active the active site.
	before        []string
	first, active string
	// done are the sites that were rotated by this run, whatever status tells of it.
	done map[string]bool
	// refusals are how often the operator has refused the step at hand.
	refusals int

	env     cli.Environment
	cluster request.Cluster
	rep     *Report
}

// scope are the sites that are wanted, replicas first: the active one is rotated once it is none any more.
func (r *rotation) scope(g *v1alpha1.MysqlFailoverGroup) []string {
	if r.op.Site != "" {
		return []string{r.op.Site}
	}
	var sites []string
	for _, s := range g.Spec.Sites {
		if s.Name != g.Status.ActiveSite {
			sites = append(sites, s.Name)
		}
	}
	if r.op.All && g.Status.ActiveSite != "" {
		sites = append(sites, g.Status.ActiveSite)
	}
	return sites
}

// left are the sites that are still to be rotated, in their order.
func (r *rotation) left(g *v1alpha1.MysqlFailoverGroup) []string {
	return slices.DeleteFunc(r.scope(g), func(site string) bool {
		return r.done[site] || r.op.Site == "" && r.campaign.rotated(g, site)
	})
}

// over is true if nothing is left to be done.
func (r *rotation) over(g *v1alpha1.MysqlFailoverGroup) bool { return len(r.left(g)) == 0 }

// joined is true if the first step was asked for already: then it is only waited for.
func (r *rotation) joined(g *v1alpha1.MysqlFailoverGroup) bool {
	site, is := g.Annotations[v1alpha1.AnnotationRotateKeyring]
	return is && slices.Contains(r.left(g), site)
}

// check refuses what the custom resource alone shows to be impossible. Each refusal names the next step.
func (r *rotation) check(g *v1alpha1.MysqlFailoverGroup) error {
	op := r.op
	if err := encryptedGroup(g); err != nil {
		return err
	}
	if op.Site != "" {
		if err := op.checkSite(g); err != nil {
			return err
		}
	}
	if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused) {
		return cli.Refused("refused: %s is %s, and a rotation replaces pods\n  to go on: kubectl mfg resume %s -n %s", op.Group, request.PausedNow(g), op.Group, op.Namespace)
	}
	for _, site := range r.left(g) {
		if k := keyrings.SiteStatus(g, site); k.Phase == v1alpha1.KeyringFailed || k.Phase == "" {
			return cli.Refused("refused: the keyring of %s is %s, and only a sealed one is rotated\n  %s", site, keyrings.PhaseWords(k), keyrings.Repair(k, op.Group, op.Namespace))
		}
	}
	if r.resumed || r.joined(g) {
		return nil // what is under way is most likely the step that an earlier run asked for: it is waited for
	}
	return request.NotMoving(g)
}

// encryptedGroup refuses for a group that has no keyrings.
func encryptedGroup(g *v1alpha1.MysqlFailoverGroup) error {
	switch e := g.Spec.EncryptionAtRest; {
	case e == nil || !e.Enabled:
		return cli.Refused("refused: %s is not encrypted (spec.encryptionAtRest.enabled): it has no keyrings\n  how to encrypt it: docs/encryption.md", g.Name)
	case g.Status.EncryptionAtRest == nil:
		c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEncryptionReady)
		why := "the operator has not looked at it yet"
		if c != nil && c.Message != "" {
			why = c.Message
		}
		return cli.Refused("refused: %s has no keyrings yet: %s\n  see how it is: kubectl mfg status %s -n %s", g.Name, why, g.Name, g.Namespace)
	}
	return nil
}

func (op *Op) checkSite(g *v1alpha1.MysqlFailoverGroup) error {
	if _, known := request.RoleOf(g, op.Site); !known {
		return cli.Refused("refused: %s has no site %q; its sites are %s", op.Group, op.Site, request.SiteNames(g))
	}
	if g.Status.ActiveSite == op.Site {
		return cli.Refused("refused: %s is the active site, and only replicas are rotated\n  all sites, the role moved in between: kubectl mfg rotate %s -n %s --all\n  only move the role: kubectl mfg failover %s -n %s --to SITE",
			op.Site, op.Group, op.Namespace, op.Group, op.Namespace)
	}
	if k := keyrings.SiteStatus(g, op.Site); k.Phase != v1alpha1.KeyringSealed && g.Annotations[v1alpha1.AnnotationRotateKeyring] != op.Site {
		return cli.Refused("refused: the keyring of %s is %s, and only a sealed one is rotated\n  %s", op.Site, keyrings.PhaseWords(k), keyrings.Repair(k, op.Group, op.Namespace))
	}
	return nil
}

// choose finds the site that becomes active, where the role has to move.
func (r *rotation) choose(g *v1alpha1.MysqlFailoverGroup) error {
	op := r.op
	r.to = ""
	if !slices.Contains(r.left(g), g.Status.ActiveSite) || g.Status.ActiveSite == "" {
		return nil
	}
	for _, s := range g.Spec.Sites {
		if s.Name == g.Status.ActiveSite || s.Role != v1alpha1.PrimaryCandidate || op.To != "" && s.Name != op.To {
			continue
		}
		if f := g.Status.Forecast; r.to == "" || f != nil && f.Site == s.Name {
			r.to = s.Name
		}
	}
	switch {
	case r.to != "":
		// Looked at before anything is begun: with the replicas rotated and the role stuck, the work would be half done.
		return (&failover.Op{Request: op.Request, To: r.to}).Possible(g)
	case op.To != "":
		return cli.Refused("refused: the role cannot move to %s: it has to be another site than the active one, and a primary-candidate; the sites are %s", op.To, request.SiteNames(g))
	}
	return cli.Refused("refused: there is no other primary-candidate that the role could move to\n  rotate the others: kubectl mfg rotate %s -n %s --all-replicas", op.Group, op.Namespace)
}

// restless says what keeps the next step from being asked for; empty if nothing does. The operator would refuse it.
func (r *rotation) restless(g *v1alpha1.MysqlFailoverGroup, site string) string {
	if busy := request.Pending(g); busy != "" {
		return busy
	}
	if t := g.Status.Transition; t != nil {
		return fmt.Sprintf("the role is moving to %s (%s)", t.To, t.Step)
	}
	for _, s := range g.Spec.Sites {
		k := keyrings.SiteStatus(g, s.Name)
		if k.Phase != v1alpha1.KeyringSealed && (k.Phase != v1alpha1.KeyringFailed || s.Name == site) {
			return fmt.Sprintf("the keyring of %s is %s", s.Name, keyrings.PhaseWords(k))
		}
	}
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionProgressing); c != nil && c.Status == metav1.ConditionTrue {
		return "the group is being changed: " + strings.TrimSpace(c.Reason+" "+c.Message)
	}
	for _, s := range g.Status.Sites {
		if s.Name == site && s.State != v1alpha1.SiteReplica {
			return fmt.Sprintf("%s is %s", site, strings.ToLower(string(s.State)))
		}
	}
	return ""
}
