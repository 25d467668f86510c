// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Failed returns the report of the request, as far as it was made.
func (r *Request) Failed(f cli.Failure) (any, cli.Output) { return r.FailedReport(f), r.Output }

// FailedReport returns the report of a failed request, as far as it was made.
func (r *Request) FailedReport(f cli.Failure) *Report {
	rep := r.rep
	if rep == nil {
		rep = r.Report(r.Verb, []screen.Line{}, map[string]string{})
	}
	if r.DryRun != DryRunNone {
		rep.DryRun = r.DryRun
	}
	rep.Outcome, rep.Reason, rep.Message, rep.Next = f.Outcome, f.Reason, f.Message, f.Next
	return rep
}
