// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Failed is the report of what was asked for, as far as it was made.
func (r *Request) Failed(f cli.Failure) (any, cli.Output) { return r.FailedReport(f), r.Output }

// FailedReport is the report of a request that failed, as far as it was made.
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
