// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// nextStep is what the operator says that a person can do about a planned failover that did not come about, in words. One of an older
// version says nothing: then it is the command that explains every rule.
func nextStep(namespace, group string, remedies []wire.Remedy) string {
	if len(remedies) == 0 {
		remedies = []wire.Remedy{{Text: "see every rule", Command: fmt.Sprintf("kubectl mfg explain %s -n %s", group, namespace)}}
	}
	return wire.InWords(remedies)
}

// remediesOf are those of a planned failover as they travel elsewhere.
func remediesOf(p *v1alpha1.PlannedFailoverStatus) (all []wire.Remedy) {
	for _, r := range p.Remedies {
		all = append(all, wire.Remedy(r))
	}
	return all
}

// activeAlready refuses a move to where the role is.
func (op *failoverOp) activeAlready(g *v1alpha1.MysqlFailoverGroup) error {
	return refused("refused: %s is active already\n  see how it is: kubectl mfg status %s -n %s", op.To, g.Name, g.Namespace)
}
