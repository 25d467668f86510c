// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"errors"
	"fmt"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Reason is why the archiver does not come further, unless it is a bucket.Kind.
type Reason string

// The reasons.
const (
	// SidecarUnreachable: nobody says whose turn it is, so nothing is archived.
	SidecarUnreachable Reason = "SidecarUnreachable"
	// ServerUnreachable: mysqld of this pod does not answer.
	ServerUnreachable Reason = "ServerUnreachable"
	// ServerRefuses: it does not let the account in, or does not let it read its binary logs.
	ServerRefuses Reason = "ServerRefuses"
	// LogsReset: the server's binary logs begin again in the middle of an epoch, or it lacks what is archived.
	LogsReset Reason = "BinaryLogsReset"
	// LogUnreadable: the server sends something else than a binary log, or breaks off.
	LogUnreadable Reason = "BinaryLogUnreadable"
	// BadConfig: it was told something that it cannot use.
	BadConfig Reason = "BadConfig"
	// Other: none of these.
	Other Reason = "ArchiveFailed"
)

// failure is an error with its reason.
type failure struct {
	reason Reason
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(reason Reason, err error) error {
	if err == nil {
		return nil
	}
	if already, ok := errors.AsType[*failure](err); ok {
		return already
	}
	return &failure{reason: reason, err: err}
}

func failf(reason Reason, format string, args ...any) error {
	return fail(reason, fmt.Errorf(format, args...))
}

// reasonOf is one word for the status.
func reasonOf(err error) string {
	if f, ok := errors.AsType[*failure](err); ok {
		return string(f.reason)
	}
	if kind := bucket.KindOf(err); kind != "" {
		return string(kind)
	}
	return string(Other)
}

// errTurnOver ends what is under way when it is this site's turn no more. It is no failure.
var errTurnOver = errors.New("this site is not the active one any more")

// cause prefers the end of a context, with its cause, to the broken connection that it leaves.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
