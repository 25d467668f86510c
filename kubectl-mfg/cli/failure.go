// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// OutcomeTimedOut is the outcome if the wait ended: the request continues.
const OutcomeTimedOut = "TimedOut"

// Failure is the outcome of a request that was refused, or whose wait ended early.
type Failure struct {
	Outcome       string
	Reason        v1alpha1.Reason
	Message, Next string
}

// Reporter is an operation that has a report of its failures in machine form.
type Reporter interface {
	// Failed makes it, and says how to print it; nil if the operation has said all itself.
	Failed(f Failure) (report any, as Output)
}

// Tell writes a failure to stdout too if a report in machine form was requested: a script reads every outcome there. The error
// still goes to stderr, and its exit code stays.
func Tell(env Environment, op any, err error) error {
	r, is := op.(Reporter)
	f, known := FailureOf(err)
	if !is || !known {
		return err
	}
	rep, as := r.Failed(f)
	if rep == nil || !as.Machine() {
		return err
	}
	return errors.Join(err, as.Print(env.Out, rep))
}

// FailureOf splits an error of ours: the first line says what is wrong, the others what to do next.
func FailureOf(err error) (f Failure, known bool) {
	var own *Error
	if !errors.As(err, &own) || own.Told {
		return Failure{}, false
	}
	switch own.Code {
	case ExitRefused:
		f.Outcome = OutcomeRefused
	case ExitTimeout:
		f.Outcome = OutcomeTimedOut
	default:
		return Failure{}, false
	}
	f.Reason = own.Reason
	f.Message, f.Next = InLines(own)
	f.Message = strings.TrimPrefix(strings.TrimPrefix(f.Message, "refused: "), "refused ("+string(own.Reason)+"): ")
	return f, true
}

// InLines splits an error into its first line, and the others.
func InLines(err error) (message, next string) {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines[0], strings.Join(lines[1:], "; ")
}

// Outcomes of requests that the phases of a planned failover do not name.
const (
	OutcomePlanned   = "Planned"
	OutcomeRequested = "Requested"
	OutcomeDone      = string(v1alpha1.PlannedSucceeded)
	OutcomeRefused   = string(v1alpha1.PlannedRefused)
)
