// SPDX-License-Identifier: Apache-2.0

// Package escrow watches the keyring of a site, hands it to the operator while the site is unsealed, and says what is
// encrypted. It decides nothing about phases. Its only secret is the keyring's content, which goes into the body of a
// push and nowhere else: not into a log, an error, a report or a file (I19).
package escrow

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

const (
	// lookInterval is how often the keyring is looked at when nothing is heard of it.
	lookInterval = 2 * time.Second
	// settleTime is between the two looks of which both have to show the same keyring.
	settleTime = 300 * time.Millisecond
	// unsettledPause is before the next look at a keyring that is being written, silentPause before the next question to a
	// MySQL that does not answer yet.
	unsettledPause = 200 * time.Millisecond
	silentPause    = 500 * time.Millisecond
	// pushPauseLeast and pushPauseMost are between two pushes of which the first one failed.
	pushPauseLeast = time.Second
	pushPauseMost  = 30 * time.Second
	// pushAgain is how often a keyring that is in escrow is pushed while it is unsealed: an escrow Secret that is lost comes
	// back. The operator answers with the version that it has.
	pushAgain = 5 * time.Minute
)

// MySQL is the server beside this sidecar.
type MySQL interface {
	Keyring(ctx context.Context) (mysql.KeyringStatus, error)
	Coverage(ctx context.Context) (mysql.Coverage, error)
	EncryptSystemTablespaces(ctx context.Context) error
	AwaitCheckpoint(ctx context.Context) error
}

// Config is what an agent is made of.
type Config struct {
	// Namespace, Group, Site and PodUID say whose keyring it is.
	Namespace, Group, Site, PodUID string
	// File is the keyring as this container sees it, Sealed how the pod was made.
	File   string
	Sealed bool
	// Round names the unseal that this pod is of; empty in a sealed pod.
	Round string
	// Datadir is searched for binary and relay logs in the clear.
	Datadir string
	// CoverSystem has the tablespaces that MySQL makes in the clear encrypted while the site is open.
	CoverSystem bool

	MySQL MySQL
	// Record remembers on the data volume.
	Record Store
	// Push hands the keyring to the operator; nil if this pod has no token.
	Push func(context.Context, wire.KeyringEscrow) (wire.KeyringEscrowed, error)
	// Mysqld names the running mysqld processes; each name stands for one process for ever.
	Mysqld func() (name string, pids []int)
	Mounts Mounts
	// Open is true while this site accepts writes of clients.
	Open func() bool
	// RightMissing is told that MySQL refused something for want of a right; nil if nobody wants to know.
	RightMissing func()
	Log          *slog.Logger
}

// Agent watches one keyring.
type Agent struct {
	Config

	// saving is held while the record is changed, which takes longer than mu may be held.
	saving sync.Mutex
	// unsaved is why it could not be changed, as it was logged last. It belongs to who holds saving.
	unsaved string

	mu     sync.Mutex
	report wire.KeyringReport
	record Record
	// said is the trouble that was logged last.
	said string
	// lacks is that a missing right is logged once.
	lacks sync.Once

	// The rest belongs to the loop of Run.

	// mysqld is the process that answered last.
	mysqld string
	// pushed is the digest of what this run of the sidecar has pushed, pushedAt when.
	pushed   string
	pushedAt time.Time
	// nextPush is before when no push is tried again, pause how long the next pause is.
	nextPush time.Time
	pause    time.Duration
}

// New makes an agent. A record that is damaged is replaced by what is seen: only bootstrap decides anything by it.
func New(c Config) *Agent {
	a := &Agent{Config: c, report: wire.KeyringReport{Sealed: c.Sealed, Trouble: "the keyring was not looked at yet"}}
	record, err := c.Record.Load()
	if err != nil {
		c.Log.Warn("the record of the keyring is not readable; it is written again", "error", err)
		// Bootstrap let mysqld start in this round: what it was told to give up is gone, and what is there now must not be.
		record.Round = c.Round
	}
	a.record = record
	a.report.EscrowedDigest, a.report.EscrowedVersion = record.Escrowed, record.Version
	return a
}

// Run watches until ctx ends.
func (a *Agent) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { a.cover(ctx) })
	events, done := watch(filepath.Dir(a.File), a.Log)
	defer done()
	for ctx.Err() == nil {
		wait := a.round(ctx)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-events:
		}
		timer.Stop()
	}
}

// Report is what is known now. A digest in it is that of the keyring that is there this very moment.
func (a *Agent) Report() *wire.KeyringReport {
	now, err := LookAt(a.File)
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.report
	if !a.Sealed && r.Digest != "" && (err != nil || now.Digest != r.Digest || !now.Whole()) {
		// The loop may have waited for MySQL or for a push since its last look. Whoever took that digest for the one that the data
		// needs would seal the site with it, or replace the pod that has the only copy of the new one.
		r.Digest, r.Trouble = "", errUnsettled.Error()
	}
	if r.Coverage != nil {
		c := *r.Coverage
		r.Coverage = &c
	}
	return &r
}

// Unescrowed says why this site must not be opened now; empty if the keyring that is there this very moment is in escrow.
// Enforces I16 where writes are opened.
func (a *Agent) Unescrowed() string {
	if a.Sealed {
		// Nobody can have written it since it was taken out of escrow.
		return ""
	}
	l, err := LookAt(a.File)
	if err != nil || !l.Whole() {
		// What cannot be read cannot be compared.
		return "the keyring cannot be read as a whole"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.Digest != a.record.Escrowed {
		return "the keyring is not in escrow"
	}
	return ""
}

// round looks once and does what is due. It returns how long to wait for the next round if nothing is heard.
func (a *Agent) round(ctx context.Context) time.Duration {
	look, settled, err := a.settle(ctx)
	if err != nil || ctx.Err() != nil {
		a.seen(look, false, err)
		return lookInterval
	}
	if !a.Sealed {
		a.remember(look)
	}
	listed, sqlErr := a.ask(ctx)
	if !settled {
		a.seen(look, false, errors.Join(look.Flaw, errUnsettled))
		return unsettledPause
	}
	switch {
	case !look.Whole():
		a.seen(look, false, look.Flaw)
	case sqlErr != nil:
		// Whether all keys are in it is not known, so it is not pushed; what was escrowed stays escrowed.
		a.seen(look, true, errNotListed)
		return silentPause
	case look.lacks(listed):
		a.seen(look, true, ErrKeysMissing)
	default:
		a.opened(look)
		return a.push(ctx, look)
	}
	return lookInterval
}

var (
	errUnsettled = errors.New("the keyring is being written")
	errNotListed = errors.New("MySQL has not said which keys it holds")
	errNotNoted  = errors.New("the operator has the keyring, but that cannot be noted on the data volume, and does not count before: make room there, or see the sidecar's log")
	errNoToken   = errors.New("the keyring is not in escrow, and this pod has no token for the operator")
)

// settle takes two looks. A keyring counts only if both show the same.
func (a *Agent) settle(ctx context.Context) (Look, bool, error) {
	first, err := LookAt(a.File)
	if err != nil {
		return Look{}, false, err
	}
	if !first.Whole() {
		// Whatever a second look shows, this one is not to be had now.
		return first, first.Exists() && !errors.Is(first.Flaw, ErrBackup), nil
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return first, false, nil
	case <-timer.C:
	}
	second, err := LookAt(a.File)
	if err != nil {
		return Look{}, false, err
	}
	return second, second.Whole() && second.Digest == first.Digest, nil
}

// remember notes on the data volume which keyring the data needs, before anything else is done about it: if the keyring
// is lost, bootstrap must know. An empty keyring is what MySQL makes where it finds none; no data needs it.
func (a *Agent) remember(look Look) {
	if !look.Exists() || errors.Is(look.Flaw, ErrEmpty) {
		return
	}
	a.update(func(r *Record) { r.Needs = look.Digest })
}

// opened notes that MySQL runs with a keyring that was projected from escrow, perhaps another version than before: a person rolled it
// back. That keyring is in escrow, so data that needs it is never taken for lost. A MySQL that does not start proves nothing of what
// its data needs, and what was noted before stands.
func (a *Agent) opened(look Look) {
	if !a.Sealed {
		return
	}
	a.update(func(r *Record) {
		if r.Escrowed != look.Digest {
			r.Escrowed, r.Version = look.Digest, 0 // nobody told this pod the number
		}
		r.Needs = look.Digest
	})
}

// update changes the record, on the data volume first. It returns false if that failed.
func (a *Agent) update(change func(*Record)) bool {
	a.saving.Lock()
	defer a.saving.Unlock()
	a.mu.Lock()
	next := a.record
	a.mu.Unlock()
	before := next
	if change(&next); next == before {
		return true
	}
	if err := a.Record.Save(next); err != nil {
		if text := err.Error(); text != a.unsaved {
			a.unsaved = text
			a.Log.Error("the record of the keyring cannot be written to the data volume", "error", err)
		}
		return false
	}
	a.unsaved = ""
	a.mu.Lock()
	a.record = next
	a.report.EscrowedDigest, a.report.EscrowedVersion = next.Escrowed, next.Version
	a.mu.Unlock()
	return true
}

// ask asks MySQL for its keyring, and the kernel for the mount of it.
func (a *Agent) ask(ctx context.Context) ([]mysql.Key, error) {
	name, pids := a.Mysqld()
	st, err := a.MySQL.Keyring(ctx)
	mounted := a.Mounts.ReadOnly(a.File, pids)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.report.MountReadOnly = mounted
	if err != nil {
		if name != a.mysqld {
			// What another process said, or one that is gone, says nothing of this one.
			a.report.Component, a.report.Active, a.report.DataFile, a.report.ReadOnly, a.report.Keys = "", false, "", false, 0
		}
		return nil, err
	}
	a.mysqld = name
	a.report.Component, a.report.Active, a.report.DataFile = st.Component, st.Active, st.DataFile
	a.report.ReadOnly, a.report.Keys = st.ReadOnly, len(st.Keys)
	return st.Keys, nil
}

// seen puts a look into the report.
func (a *Agent) seen(look Look, whole bool, trouble error) {
	text := ""
	if trouble != nil {
		text = trouble.Error()
	}
	a.mu.Lock()
	a.report.Digest, a.report.Trouble = "", text
	if whole {
		a.report.Digest = look.Digest
	}
	changed := a.said != text
	a.said = text
	a.mu.Unlock()
	switch {
	case changed && text == "":
		a.Log.Info("the keyring is in order", "digest", look.Digest)
	case changed:
		a.Log.Warn("the keyring is not in order", "digest", look.Digest, "trouble", text)
	}
}

// push hands a whole keyring to the operator unless it is there. A run of the sidecar pushes at least once, and again from
// time to time, so that an escrow Secret that was lost meanwhile comes back.
func (a *Agent) push(ctx context.Context, look Look) time.Duration {
	a.mu.Lock()
	escrowed := a.record.Escrowed == look.Digest
	// Whatever becomes of the push: an older digest must not pass for the one in escrow.
	a.report.Digest = look.Digest
	a.mu.Unlock()
	switch {
	case a.Sealed, escrowed && (a.Push == nil || a.pushed == look.Digest && time.Since(a.pushedAt) < pushAgain):
		a.seen(look, true, nil)
		return lookInterval
	case a.Push == nil:
		a.seen(look, true, errNoToken)
		return lookInterval
	case time.Now().Before(a.nextPush):
		return min(lookInterval, time.Until(a.nextPush))
	}
	if a.pause == 0 {
		a.Log.Info("escrowing the keyring", "digest", look.Digest, "keys", len(look.Keys))
	}
	stored, err := a.Push(ctx, wire.KeyringEscrow{
		Namespace: a.Namespace, Group: a.Group, Site: a.Site, PodUID: a.PodUID, Digest: look.Digest, Keyring: look.content,
	})
	if err == nil && stored.Digest != look.Digest {
		err = errors.New("escrow keyring: the operator stored another one")
	}
	// On the volume before it is reported: who hears of it may open the site, and bootstrap must never wipe that.
	if err == nil && !a.update(func(r *Record) { r.Escrowed, r.Version = stored.Digest, stored.Version }) {
		err = errNotNoted
	}
	if err != nil {
		a.pause = min(max(2*a.pause, pushPauseLeast), pushPauseMost)
		a.nextPush = time.Now().Add(a.pause)
		a.seen(look, true, err)
		return min(lookInterval, a.pause)
	}
	a.pushed, a.pushedAt, a.pause, a.nextPush = look.Digest, time.Now(), 0, time.Time{}
	a.Log.Info("the keyring is in escrow", "digest", stored.Digest, "version", stored.Version, "secret", stored.Secret)
	a.seen(look, true, nil)
	return lookInterval
}
