// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// outcomeTimedOut is that of a wait that ended: what was asked for goes on.
const outcomeTimedOut = "TimedOut"

// failure is the outcome of what was refused, or not waited for to its end.
type failure struct {
	outcome       string
	reason        v1alpha1.Reason
	message, next string
}

// reporter is an operation that has a report of its failures in machine form.
type reporter interface {
	// failed makes it, and says how to print it; nil where the operation has said all itself.
	failed(f failure) (report any, as output)
}

// tell writes a failure to stdout too where a report in machine form was asked for: a script reads the outcome there, whatever
// it is. The error is told on stderr as ever, and its exit code stays.
func tell(env Environment, op operation, err error) error {
	r, is := op.(reporter)
	f, known := failureOf(err)
	if !is || !known {
		return err
	}
	rep, as := r.failed(f)
	if rep == nil || !as.machine() {
		return err
	}
	return errors.Join(err, as.print(env.Out, rep))
}

// failureOf takes an error of ours apart: the first line says what is, the others what to do next.
func failureOf(err error) (f failure, known bool) {
	var own *coded
	if !errors.As(err, &own) || own.told {
		return failure{}, false
	}
	switch own.code {
	case exitRefused:
		f.outcome = outcomeRefused
	case exitTimeout:
		f.outcome = outcomeTimedOut
	default:
		return failure{}, false
	}
	f.reason = own.reason
	f.message, f.next = inLines(own)
	f.message = strings.TrimPrefix(strings.TrimPrefix(f.message, "refused: "), "refused ("+string(own.reason)+"): ")
	return f, true
}

// inLines splits an error into its first line, and the others.
func inLines(err error) (message, next string) {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines[0], strings.Join(lines[1:], "; ")
}

// failed is the report of what was asked for, as far as it was made.
func (r *request) failed(f failure) (any, output) { return r.failedReport(f), r.Output }

func (r *request) failedReport(f failure) *requestReport {
	rep := r.rep
	if rep == nil {
		rep = r.report(r.verb, []planLine{}, map[string]string{})
	}
	if r.DryRun != dryRunNone {
		rep.DryRun = r.DryRun
	}
	rep.Outcome, rep.Reason, rep.Message, rep.Next = f.outcome, f.reason, f.message, f.next
	return rep
}

func (op *rotateOp) failed(f failure) (any, output) {
	rep := &rotationReport{requestReport: *op.failedReport(f), Steps: []rotationStep{}, Left: op.wanted}
	rep.Kind, rep.Site = rotationKind, op.Site
	return rep, op.Output
}

func (op *recoverKeyringOp) failed(f failure) (any, output) {
	rep := op.made
	if rep == nil {
		rep = op.bareReport()
	}
	if op.DryRun != dryRunNone {
		rep.DryRun = op.DryRun
	}
	rep.Outcome, rep.Message, rep.Next = f.outcome, f.message, f.next
	return rep, op.Output
}

// failed reports a drill that did not begin; the report of one that did says itself which move failed.
func (op *drillOp) failed(f failure) (any, output) {
	if op.judged {
		return nil, output{}
	}
	d := report.NewDrill(op.Namespace, op.Group, op.Target, op.lookedAt)
	d.NotBegun(f.outcome, f.reason, f.message, f.next)
	return &d, op.Output
}
