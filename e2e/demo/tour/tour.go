// SPDX-License-Identifier: Apache-2.0

// Package tour has the commands that a newcomer types after the demo. The demo prints them, and
// TestBackupTour runs them in the lab, but for the reclone after a failover that lost something.
package tour

import "fmt"

// Step is a command, and what it is for.
type Step struct{ Command, What string }

// Restored is the group that the tour makes from a backup of the group.
func Restored(group string) string { return group + "-2" }

// Steps go from a written row over a failover to a backup and its restore. The former active site first gives up what it alone holds, if
// the failover of the demo lost transactions: it is kept fenced until then.
func Steps(namespace, group, active, former string, lost int64) []Step {
	of := group + " -n " + namespace
	steps := []Step{
		{"kubectl mfg status " + of, "every site, its lag, its fence and the last failover"},
		{"kubectl mfg mysql " + of + " --account app -e 'CREATE TABLE t (id SERIAL); INSERT t VALUES (1); TABLE t'", "write a row on " + active},
	}
	if lost > 0 {
		steps = append(steps, Step{
			fmt.Sprintf("kubectl mfg reclone %s %s -n %s --confirm-data-loss --yes", group, former, namespace),
			"give up what " + former + " alone holds, and copy it again",
		})
	}
	return append(
		steps,
		Step{"kubectl mfg failover " + of + " --to " + former + " --yes", "move the role back, without loss"},
		Step{"kubectl mfg backup create " + of, "back up to an S3 server in the lab, encrypted"},
		Step{fmt.Sprintf("kubectl mfg restore %s --from %s -n %s --apply", Restored(group), group, namespace), "make a new group from that backup"},
		Step{fmt.Sprintf("kubectl mfg mysql %s -n %s --account app -e 'TABLE t'", Restored(group), namespace), "the row is there"},
	)
}
