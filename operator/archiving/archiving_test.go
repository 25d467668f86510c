// SPDX-License-Identifier: Apache-2.0

package archiving

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/signing"
)

const uuid = "aaaaaaaa-0000-0000-0000-000000000001"

var began = time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC)

// world is Archiving over a fake API server, with one archiver and servers that the test makes up.
type world struct {
	t     *testing.T
	c     client.Client
	a     *Archiving
	facts *scopetest.Facts
	said  *scopetest.Events
	now   time.Time
	key   signing.Key

	mu       sync.Mutex
	asked    []string
	archiver wire.ArchiverStatus
	askFails error
	reads    int
	keyFails error
	writes   int
	servers  map[string]*server
}

// server is the MySQL of a site.
type server struct {
	w     *world
	state mysql.BinlogState
	fails error
	looks int
	// rotated counts the logs that were begun by order.
	rotated int
}

func (s *server) Binlogs(context.Context) (mysql.BinlogState, error) {
	s.looks++
	return s.state, s.fails
}

func (s *server) PurgeBinlogs(_ context.Context, purge bool) error {
	s.state.Purges = purge
	return nil
}

func (s *server) RotateBinlog(context.Context) error {
	if s.fails == nil {
		s.rotated++
	}
	return s.fails
}

func (s *server) Close() error { return nil }

func (w *world) Site(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, site, podIP string) (mysql.Target, error) {
	return mysql.Target{Addr: podIP, User: site}, nil
}

func (w *world) Read(context.Context, *v1alpha1.MysqlFailoverGroup) (signing.Key, error) {
	w.reads++
	return w.key, w.keyFails
}

func archived(g *v1alpha1.MysqlFailoverGroup) {
	g.Spec.Backup = &v1alpha1.BackupSpec{
		Profiles: []v1alpha1.BackupProfile{{Name: "nightly", Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups", SecretName: "s3"}}}},
		PITR:     &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"},
	}
}

func newWorld(t *testing.T, group *v1alpha1.MysqlFailoverGroup) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	key, err := signing.New()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, facts: &scopetest.Facts{}, said: &scopetest.Events{}, now: began, key: key, servers: map[string]*server{}}
	started, finished := metav1.NewTime(began.Add(-2*time.Hour)), metav1.NewTime(began.Add(-time.Hour))
	mb := &v1alpha1.MysqlBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-nightly-1"}, Spec: v1alpha1.MysqlBackupSpec{Group: "orders", Profile: "nightly"},
		Status: v1alpha1.MysqlBackupStatus{Phase: v1alpha1.BackupCompleted, Location: "s3://backups/shop/orders", StartedAt: &started, FinishedAt: &finished, GTIDExecuted: uuid + ":1-5"}}
	w.c = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.MysqlFailoverGroup{}, &v1alpha1.MysqlBackup{}).
		WithTypeConverters(applyconfiguration.NewTypeConverter(scheme), clientgoapply.NewTypeConverter(clientgoscheme.Scheme), managedfields.NewDeducedTypeConverter()).
		WithIndex(&v1alpha1.MysqlBackup{}, indexGroup, indexedGroup).WithObjects(group, mb).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: func(ctx context.Context, c client.Client, name string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			w.writes++
			return c.SubResource(name).Apply(ctx, o, opts...)
		}}).Build()
	w.archiver = wire.ArchiverStatus{State: wire.ArchiverArchiving, Site: "a", Epoch: 7, StartedAt: began.Add(-time.Hour), ArchivedGTID: uuid + ":1-9", Bytes: 1 << 20, UploadsSucceeded: 3, PendingBytes: 17}
	w.a = New(Options{
		Client: w.c, Facts: w.facts, Access: w, Keys: w, Recorder: events.NewRecorder(w.said), Install: render.Install{BackupImage: "mfg-backup:1"},
		Now: func() time.Time { return w.now },
		Ask: func(ctx context.Context, addr string) (wire.ArchiverStatus, error) {
			if until, bounded := ctx.Deadline(); !bounded || time.Until(until) > askTimeout {
				t.Error("a question may take for ever")
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked = append(w.asked, addr)
			return w.archiver, w.askFails
		},
		Dial: func(target mysql.Target) (Server, error) { return w.servers[target.User], nil },
	})
	for i, site := range []string{"a", "b", "c"} {
		w.servers[site] = &server{w: w, state: mysql.BinlogState{Bytes: 1 << 30, Purges: true}}
		w.facts.Set(site, scope.SiteFacts{Reachable: true, MysqlUp: true, AdminAddr: fmt.Sprintf("10.0.0.%d:33062", i+1), Executed: gtid.MustParse(uuid + ":1-9")})
	}
	w.facts.Open("a")
	w.facts.Under(7)
	return w
}

// goesOn has time pass, and the archiver keep up until archived, and looks once.
func (w *world) goesOn(by time.Duration, keepsUp bool) *v1alpha1.MysqlFailoverGroup {
	w.t.Helper()
	w.now = w.now.Add(by)
	if keepsUp {
		w.archiver.At, w.archiver.Latest = w.now, w.now.Add(-5*time.Second)
	}
	w.a.round(w.t.Context())
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := w.c.Get(w.t.Context(), scopetest.Key, g); err != nil {
		w.t.Fatal(err)
	}
	return g
}

func reasonOf(g *v1alpha1.MysqlFailoverGroup) string {
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionPITRReady); c != nil {
		return string(c.Status) + " " + c.Reason
	}
	return ""
}

// looks counts how often servers were looked at.
func (w *world) looks() (n int) {
	for _, s := range w.servers {
		n += s.looks
		s.looks = 0
	}
	return n
}

func TestAnArchiveIsToldOf(t *testing.T) {
	w := newWorld(t, scopetest.Group(archived, scopetest.Running))
	g := w.goesOn(every, true)
	if reasonOf(g) != "True PITRArchiving" || g.Status.Backup == nil || g.Status.Backup.PITR == nil {
		t.Fatalf("%s, %+v", reasonOf(g), g.Status.Backup)
	}
	st := g.Status.Backup.PITR
	if st.Site != "a" || !st.Latest.Time.Equal(w.archiver.Latest) || !st.Earliest.Time.Equal(began.Add(-time.Hour)) || st.Bytes != 1<<20 || st.Lag != "<30s" {
		t.Errorf("%+v", st)
	}
	// What it cannot remove is told, and taken back.
	if st.PruneMessage != "" {
		t.Errorf("%q", st.PruneMessage)
	}
	w.archiver.PruneMessage = "remove x: NoDeleteRight"
	if g = w.goesOn(every, true); g.Status.Backup.PITR.PruneMessage != "remove x: NoDeleteRight" || reasonOf(g) != "True PITRArchiving" {
		t.Errorf("%s, %+v", reasonOf(g), g.Status.Backup.PITR)
	}
	w.archiver.PruneMessage = ""
	if g = w.goesOn(every, true); g.Status.Backup.PITR.PruneMessage != "" {
		t.Errorf("%+v", g.Status.Backup.PITR)
	}
	st = g.Status.Backup.PITR
	if w.asked[0] != "10.0.0.1:8090" || w.said.Count(v1alpha1.ReasonPITRArchiving) != 1 {
		t.Errorf("asked %v, said %v", w.asked, w.said.List)
	}
	for name, tc := range map[string]struct{ got, want float64 }{
		"ready": {testutil.ToFloat64(metricReady.WithLabelValues("shop", "orders")), 1}, "lag": {testutil.ToFloat64(metricLag.WithLabelValues("shop", "orders")), 5},
		"bytes": {testutil.ToFloat64(metricBytes.WithLabelValues("shop", "orders")), 1 << 20}, "pending": {testutil.ToFloat64(metricPending.WithLabelValues("shop", "orders")), 17},
		"latest":   {testutil.ToFloat64(metricLatest.WithLabelValues("shop", "orders")), float64(st.Latest.Unix())},
		"earliest": {testutil.ToFloat64(metricEarliest.WithLabelValues("shop", "orders")), float64(st.Earliest.Unix())},
		"uploads":  {testutil.ToFloat64(metricUploads.WithLabelValues("shop", "orders", "succeeded")), 3},
	} {
		if tc.got != tc.want {
			t.Errorf("metric of %s: %v, want %v", name, tc.got, tc.want)
		}
	}
	// Uploads are counted once, also those of the process that comes after.
	w.archiver.UploadsSucceeded, w.archiver.UploadsFailed = 5, 1
	w.goesOn(every, true)
	w.archiver.UploadsSucceeded, w.archiver.UploadsFailed, w.archiver.StartedAt = 2, 0, w.now
	w.goesOn(every, true)
	if n := testutil.ToFloat64(metricUploads.WithLabelValues("shop", "orders", "succeeded")); n != 7 {
		t.Errorf("%v uploads are counted", n)
	}
	// Turned off, nothing of it is told any more.
	g = w.goesOn(every, true)
	g.Spec.Backup.PITR.Enabled = false
	if err := w.c.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if g = w.goesOn(every, true); g.Status.Backup != nil && g.Status.Backup.PITR != nil || reasonOf(g) != "" {
		t.Errorf("after it was turned off: %s, %+v", reasonOf(g), g.Status.Backup)
	}
	if n := testutil.CollectAndCount(metricLag); n != 0 {
		t.Errorf("%d series of lag are left", n)
	}
	writes := w.writes
	w.goesOn(every, true)
	if w.writes != writes {
		t.Error("status of a group without an archive is written")
	}
}

// Times alone are written once in a while: with many groups everything else would wait for it.
func TestStatusIsNotWrittenAllTheTime(t *testing.T) {
	w := newWorld(t, scopetest.Group(archived, scopetest.Running))
	w.goesOn(every, true)
	writes := w.writes
	for range 5 {
		w.goesOn(every, true)
	}
	if w.writes != writes {
		t.Errorf("written %d times in 50 s", w.writes-writes)
	}
	if g := w.goesOn(every, true); w.writes != writes+1 || !g.Status.Backup.PITR.Latest.Time.Equal(w.archiver.Latest) {
		t.Errorf("written %d times in a minute: %s", w.writes-writes, g.Status.Backup.PITR.Latest)
	}
}

func TestAnArchiverThatFallsSilent(t *testing.T) {
	for name, silent := range map[string]func(w *world){
		"its sidecar does not answer": func(w *world) { w.askFails = errors.New("no route") },
		"it writes no status":         func(*world) {},
		"its pod has no address":      func(w *world) { w.facts.Change("a", func(s *scope.SiteFacts) { s.AdminAddr = "" }) },
	} {
		w := newWorld(t, scopetest.Group(archived, scopetest.Running))
		w.goesOn(every, true)
		silent(w)
		if g := w.goesOn(30*time.Second, false); reasonOf(g) != "True PITRArchiving" {
			t.Errorf("%s: told at once: %s", name, reasonOf(g))
		}
		w.goesOn(time.Minute, false)
		g := w.goesOn(2*time.Minute, false)
		if reasonOf(g) != "False PITRSilent" || w.said.Count(v1alpha1.ReasonPITRFailing) != 1 || g.Status.Backup.PITR.Latest == nil {
			t.Errorf("%s: %s, said %v", name, reasonOf(g), w.said.List)
		}
		if lag := testutil.ToFloat64(metricLag.WithLabelValues("shop", "orders")); lag < 200 {
			t.Errorf("%s: the lag stands at %v", name, lag)
		}
	}
}

// The clock of a node that is wrong makes no archiver silent that writes its status.
func TestAnArchiverWithAnotherClock(t *testing.T) {
	w := newWorld(t, scopetest.Group(archived, scopetest.Running))
	for i := range 30 {
		w.archiver.At, w.archiver.Latest = began.Add(time.Hour+time.Duration(i)*time.Second), w.now
		if g := w.goesOn(every, false); strings.HasPrefix(reasonOf(g), "False") {
			t.Fatalf("after %d looks: %s", i, reasonOf(g))
		}
	}
}

// Binary logs that the archive does not have stay, while there is room for them.
func TestLogsAreKeptForTheArchive(t *testing.T) {
	w := newWorld(t, scopetest.Group(archived, scopetest.Running))
	w.goesOn(every, true)
	if w.looks() != 3 {
		t.Error("it is not known whether the sites purge")
	}
	w.goesOn(every, true)
	if n := w.looks(); n != 0 {
		t.Errorf("servers are asked %d times while all is well", n)
	}
	w.askFails = errors.New("away")
	w.goesOn(9*time.Minute, false)
	if !w.servers["a"].state.Purges || w.looks() != 0 {
		t.Error("logs are kept although the archive is only a little behind")
	}
	g := w.goesOn(2*time.Minute, false)
	for site, s := range w.servers {
		if s.state.Purges {
			t.Errorf("%s purges logs that the archive does not have", site)
		}
	}
	if !g.Status.Backup.PITR.Holding || w.said.Count(v1alpha1.ReasonPITRHolding) != 3 || testutil.ToFloat64(metricHolding.WithLabelValues("shop", "orders")) != 1 {
		t.Errorf("%+v, said %v", g.Status.Backup.PITR, w.said.List)
	}
	// One that starts again purges, and is told once more.
	w.servers["b"].state.Purges = true
	if w.goesOn(every, false); w.servers["b"].state.Purges {
		t.Error("a server that started again purges")
	}
	// A quarter of its volume of 10Gi and no more.
	w.servers["c"].state.Bytes = 5<<29 + 1
	g = w.goesOn(every, false)
	if !w.servers["c"].state.Purges || w.servers["a"].state.Purges || reasonOf(g) != "False PITRVolumeFull" || w.said.Count(v1alpha1.ReasonPITRVolumeFull) != 1 {
		t.Errorf("a volume fills up: %s, said %v", reasonOf(g), w.said.List)
	}
	w.servers["c"].state.Bytes = 1 << 30
	if w.goesOn(every, false); !w.servers["c"].state.Purges {
		t.Error("it purges and keeps by turns")
	}
	w.askFails = nil
	w.goesOn(every, true)
	for site, s := range w.servers {
		if !s.state.Purges {
			t.Errorf("%s keeps logs for ever", site)
		}
	}
	if g = w.goesOn(every, true); g.Status.Backup.PITR.Holding || reasonOf(g) != "True PITRArchiving" || w.said.Count(v1alpha1.ReasonPITRReleased) != 2 {
		t.Errorf("%s %+v, said %v", reasonOf(g), g.Status.Backup.PITR, w.said.List)
	}
}

// An operator that starts again finds the sites that an earlier one had keep their logs; what a person decided stands.
func TestLogsThatAnEarlierOperatorKept(t *testing.T) {
	w := newWorld(t, scopetest.Group(archived, scopetest.Running))
	w.servers["b"].state.Purges = false
	if w.goesOn(every, true); !w.servers["b"].state.Purges {
		t.Error("they are kept for ever")
	}
	byHand := newWorld(t, scopetest.Group(archived, scopetest.Running, func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.MysqlConf = map[string]string{"Binlog-Expire-Logs-Auto-Purge": "OFF"}
	}))
	byHand.servers["b"].state.Purges = false
	if byHand.goesOn(every, true); byHand.servers["b"].state.Purges || byHand.looks() != 0 {
		t.Error("the specification says OFF")
	}
	down := newWorld(t, scopetest.Group(archived, scopetest.Running))
	down.facts.Change("b", func(s *scope.SiteFacts) { s.MysqlUp = false })
	down.facts.Change("c", func(s *scope.SiteFacts) { s.Cloning = true })
	if down.goesOn(every, true); down.servers["b"].looks+down.servers["c"].looks != 0 {
		t.Error("a server that is down, or is being cloned, is asked")
	}
}

// What was kept for an archive is kept for it no more once it is turned off, which is what people do whose bucket is gone: nobody looks at these sites again.
func TestLogsOfAnArchiveThatIsTurnedOff(t *testing.T) {
	w := newWorld(t, scopetest.Group(archived, scopetest.Running))
	w.goesOn(every, true)
	w.askFails = errors.New("away")
	w.goesOn(9*time.Minute, false)
	g := w.goesOn(2*time.Minute, false)
	if !g.Status.Backup.PITR.Holding || w.servers["a"].state.Purges {
		t.Fatalf("the test is none: %+v", g.Status.Backup.PITR)
	}
	g.Spec.Backup.PITR.Enabled = false
	if err := w.c.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.servers["b"].fails = errors.New("busy")
	if g = w.goesOn(every, false); g.Status.Backup == nil || g.Status.Backup.PITR == nil || !w.servers["a"].state.Purges || w.servers["b"].state.Purges {
		t.Errorf("site b was not told: %+v", g.Status.Backup)
	}
	w.servers["b"].fails = nil
	g = w.goesOn(every, false)
	for site, s := range w.servers {
		if !s.state.Purges {
			t.Errorf("%s keeps logs for ever", site)
		}
	}
	if g.Status.Backup != nil && g.Status.Backup.PITR != nil || reasonOf(g) != "" {
		t.Errorf("status tells an archive: %s, %+v", reasonOf(g), g.Status.Backup)
	}
	w.looks()
	if w.goesOn(every, false); w.looks() != 0 {
		t.Error("sites of a group without an archive are looked at")
	}
}

// Under little load a log is open for months, and the archive has a file of it for each interval: the active site begins another one.
func TestALogIsNotOpenForMonths(t *testing.T) {
	w := newWorld(t, scopetest.Group(archived, scopetest.Running))
	rotated := func() string {
		return fmt.Sprint(w.servers["a"].rotated, w.servers["b"].rotated, w.servers["c"].rotated)
	}
	w.archiver.Log, w.archiver.Position, w.archiver.ServerUUID = "binlog.000007", 300, uuid
	w.goesOn(every, true)
	w.archiver.Position = 400
	w.goesOn(60000*time.Second-time.Second, true) // 2000 intervals of 30 s
	if rotated() != "0 0 0" {
		t.Errorf("before its time: %s", rotated())
	}
	w.servers["a"].fails = errors.New("busy")
	w.goesOn(every, true)
	w.servers["a"].fails = nil
	w.goesOn(every, true)
	if rotated() != "1 0 0" {
		t.Errorf("the active site alone, and once more after it failed: %s", rotated())
	}
	w.archiver.Log, w.archiver.Position = "binlog.000008", 300
	w.goesOn(every, true)
	w.goesOn(100*time.Hour, true)
	if rotated() != "1 0 0" {
		t.Errorf("nothing was written to it: %s", rotated())
	}
	w.archiver.Position, w.archiver.State = 500, wire.ArchiverFailing
	if w.goesOn(every, true); rotated() != "1 0 0" {
		t.Errorf("while the archive does not grow: %s", rotated())
	}
	w.archiver.State, w.archiver.Log = wire.ArchiverArchiving, "binlog.000009"
	if w.goesOn(every, true); rotated() != "1 0 0" {
		t.Errorf("a log that was just begun: %s", rotated())
	}
}

func TestGroupsOfOthersAreLeftAlone(t *testing.T) {
	for name, change := range map[string]scopetest.Option{
		"another release": func(g *v1alpha1.MysqlFailoverGroup) {
			archived(g)
			g.Status.Claim = &v1alpha1.GroupClaim{Lease: "other/lease"}
		},
		"no archive": func(*v1alpha1.MysqlFailoverGroup) {},
	} {
		w := newWorld(t, scopetest.Group(change))
		if g := w.goesOn(every, true); w.writes != 0 || len(w.asked) != 0 || reasonOf(g) != "" {
			t.Errorf("%s: asked %v, written %d times", name, w.asked, w.writes)
		}
	}
}

func TestCutoffIsSigned(t *testing.T) {
	w := newWorld(t, scopetest.Group(archived, scopetest.Running, func(g *v1alpha1.MysqlFailoverGroup) {
		g.Status.Epochs = []v1alpha1.EpochRecord{{Epoch: 1, Site: "a", PromotedAt: metav1.NewMicroTime(began), Kind: v1alpha1.FailoverBootstrap}}
	}))
	answer, err := w.a.Cutoff(t.Context(), "shop", "orders")
	if err != nil || answer.Backup != "orders-nightly-1" || answer.GTIDExecuted != uuid+":1-5" || !answer.Cutoff.Cutoff.Equal(began.Add(-2*time.Hour)) || len(answer.Epochs) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	body := []byte(fmt.Sprintf(`{"signed":%q}`, answer.Signed))
	if c, err := wire.OpenCutoff(w.key.Public(), "shop", "orders", body); err != nil || c.Backup != answer.Backup {
		t.Errorf("%+v, %v", c, err)
	}
	// Strangers who ask often have the API server asked once.
	for range 100 {
		if _, err := w.a.Cutoff(t.Context(), "shop", "orders"); err != nil {
			t.Fatal(err)
		}
	}
	if w.reads != 1 {
		t.Errorf("the key was read %d times", w.reads)
	}
	w.keyFails, w.now = errors.New("the API server is away"), w.now.Add(2*keyAge)
	for range 10 {
		if _, err := w.a.Cutoff(t.Context(), "shop", "orders"); err == nil {
			t.Fatal("it is answered without the key")
		}
	}
	if w.reads != 2 {
		t.Errorf("the key was read %d times while it could not be", w.reads)
	}
	for _, name := range []string{"carts", ""} {
		if _, err := w.a.Cutoff(t.Context(), "shop", name); !errors.Is(err, wire.ErrUnknownGroup) {
			t.Errorf("%q: %v", name, err)
		}
	}
	plain := newWorld(t, scopetest.Group(scopetest.Running))
	if answer, err := plain.a.Cutoff(t.Context(), "shop", "orders"); err != nil || answer.Signed != "" || answer.Cutoff.Cutoff != nil || plain.reads != 0 {
		t.Errorf("of a group that archives nothing: %+v, %v", answer, err)
	}
	foreign := newWorld(t, scopetest.Group(archived, func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Claim = &v1alpha1.GroupClaim{Lease: "other/lease"} }))
	if _, err := foreign.a.Cutoff(t.Context(), "shop", "orders"); !errors.Is(err, wire.ErrUnknownGroup) {
		t.Errorf("of another release: %v", err)
	}
}
