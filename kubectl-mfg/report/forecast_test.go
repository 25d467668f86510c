// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestForecastWords: who would take over is said once, whatever the operator's words are.
func TestForecastWords(t *testing.T) {
	for want, f := range map[string]Forecast{
		"":                                     {},
		"rome would take over":                 {Site: "rome"},
		"rome would take over (OnlyCandidate)": {Site: "rome", Message: "rome would take over (OnlyCandidate)"},
		"rome would take over, but: paused until noon":               {Site: "rome", BlockedBy: v1alpha1.ReasonPaused, Message: "paused until noon"},
		"rome would take over once paris is proven fenced":           {Site: "rome", BlockedBy: v1alpha1.ReasonSiteMayStillVouch, Message: "rome would take over once paris is proven fenced"},
		"no site would take over: no site is fit (rome: is dr-only)": {BlockedBy: v1alpha1.ReasonNoFitCandidate, Message: "no site is fit (rome: is dr-only)"},
	} {
		if got := f.Words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
