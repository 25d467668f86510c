// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"fmt"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Failed returns the report of a failed run.
func (op *Op) Failed(f cli.Failure) (any, cli.Output) {
	rep := &Report{Report: *op.FailedReport(f), Steps: []rotationStep{}, Left: op.wanted}
	rep.Kind, rep.Site = Kind, op.Site
	return rep, op.Output
}

// OutcomeUnfinished is the outcome of a run that left some sites.
const OutcomeUnfinished = "Unfinished"

// Kind is the kind of rotationReport.
const Kind = "MfgRotationReport"

// Report is the answer of rotate in machine form.
type Report struct {
	request.Report `json:",inline"`
	// BeganAt is since when keys count as new; empty for a single site.
	BeganAt string `json:"beganAt,omitempty"`
	// Before are the sites that already had their new keys when this run began to watch, Steps is what was done since.
	Before []string       `json:"before,omitempty"`
	Steps  []rotationStep `json:"steps"`
	// Left are the sites that must still be rotated; null if the group could not be read.
	Left []string `json:"left"`
}

// rotationStep is one thing that was done, or tried.
type rotationStep struct {
	Action           string `json:"action"`
	Site             string `json:"site"`
	From             string `json:"from,omitempty"`
	Outcome          string `json:"outcome"`
	Message          string `json:"message,omitempty"`
	FromVersion      int64  `json:"fromVersion,omitempty"`
	ToVersion        int64  `json:"toVersion,omitempty"`
	TookMillis       int64  `json:"tookMillis"`
	WritePauseMillis *int64 `json:"writePauseMillis,omitempty"`
	LostTransactions *int64 `json:"lostTransactions,omitempty"`
}

func (op *Op) rotationReport(plan []screen.Line, change map[string]string) *Report {
	rep := &Report{Report: *op.Report("rotate", plan, change), Steps: []rotationStep{}, Left: []string{}}
	rep.Kind, rep.Site = Kind, op.Site
	return rep
}

// dryRun finishes a dry run.
func (op *Op) dryRun(env cli.Environment, rep *Report) error {
	if op.Output.Printer == nil {
		return op.DryRunDone(env, &rep.Report)
	}
	rep.DryRun, rep.Outcome, rep.Message = op.DryRun, cli.OutcomePlanned, "nothing was sent"
	if op.DryRun == request.DryRunServer {
		rep.Message = "the API server would take it; nothing was changed"
	}
	return op.Output.Print(env.Out, rep)
}

func (op *Op) finishRotation(env cli.Environment, rep *Report) (int, error) {
	if op.Output.Printer != nil {
		return cli.ExitHealthy, op.Output.Print(env.Out, rep)
	}
	fmt.Fprintln(env.Out, rep.Message)
	return cli.ExitHealthy, nil
}
