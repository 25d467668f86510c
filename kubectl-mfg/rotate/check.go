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

// checkGroup refuses what the custom resource alone shows to be impossible. Each refusal names the next step.
func (op *Op) checkGroup(g *v1alpha1.MysqlFailoverGroup, sites ...string) error {
	if err := encryptedGroup(g); err != nil {
		return err
	}
	if err := op.noCampaign(g); err != nil {
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
	for _, site := range sites {
		if k := keyrings.SiteStatus(g, site); k.Phase == v1alpha1.KeyringFailed || k.Phase == "" {
			return cli.Refused("refused: the keyring of %s is %s, and only a sealed one is rotated\n  %s", site, keyrings.PhaseWords(k), keyrings.Repair(k, op.Group, op.Namespace))
		}
	}
	return nil
}

// noCampaign refuses while all sites are being rotated: another order would replace that one.
func (op *Op) noCampaign(g *v1alpha1.MysqlFailoverGroup) error {
	value := g.Annotations[v1alpha1.AnnotationRotateKeyring]
	if !v1alpha1.AsksForCampaign(value) {
		return nil
	}
	return cli.Refused("refused: another rotation is under way (%s=%s)\n  to end it, before this one: %s", v1alpha1.AnnotationRotateKeyring, value, op.stops())
}

// encryptedGroup refuses a group that has no keyrings.
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

// choose finds the site that will become active, if the role must move.
func (op *Op) choose(g *v1alpha1.MysqlFailoverGroup, left []string) (to string, err error) {
	if g.Status.ActiveSite == "" || !slices.Contains(left, g.Status.ActiveSite) {
		return "", nil
	}
	for _, s := range g.Spec.Sites {
		if s.Name == g.Status.ActiveSite || s.Role != v1alpha1.PrimaryCandidate || op.To != "" && s.Name != op.To {
			continue
		}
		if f := g.Status.Forecast; to == "" || f != nil && f.Site == s.Name {
			to = s.Name
		}
	}
	switch {
	case to != "":
		// Checked before anything begins: with the replicas rotated and the role stuck, the work would be half done.
		return to, (&failover.Op{Request: op.Request, To: to}).Possible(g)
	case op.To != "":
		return "", cli.Refused("refused: the role cannot move to %s: it has to be another site than the active one, and a primary-candidate; the sites are %s", op.To, request.SiteNames(g))
	}
	return "", cli.Refused("refused: there is no other primary-candidate that the role could move to\n  rotate the others: kubectl mfg rotate %s -n %s --all-replicas", op.Group, op.Namespace)
}

// restless says why the operator would refuse the rotation of a site now; empty if it would not.
func restless(g *v1alpha1.MysqlFailoverGroup, site string) string {
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
