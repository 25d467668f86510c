// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Program is one question.
type Program struct {
	Bucket bucket.Config
	// IdentityFile has the age identities, if the question brings none; empty for none.
	IdentityFile string
	// Timeout bounds all of it; 0 means half an hour.
	Timeout time.Duration
	// In has the question, Out gets the answer.
	In  io.Reader
	Out io.Writer
	Log *slog.Logger
}

// Commands are what Run knows.
var Commands = []string{wire.InspectTimeline, wire.InspectFind, wire.InspectLost}

// Why a question was not answered. Others are kinds of internal/bucket.
const (
	reasonBadRequest = wire.InspectBadRequest
	reasonIdentity   = string(bucket.WrongIdentity)
	reasonUnreadable = wire.InspectUnreadableLog
	reasonTimedOut   = "TimedOut"
	reasonFailed     = "Failed"
)

// Classes of exits, as those of backup/job/terms.
const (
	exitFailed  = 1
	exitConfig  = 2
	exitStorage = 10
	exitTime    = 13
	exitRefused = 14
	exitDamaged = 15
)

const (
	defaultTimeout = 30 * time.Minute
	identityMax    = 64 << 10
)

// badRequest is a question that has no answer.
type badRequest struct{ error }

// Run answers one question, and returns the code to exit with.
func (p *Program) Run(ctx context.Context, command string) int {
	timeout := p.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	end, err := p.answer(ctx, command)
	reason, code := reasonOf(ctx, err)
	end.Reason = reason
	if err != nil {
		end.Message = err.Error()
		p.Log.Error("backup "+command+" ends", "reason", reason, "error", end.Message)
	}
	if err := json.NewEncoder(p.Out).Encode(wire.InspectLine{End: &end}); err != nil && code == 0 {
		code = exitFailed
	}
	return code
}

func reasonOf(ctx context.Context, err error) (reason string, code int) {
	var bad badRequest
	kind := bucket.KindOf(err)
	switch {
	case err == nil:
		return wire.BackupSucceeded, 0
	case errors.As(err, &bad):
		return reasonBadRequest, exitConfig
	case ctx.Err() != nil:
		return reasonTimedOut, exitTime
	case kind == bucket.WrongIdentity:
		return reasonIdentity, exitRefused
	case kind == bucket.Damaged:
		return string(kind), exitDamaged
	case kind != "":
		return string(kind), exitStorage
	case errors.Is(err, errLog):
		return reasonUnreadable, exitDamaged
	}
	return reasonFailed, exitFailed
}

// request reads the question. An error quotes nothing of it.
func (p *Program) request() (wire.InspectRequest, error) {
	var r wire.InspectRequest
	raw, err := io.ReadAll(io.LimitReader(p.In, wire.MaxInspectRequest+1))
	if err != nil {
		return r, badRequest{errors.New("the question cannot be read from stdin")}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if len(raw) > wire.MaxInspectRequest || d.Decode(&r) != nil {
		return r, badRequest{errors.New("what is on stdin is no question: does the plugin have the version of this program?")}
	}
	return r, nil
}

// identities are those of the question, or of the file.
func (p *Program) identities(r wire.InspectRequest) (bucket.Identities, error) {
	if r.Identity != "" {
		ids, err := bucket.ParseIdentities(strings.NewReader(r.Identity))
		if err != nil {
			return ids, badRequest{err}
		}
		return ids, nil
	}
	if p.IdentityFile == "" {
		return bucket.Identities{}, nil
	}
	f, err := os.Open(p.IdentityFile)
	if err != nil {
		return bucket.Identities{}, badRequest{errors.New("the Secret with the age identity is missing, or has no key identity")}
	}
	defer func() { _ = f.Close() }()
	ids, err := bucket.ParseIdentities(io.LimitReader(f, identityMax))
	if err != nil {
		return ids, badRequest{err}
	}
	return ids, nil
}

func (p *Program) answer(ctx context.Context, command string) (wire.InspectEnd, error) {
	r, err := p.request()
	if err != nil {
		return wire.InspectEnd{}, err
	}
	ids, err := p.identities(r)
	if err != nil {
		return wire.InspectEnd{}, err
	}
	a, err := archive.Open(ctx, p.Bucket)
	if err != nil {
		return wire.InspectEnd{}, err
	}
	defer func() { _ = a.Close() }()
	listing, err := a.List(ctx)
	if err != nil {
		return wire.InspectEnd{}, err
	}
	q := &question{archive: a, listing: listing, past: archive.History(listing), ids: ids}
	switch {
	case command == wire.InspectTimeline && r.Timeline != nil:
		q.out = newAnswer(p.Out, 0)
		err = q.timeline(ctx, p.Bucket, *r.Timeline)
	case command == wire.InspectFind && r.Find != nil:
		q.out = newAnswer(p.Out, r.Find.Most)
		err = q.find(ctx, *r.Find)
	case command == wire.InspectLost && r.Lost != nil:
		q.out = newAnswer(p.Out, r.Lost.Most)
		err = q.lost(ctx, *r.Lost)
	default:
		return wire.InspectEnd{}, badRequest{errors.New("the question is not one of backup " + strings.Join(Commands, ", backup "))}
	}
	q.out.end.Truncated = q.out.full
	return q.out.end, err
}

// question is one that is being answered.
type question struct {
	archive *archive.Archive
	listing archive.Listing
	past    archive.Past
	ids     bucket.Identities
	out     *answer
	scan    scan
}

// read scans one file. What was read before an error may have been told: the end says that it does not count.
func (q *question) read(ctx context.Context, log archive.Log, l looker) error {
	in, err := q.archive.Read(ctx, log, q.ids)
	if err != nil {
		return err
	}
	q.scan.look = l
	bytes, transactions := q.scan.bytes, q.scan.transactions
	err = q.scan.file(log, in)
	q.out.end.Files++
	q.out.end.Bytes += q.scan.bytes - bytes
	q.out.end.Transactions += q.scan.transactions - transactions
	closed := in.Close()
	if err == nil {
		return closed
	}
	return err
}
