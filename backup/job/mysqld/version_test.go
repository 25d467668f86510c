// SPDX-License-Identifier: Apache-2.0

package mysqld

import (
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

func TestVersions(t *testing.T) {
	for text, want := range map[string]string{"9.7.4-2": "9.7", "26.10": "26.10", "9.8-rc": "9.8", "x": "0.0", "9.": "9.0", "": "0.0"} {
		if got := Series(text); got != want {
			t.Errorf("%q: %s instead of %s", text, got, want)
		}
	}
	if CheckVersion("9.7.4", "9.7.1") != nil || CheckVersion("8.4.6", "9.7.4") != nil || terms.ReasonOf(CheckVersion("9.8.0", "9.7.4")) != terms.VersionTooOld {
		t.Error("versions")
	}
}
