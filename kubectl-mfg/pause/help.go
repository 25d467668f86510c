// SPDX-License-Identifier: Apache-2.0

package pause

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the commands say of themselves, and how they are used.
const (
	Help = `Keep the operator from changing roles, rolling pods and cloning sites by itself, for a time. The pause ends by itself:
nobody can forget it. While it lasts a lost active site is NOT replaced; fences still work, and an active site that
restarts is opened again. What a person has ordered with --accept-data-loss is carried out all the same; a planned failover
that has not begun is refused, and a rotation or an update stops before the next pod is replaced.

It is taken also while no operator runs, for one that comes back before it ends, and while something else is asked for.

` + cli.ExitCodes

	Examples = `  # While you work on the network
  kubectl mfg pause orders --for 30m

  # Done sooner
  kubectl mfg resume orders`

	ResumeHelp = `End a pause: the operator acts by itself again, at once. If a failover was due and only the pause was in its way, it
happens now; kubectl mfg explain says so beforehand.

` + cli.ExitCodes

	ResumeExamples = `  # What would happen?
  kubectl mfg explain orders

  # Go on
  kubectl mfg resume orders`
)
