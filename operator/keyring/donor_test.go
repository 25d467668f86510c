// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

func TestDonorWaits(t *testing.T) {
	spoke := v1alpha1.SiteKeyringStatus{Coverage: v1alpha1.CoverageStatus{KeyringComponent: component, SystemTablespaceEncrypted: true}}
	says := func(c *wire.CoverageReport) *wire.KeyringReport {
		return &wire.KeyringReport{Component: component, Coverage: c}
	}
	for name, tt := range map[string]struct {
		reason string
		donor  Donor
		waits  string
	}{
		"covered":              {"the encryption is behind a checkpoint", Donor{Covered: true, Status: spoke, Report: says(&wire.CoverageReport{SystemTablespace: true})}, ""},
		"not covered yet":      {"the statement may run any moment", Donor{Covered: true, Status: spoke, Report: says(&wire.CoverageReport{})}, "not encrypted yet"},
		"has not said it":      {"MySQL was not asked yet", Donor{Covered: true, Report: says(nil)}, "does not say"},
		"silent":               {"what it said last may be of another day", Donor{Covered: true, Status: spoke}, "does not say"},
		"without a keyring":    {"an adoption whose active site comes last: nothing is encrypted there, and waiting would never end", Donor{Covered: true}, ""},
		"not to be covered":    {"coverage.systemTablespace is false", Donor{Status: spoke, Report: says(&wire.CoverageReport{})}, ""},
		"not to be, is silent": {"", Donor{Status: spoke}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DonorWaits(tt.donor); (got == "") != (tt.waits == "") || !strings.Contains(got, tt.waits) {
				t.Errorf("%s: %q", tt.reason, got)
			}
		})
	}
}
