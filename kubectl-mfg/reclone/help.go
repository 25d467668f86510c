// SPDX-License-Identifier: Apache-2.0

package reclone

import "github.com/mysql-mfg/mfg/kubectl-mfg/cli"

// What the command says of itself, and how it is used.
const (
	Help = `Throw a site's data away and copy it again from the active site: for a site that has diverged, or cannot catch up.

The operator refuses where that would destroy the only copy of something: transactions that nobody else has, what a former
active site may have alone, or the only healthy copy beside the active site. The plan says so. Save what is needed, then
add --confirm-data-loss.

` + cli.ExitCodes

	Examples = `  # What does only madrid have?
  kubectl mfg status orders -o jsonpath='{.sites[?(@.name=="madrid")].errantSet}'

  # Copy it again
  kubectl mfg reclone orders madrid

  # It holds transactions that nobody else has, and they may go
  kubectl mfg reclone orders madrid --confirm-data-loss`
)
