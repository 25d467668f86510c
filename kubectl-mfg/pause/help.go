// SPDX-License-Identifier: Apache-2.0

package pause

// The commands' help, and their usage.
const (
	Help = `Stop the operator from changing roles, replacing pods and cloning sites for a while. A pause always has an end, so it cannot
be forgotten. During a pause the operator does NOT replace a lost active site. Fences still work, and an active site that
restarts is opened again. An order with --accept-data-loss is still carried out. A planned failover that has not begun is
refused, and a rotation or an update stops before it replaces the next pod.

The command also works while no operator runs, and while another request is pending.`

	Examples = `  # While you work on the network
  kubectl mfg pause orders --for 30m

  # Done sooner
  kubectl mfg resume orders`

	ResumeHelp = `End a pause: the operator acts again, at once. If a failover is due and only the pause holds it up, it happens now.
kubectl mfg explain says so beforehand.`

	ResumeExamples = `  # What would happen?
  kubectl mfg explain orders

  # Go on
  kubectl mfg resume orders`
)
