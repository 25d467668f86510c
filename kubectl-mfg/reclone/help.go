// SPDX-License-Identifier: Apache-2.0

package reclone

// The command's help, and its usage.
const (
	Help = `Delete a site's data and copy it again from the active site: for a site that has diverged, or cannot catch up.

The operator refuses if that would destroy the only copy of something: transactions that no other site has, what a former
active site may hold alone, or the only healthy copy beside the active site. The plan says so. Save what you need, then
add --confirm-data-loss.`

	Examples = `  # Which transactions does only madrid have?
  kubectl mfg status orders -o jsonpath='{.sites[?(@.name=="madrid")].errantSet}'

  # Copy it again
  kubectl mfg reclone orders madrid

  # It holds transactions that no other site has, and you can do without them
  kubectl mfg reclone orders madrid --confirm-data-loss`
)
