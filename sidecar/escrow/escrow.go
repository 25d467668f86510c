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
	// lookInterval is how often the agent looks at the keyring when no event wakes it.
	lookInterval = 2 * time.Second
	// settleTime is the time between the two looks that both have to show the same keyring.
	settleTime = 300 * time.Millisecond
	// unsettledPause is the wait before the next look at a keyring that is being written, silentPause before the next
	// question to a MySQL that does not answer yet.
	unsettledPause = 200 * time.Millisecond
	silentPause    = 500 * time.Millisecond
	// pushPauseLeast and pushPauseMost bound the pause after a push that failed.
	pushPauseLeast = time.Second
	pushPauseMost  = 30 * time.Second
	// pushAgain is how often the agent pushes an unsealed keyring that is in escrow already: so a lost escrow Secret comes
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
	// File is the keyring as this container sees it. Sealed is true if the pod was made with a sealed keyring.
	File   string
	Sealed bool
	// Round names the unseal that this pod belongs to; empty in a sealed pod.
	Round string
	// Datadir is searched for unencrypted binary and relay logs, and tables of engines that cannot encrypt.
	Datadir string
	// CoverSystem is true if the agent encrypts the tablespaces that MySQL makes unencrypted, while the site is open.
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
	// RightMissing is called when MySQL refuses something because a right is missing; it may be nil.
	RightMissing func()
	Log          *slog.Logger
}

// Agent watches one keyring.
type Agent struct {
	Config

	// saving is held while the record is changed, which takes longer than mu may be held.
	saving sync.Mutex
	// unsaved is why the record could not be changed, as last logged. Only the holder of saving touches it.
	unsaved string

	mu     sync.Mutex
	report wire.KeyringReport
	record Record
	// said is the trouble that was last logged.
	said string
	// lacks makes a missing right be logged only once.
	lacks sync.Once

	// The rest belongs to the loop of Run.

	// mysqld is the process that last answered.
	mysqld string
	// pushed is the digest of what this run of the sidecar has pushed, pushedAt when.
	pushed   string
	pushedAt time.Time
	// nextPush is the earliest time of the next try after a push that failed, pause the length of the last pause.
	nextPush time.Time
	pause    time.Duration
}

// New makes an agent. It replaces a damaged record by what it sees: only bootstrap bases decisions on the record.
func New(c Config) *Agent {
	a := &Agent{Config: c, report: wire.KeyringReport{Sealed: c.Sealed, Trouble: "the keyring was not looked at yet"}}
	record, err := c.Record.Load()
	if err != nil {
		c.Log.Warn("the record of the keyring is not readable; it is written again", "error", err)
		// Bootstrap let mysqld start in this round: the data that it had to give up is gone, and the present data must stay.
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

// Report is what is known now. A digest in it is that of the keyring in the file at this very moment.
func (a *Agent) Report() *wire.KeyringReport {
	now, err := LookAt(a.File)
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.report
	if !a.Sealed && r.Digest != "" && (err != nil || now.Digest != r.Digest || !now.Whole()) {
		// The loop may have waited for MySQL or for a push since its last look. An operator that took that digest for the one that
		// the data needs would seal the site with it, or replace the pod that has the only copy of the new keyring.
		r.Digest, r.Trouble = "", errUnsettled.Error()
	}
	if r.Coverage != nil {
		c := *r.Coverage
		r.Coverage = &c
	}
	return &r
}

// Unescrowed says why this site must not be opened now; empty if the keyring in the file at this very moment is in escrow.
// It enforces I16 where writes are opened.
func (a *Agent) Unescrowed() string {
	if a.Sealed {
		// It is read-only, so it cannot have changed since it was taken out of escrow.
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

// round looks once and does what is due. It returns how long to wait for the next round if no event comes.
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
		// It is not known whether all keys are in it, so it is not pushed; what was escrowed stays escrowed.
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
		// Whatever a second look shows, there is no whole keyring to take now.
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

// remember notes on the data volume which keyring the data needs, before the agent does anything else with it: if the
// keyring is lost, bootstrap must know. MySQL makes an empty keyring if it finds none; no data needs that one.
func (a *Agent) remember(look Look) {
	if !look.Exists() || errors.Is(look.Flaw, ErrEmpty) {
		return
	}
	a.update(func(r *Record) { r.Needs = look.Digest })
}

// opened notes that MySQL runs with a keyring that was projected from escrow, perhaps another version than before if a person rolled
// it back. That keyring is in escrow, so data that needs it is never taken for lost. A MySQL that does not start proves nothing about
// what its data needs, so the earlier note stays.
func (a *Agent) opened(look Look) {
	if !a.Sealed {
		return
	}
	a.update(func(r *Record) {
		if r.Escrowed != look.Digest {
			r.Escrowed, r.Version = look.Digest, 0 // this pod does not know the number
		}
		r.Needs = look.Digest
	})
}

// update changes the record, first on the data volume. It returns false if that failed.
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
			// What another process said, or one that is gone, proves nothing about this one.
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

// push hands a whole keyring to the operator unless it is in escrow already. A run of the sidecar pushes at least once, and
// again from time to time, so that an escrow Secret that was lost meanwhile comes back.
func (a *Agent) push(ctx context.Context, look Look) time.Duration {
	a.mu.Lock()
	escrowed := a.record.Escrowed == look.Digest
	// However the push ends, an older digest must not pass for the present one.
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
	// It goes to the volume before the report: after the report the site may be opened, and bootstrap must never wipe an open site.
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
