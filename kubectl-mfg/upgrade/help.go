// SPDX-License-Identifier: Apache-2.0

package upgrade

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the commands say of themselves, and how they are used.
const (
	Help = `Show which groups wait for the pods of a new version of the operator, and hold them up. A new operator decides at once about
failovers; its pods reach one group at a time, each healthy for a while before the next. What a person changes in a group waits
for no turn.

` + cli.ExitCodes
	Examples = `  # Whose turn is it, and what do the others wait for?
  kubectl mfg upgrade status

  # Let no further group begin; the one that has the turn goes on
  kubectl mfg upgrade pause

  # Keep one group as it is, and say why
  kubectl mfg upgrade pause orders --why sale

  # Go on, also after it stopped
  kubectl mfg upgrade resume`

	StatusHelp = `Show which group has the turn, and of each group whether it waits, why, and when a closed window opens next. Without GROUP, all
groups of all namespaces: the turn is one for all of them.

  UpToDate  no pod waits for a turn
  UnderWay  it has the turn: its pods are replaced, one site at a time
  Settling  it has the turn and all its new pods, and stays healthy for the pause before the next group's turn
  Waiting   others come first, or all are paused or stopped
  Held      something about the group is in the way: it is not healthy, or its window is closed or cannot be read
  Pinned    a person keeps it as it is
  NotSeen   the operator that leads has not looked at it yet

Exit code 3 if it stopped: nothing goes on without a person then.

` + cli.ExitCodes
	StatusExamples = `  # All groups
  kubectl mfg upgrade status

  # One group
  kubectl mfg upgrade status orders -n shop

  # What is still to come?
  kubectl mfg upgrade status -o jsonpath='{range .groups[?(@.state!="UpToDate")]}{.namespace}/{.name}: {.why}{"\n"}{end}'`

	PauseHelp = `Let no further group be given the pods of another version of the operator; the one that has the turn goes on. With GROUP, keep
only that group's pods as they are (a pin), also when its turn comes. Both last until somebody resumes: a pin is for weeks, not for years.

Failovers, fences and what a person changes in a group go on as ever. kubectl mfg pause is the one that keeps the operator from
acting at all.

` + cli.ExitCodes
	PauseExamples = `  # All groups, for example because the first ones do not look right
  kubectl mfg upgrade pause

  # One group
  kubectl mfg upgrade pause orders -n shop --why sale

  # What would be changed?
  kubectl mfg upgrade pause --dry-run`

	ResumeHelp = `Let groups have their turn again: end a pause, or go on after a group that was not healthy with its new pods stopped the others. With
GROUP, take the pin off that group.

` + cli.ExitCodes
	ResumeExamples = `  # Why did it stop?
  kubectl mfg upgrade status

  # Go on with all
  kubectl mfg upgrade resume

  # Let one group have its turn again
  kubectl mfg upgrade resume orders -n shop`
)
