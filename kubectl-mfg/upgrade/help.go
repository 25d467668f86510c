// SPDX-License-Identifier: Apache-2.0

package upgrade

// The commands' help, and their usage.
const (
	Help = `Show which groups wait for the pods of a new version of the operator, and hold them back. A new operator takes over the decisions
about failovers at once, but replaces the pods of one group at a time. Each group must be healthy for a while before the next begins.
What you change in a group yourself does not wait for its turn.`
	Examples = `  # Whose turn is it, and what do the others wait for?
  kubectl mfg upgrade status

  # Let no further group begin; the one that has the turn continues
  kubectl mfg upgrade pause

  # Keep one group as it is, and say why
  kubectl mfg upgrade pause orders --why sale

  # Continue, also after an upgrade that stopped
  kubectl mfg upgrade resume`

	StatusHelp = `Show which group has the turn, which groups wait and why, and when a closed window opens next. Without GROUP, show all groups of all
namespaces: they share one turn.

  UpToDate   no pod waits for a turn
  UnderWay   it has the turn: its pods are replaced, one site at a time
  Settling   it has the turn and all its new pods, and must stay healthy before the next group's turn
  Waiting    others come first, or all are paused or stopped
  Held       the group itself is not ready: it is not healthy, or its window is closed or cannot be read
  Pinned     a person keeps it as it is
  NotSeen    the operator that leads has not looked at it yet
  Elsewhere  another release of the operator operates it, and gives it a turn of its own

Exit code 3 if the upgrade stopped: it then needs a person to continue.`
	StatusExamples = `  # All groups
  kubectl mfg upgrade status

  # One group
  kubectl mfg upgrade status orders -n shop

  # What is still to come?
  kubectl mfg upgrade status -o jsonpath='{range .groups[?(@.state!="UpToDate")]}{.namespace}/{.name}: {.why}{"\n"}{end}'`

	PauseHelp = `Let no further group get the pods of a new version of the operator; the one that has the turn continues. With GROUP, keep only that
group's pods as they are (a pin), also when its turn comes. Both last until you resume: a pin is for weeks, not for years.

Failovers, fences and your own changes to a group still work. To stop the operator from acting at all, use kubectl mfg pause.`
	PauseExamples = `  # All groups, for example because the first ones look wrong
  kubectl mfg upgrade pause

  # One group
  kubectl mfg upgrade pause orders -n shop --why sale

  # What would be changed?
  kubectl mfg upgrade pause --dry-run`

	ResumeHelp = `Let groups have their turn again: end a pause, or continue after a group that was unhealthy with its new pods stopped the others. With
GROUP, remove the pin of that group.`
	ResumeExamples = `  # Why did it stop?
  kubectl mfg upgrade status

  # Continue with all groups
  kubectl mfg upgrade resume

  # Let one group have its turn again
  kubectl mfg upgrade resume orders -n shop`
)
