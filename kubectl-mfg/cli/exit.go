// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// FirstLine returns the first line of an error: what is wrong, without what to do next.
func FirstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// WhyEnded returns why a wait ended, in a few words.
func WhyEnded(err error) string {
	var own *Error
	if errors.As(err, &own) && own.Ended != "" {
		return own.Ended
	}
	why, _ := InLines(err)
	return why
}

// Exit codes; they are part of the interface.
const (
	ExitHealthy  = 0
	ExitError    = 1
	ExitUsage    = 2
	ExitDegraded = 3
	ExitTimeout  = 4
	ExitRefused  = 5
)

// ExitCodes explains the exit codes, at the end of the help of every verb.
const ExitCodes = `Exit codes:
  0  healthy, or done
  1  error: the question could not be answered
  2  wrong usage, or not confirmed: nothing changed
  3  degraded: the answer is on stdout, and something in it needs attention
  4  the wait ended (--timeout, Ctrl-C) before the outcome was known; the request stays in force
  5  refused, reverted or given up: the message says why, and what to do next`

// Error is an error with an exit code of its own.
type Error struct {
	Code int
	Err  error
	// Reason is the operator's word for a refusal, if there is one.
	Reason v1alpha1.Reason
	// Ended is why a wait ended, without what to do about it.
	Ended string
	// Told is true if the report on stdout says it too.
	Told bool
}

// Error returns the message with what to do next.
func (c *Error) Error() string { return c.Err.Error() }

// Unwrap is the error within.
func (c *Error) Unwrap() error { return c.Err }

// Refused returns an error for a refusal; its exit code is ExitRefused.
func Refused(format string, args ...any) error {
	return &Error{Code: ExitRefused, Err: fmt.Errorf(format, args...)}
}

// WaitedOut returns an error for a wait that ended before the outcome was known; its exit code is ExitTimeout.
func WaitedOut(format string, args ...any) error {
	return &Error{Code: ExitTimeout, Err: fmt.Errorf(format, args...)}
}

// NotConfirmed returns an error for an action without a yes; its exit code is ExitUsage.
func NotConfirmed(format string, args ...any) error {
	return &Error{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// ErrUsage marks errors of the command line itself.
var ErrUsage = errors.New("usage")

// Usage returns an error of the command line itself.
func Usage(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// usageError is an error of the command line; errors.Is finds ErrUsage in it.
type usageError struct{ error }

// Unwrap is the error within.
func (e usageError) Unwrap() []error { return []error{ErrUsage, e.error} }
