// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"

	"github.com/mysql-mfg/mfg/api/wire"
)

// ReportKeyFile returns a function that reads the key that authenticates reports; nil if the pod has none. It reads the file for every
// report: the file is in memory, and is replaced when the Secret is.
func ReportKeyFile(path string) func() ([]byte, error) {
	if path == "" {
		return nil
	}
	return func() ([]byte, error) {
		key, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read key for reports: %w", err)
		}
		if len(key) != wire.ReportKeyBytes {
			return nil, wire.ErrReportKey
		}
		return key, nil
	}
}

// authentic is the answer to a push. A push with a challenge gets only the authenticated report. If the sidecar cannot read its key it
// says so in a plain report, which an operator that knows the key does not count.
func (a *Agent) authentic(challenge string, r wire.Report) any {
	if challenge == "" || a.ReportKey == nil {
		return r // the operator or the pod is of the version before
	}
	key, err := a.ReportKey()
	if err == nil {
		var signed wire.SignedReport
		if signed, err = wire.SignReport(key, challenge, r); err == nil {
			a.changed("report key", "")
			return wire.AuthenticAnswer{Signed: signed}
		}
	}
	if a.changed("report key", "broken") {
		a.Log.Error("the report cannot be authenticated", "error", err)
	}
	r.Message = "the sidecar cannot authenticate its report: " + err.Error()
	return r
}
