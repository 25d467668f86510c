// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// FirstLine is the first line of an error: what is, without what to do next.
func FirstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// WhyEnded is why a wait ended, in a few words.
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

// ExitCodes explains the exit codes in the help of every verb.
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
	// Reason is the operator's word for a refusal, where there is one.
	Reason v1alpha1.Reason
	// Ended is why a wait ended, without what to do about it.
	Ended string
	// Told is true if the report on stdout says it too.
	Told bool
}

// Error is the message with what to do next.
func (c *Error) Error() string { return c.Err.Error() }

// Unwrap is the error within.
func (c *Error) Unwrap() error { return c.Err }

// Refused is an error for what is not done; its exit code is ExitRefused.
func Refused(format string, args ...any) error {
	return &Error{Code: ExitRefused, Err: fmt.Errorf(format, args...)}
}

// WaitedOut is an error for a wait that ended before the outcome was known; its exit code is ExitTimeout.
func WaitedOut(format string, args ...any) error {
	return &Error{Code: ExitTimeout, Err: fmt.Errorf(format, args...)}
}

// NotConfirmed is an error for what nobody said yes to; its exit code is ExitUsage.
func NotConfirmed(format string, args ...any) error {
	return &Error{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// ErrUsage marks errors of the command line itself.
var ErrUsage = errors.New("usage")

// Usage is an error of the command line itself.
func Usage(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// usageError is an error of the command line; errors.Is finds ErrUsage in it.
type usageError struct{ error }

// Unwrap is the error within.
func (e usageError) Unwrap() []error { return []error{ErrUsage, e.error} }
