// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leaveTimeout is that of the agents under test.
const leaveTimeout = 10 * time.Second

var (
	errDown = errors.New("no route to host")
	// authority signs; stranger is somebody else's key.
	authority = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	stranger  = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
)

func verify(signed wire.Signed) (wire.Statement, error) {
	return wire.Verify(authority.Public().(ed25519.PublicKey), signed)
}

// world is everything around one agent: mysqld, the operator, the peers, the volume. Time is synctest's.
type world struct {
	t     *testing.T
	agent *Agent
	end   func()
	// said takes the log instead of the test's output, if a test wants it.
	said io.Writer

	mu sync.Mutex
	// events is what happened, in order.
	events []string

	// mysqld
	pid                              int
	superReadOnly, readOnly, offline bool
	channels                         int
	silent                           bool
	// hang makes a call wait for its deadline; fail makes it fail.
	fenceHang, openHang bool
	fenceStuck          chan struct{}
	fenceFail, openFail error
	openTakes           time.Duration
	keepOutFail         error
	prepared            int // XA transactions
	unkillable          bool
	others              []int // more processes of that name
	lockedByOther       bool
	lookFails           int // how many of the next looks at the process table fail
	// looks counts those at MySQL, each of which takes lookTakes; looking is how many there are, looksAtOnce the most there were.
	looks, looking, looksAtOnce int
	lookTakes                   time.Duration
	// asking is how many questions to the operator are under way, askedAtOnce the most there were.
	asking, askedAtOnce int

	// operator and peers; an empty site means that it cannot be reached.
	operator wire.Statement
	oldNonce bool
	peers    map[string]wire.Signed

	// volume
	kept     fence.Kept
	saveFail error
	saveHang chan struct{}
	// mark is the process that is marked, while marked; the others are what the volume does to it.
	mark     string
	marked   bool
	markFail error
	markHang chan struct{}
	markLost error // the mark cannot be read
	// unmarks counts who takes it away, which fails with unmarkFail.
	unmarks    int
	unmarkFail error

	keyring Keyring
	dog     dog
}

// dog is the deadline that the supervisor of mysqld keeps.
type dog struct {
	mu       sync.Mutex
	deadline time.Duration
	asleep   bool
}

func (d *dog) Set(until time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deadline = until
}

func (d *dog) Sooner(until time.Duration) {
	if stands := d.until(); stands == 0 || until < stands {
		d.Set(until)
	}
}

func (d *dog) Clear() { d.Set(0) }

func (d *dog) Watched(time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.asleep
}

func (d *dog) until() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.deadline
}

func newWorld(t *testing.T) *world {
	return &world{t: t, peers: map[string]wire.Signed{}, pid: 100, superReadOnly: true, readOnly: true}
}

func told(epoch int64, active string) wire.Statement {
	return wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: active, Epoch: epoch, LeaseTimeoutMillis: 20_000}
}

func sign(t *testing.T, key ed25519.PrivateKey, s wire.Statement) wire.Signed {
	t.Helper()
	signed, err := wire.Sign(key, s)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// shownUntil is a certificate that ends then.
type shownUntil int64

func (u shownUntil) Report() *wire.CertificateReport {
	ends := time.Unix(int64(u), 0)
	return &wire.CertificateReport{NotAfter: &ends, Problem: "a problem"}
}

func (w *world) happened(format string, args ...any) {
	w.events = append(w.events, fmt.Sprintf(format, args...))
}

// do changes the world.
func (w *world) do(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) boot() {
	w.t.Helper()
	began := time.Now()
	a, err := New(Config{
		Site: fence.Site{Namespace: "shop", Group: "orders", Name: "a"}, Peers: []string{"b:8090", "c:8090"},
		PodUID: "pod-1", BootID: "boot-1", VolumeID: "volume-1",
		Lease: 20 * time.Second, PeerCheck: 2 * time.Second, FenceTimeout: 2 * time.Second, LeaveTimeout: leaveTimeout,
		MySQL: w, Changer: w, Network: w, Processes: w, Volume: w, Verify: verify, Watchdog: &w.dog, Keyring: w.keyring,
		Anchor: func() string { return wire.EncodeKey(public(authority)) }, Certificate: shownUntil(7), Prepared: w.preparedXA,
		Clock: func() fence.Instant { return fence.Instant{Mono: time.Since(began), Wall: time.Now()} },
		Log:   w.log(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	w.agent, w.end = a, func() {
		cancel()
		a.Stop()
	}
	a.Start(ctx)
}

// log tells warnings to who runs the tests, or everything to a test that wants to know.
func (w *world) log() *slog.Logger {
	if w.said != nil {
		return slog.New(slog.NewTextHandler(w.said, nil))
	}
	return slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// bootOpen boots a site that is named under epoch 5, and waits until it is open.
func (w *world) bootOpen() {
	w.t.Helper()
	w.operator = told(5, "a")
	w.boot()
	w.after(time.Second)
	w.mustBe("writable")
}

// after lets time pass, until everybody waits.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) is() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.pid == 0:
		return "gone"
	case !w.superReadOnly && w.offline:
		return "in a window"
	case w.superReadOnly:
		return "read-only"
	default:
		return "writable"
	}
}

func (w *world) mustBe(want string) {
	w.t.Helper()
	if got := w.is(); got != want {
		w.t.Fatalf("MySQL is %s, want %s; events: %q", got, want, w.happenings())
	}
}

func (w *world) happenings() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// startMysqld starts it as my.cnf says: fenced.
func (w *world) startMysqld(pid int) {
	w.pid, w.superReadOnly, w.readOnly, w.offline, w.silent = pid, true, true, false, false
}

func (w *world) Status(ctx context.Context) (mysql.Status, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	w.looking++
	w.looksAtOnce = max(w.looksAtOnce, w.looking)
	defer func() { w.looking-- }()
	if takes := w.lookTakes; takes > 0 {
		w.mu.Unlock()
		time.Sleep(takes)
		w.mu.Lock()
	}
	if w.pid == 0 {
		return mysql.Status{}, errDown
	}
	if w.silent {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return mysql.Status{}, ctx.Err()
	}
	return mysql.Status{
		ServerUUID: "3e11fa47-71ca-11e1-9e33-c80aa9429562", SuperReadOnly: w.superReadOnly, ReadOnly: w.readOnly,
		OfflineMode: w.offline, Channels: w.channels,
		Executed: gtid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"),
	}, nil
}

func (w *world) Fence(ctx context.Context, _ mysql.FenceOptions) (mysql.FenceResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pid == 0 {
		return mysql.FenceResult{}, errDown
	}
	if stuck := w.fenceStuck; stuck != nil {
		w.mu.Unlock()
		<-stuck
		w.mu.Lock()
		return mysql.FenceResult{}, errDown
	}
	if w.fenceHang || w.silent {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return mysql.FenceResult{}, ctx.Err()
	}
	if w.fenceFail != nil {
		return mysql.FenceResult{}, w.fenceFail
	}
	result := mysql.FenceResult{Stage: mysql.StageReadOnly}
	if w.superReadOnly {
		result.Stage = mysql.StageNone
	}
	w.superReadOnly, w.readOnly, w.offline = true, true, w.prepared > 0
	w.happened("fenced")
	return result, nil
}

func (w *world) OpenWrites(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.openHang {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return ctx.Err()
	}
	if w.openTakes > 0 {
		w.mu.Unlock()
		pause(ctx, w.openTakes)
		w.mu.Lock()
	}
	if w.dog.until() == 0 {
		w.t.Error("I4: writes are opened, and the supervisor of mysqld was told nothing")
	}
	if w.openFail != nil {
		return w.openFail
	}
	w.superReadOnly, w.readOnly, w.offline = false, false, false
	w.happened("opened")
	return nil
}

func (w *world) KeepOut(context.Context, bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pid == 0 {
		return errDown
	}
	if w.keepOutFail != nil {
		return w.keepOutFail
	}
	w.offline = true
	w.happened("kept out")
	return nil
}

func (w *world) SetOfflineMode(_ context.Context, on bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offline = on
	w.happened("offline %v", on)
	return nil
}

func (w *world) preparedXA(context.Context) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.prepared, nil
}

func (w *world) Operator(ctx context.Context, nonce string) (wire.Signed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking++
	w.askedAtOnce = max(w.askedAtOnce, w.asking)
	defer func() { w.asking-- }()
	if w.operator.ActiveSite == "" {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return "", ctx.Err()
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	w.happened("operator asked")
	s := w.operator
	s.Nonce, s.IssuedAt = nonce, time.Now()
	if w.oldNonce {
		s.Nonce = "from an earlier question"
	}
	return wire.Sign(authority, s)
}

func (w *world) Peer(_ context.Context, addr string) (wire.Signed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	signed, ok := w.peers[addr]
	if !ok {
		return "", errDown
	}
	return signed, nil
}

func (w *world) Look() (Mysqld, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lookFails > 0 {
		w.lookFails--
		return Mysqld{}, errors.New("read process table: input/output error")
	}
	if w.pid == 0 {
		return Mysqld{}, nil
	}
	procs := []process{{pid: w.pid, start: "1"}}
	for _, pid := range w.others {
		procs = append(procs, process{pid: pid, start: "2"})
	}
	return mysqldOf(procs), nil
}

func (w *world) Locked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pid != 0 || w.lockedByOther
}

func (w *world) Kill(m Mysqld) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happened("killed %s", m.ID)
	if w.unkillable {
		return errors.New("operation not permitted")
	}
	w.pid = 0
	return nil
}

func (w *world) Save(k fence.Kept) error {
	if w.saveHang != nil {
		<-w.saveHang
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.saveFail != nil {
		return w.saveFail
	}
	w.kept = k
	w.happened("kept epoch %d", k.Statement.Epoch)
	return nil
}

func (w *world) Load(func(wire.Signed) (wire.Statement, error)) (fence.Kept, error, error) {
	return w.kept, nil, nil
}

func (w *world) MarkOpening(process string) error {
	if w.markHang != nil {
		<-w.markHang
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.markFail != nil {
		return w.markFail
	}
	w.mark, w.marked = process, true
	w.happened("marked %s", process)
	return nil
}

func (w *world) UnmarkOpening() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unmarks++
	if w.unmarkFail != nil {
		return w.unmarkFail
	}
	w.marked = false
	return nil
}

func (w *world) MarkedOpening() (string, bool, error) {
	return w.mark, w.marked, w.markLost
}

// push sends a statement by PUT and returns the report.
func (w *world) push(s wire.Statement) wire.Report {
	w.t.Helper()
	code, body := w.request(http.MethodPut, wire.PathActiveSite, wire.ActiveSite{Statement: sign(w.t, authority, s)})
	var r wire.Report
	if err := json.Unmarshal(body, &r); code != http.StatusOK || err != nil {
		w.t.Fatalf("push: %d %s", code, body)
	}
	return r
}

func (w *world) request(method, target string, body any) (int, []byte) {
	w.t.Helper()
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			w.t.Fatal(err)
		}
	}
	rec := httptest.NewRecorder()
	w.agent.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), method, target, bytes.NewReader(raw)))
	return rec.Code, rec.Body.Bytes()
}
