// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	_ "embed"
	"fmt"
	"os/exec"
)

// hugePages is a shell script that runs its arguments while all programs may have huge pages. It is part of this program because
// the lab also compiles older checkouts, which do not have it.
//
//go:embed huge-pages.sh
var hugePages string

// restoreHugePages puts back the setting that a killed script left behind, unless another one still needs it. It asks for no
// context: it takes milliseconds, and comes after an end.
func restoreHugePages() error {
	//nolint:noctx // see above
	if out, err := exec.Command("/bin/sh", "-c", hugePages, "huge-pages", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("put back the setting of huge pages: %w: %s", err, out)
	}
	return nil
}
