// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package archiver

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

const password = `ba'ck"up\pass#word`

// group is a group of which one server archives: who is asked answers as the test says.
type group struct {
	t        *testing.T
	dir      string
	key      ed25519.PrivateKey
	identity *age.X25519Identity
	web      *httptest.Server

	mu     sync.Mutex
	turn   wire.ArchiverTurn
	cutoff wire.Cutoff
	// activeFor is how many questions are answered as turn says; the others are told that it is over. Negative: all.
	activeFor int
	// away is true while the operator does not answer.
	away bool
}

func newGroup(t *testing.T) *group {
	t.Helper()
	g := &group{t: t, dir: t.TempDir(), activeFor: -1}
	_, g.key, _ = ed25519.GenerateKey(nil)
	var err error
	if g.identity, err = age.GenerateX25519Identity(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(g.dir, "bucket"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "password"), []byte(password+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{site}"+wire.PathArchiverTurn, func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		turn := g.turn
		turn.Active = turn.Active && turn.Site == r.PathValue("site") && g.activeFor != 0
		if g.activeFor > 0 {
			g.activeFor--
		}
		_ = json.NewEncoder(w).Encode(turn)
	})
	mux.HandleFunc("GET "+wire.PathPITRCutoff, func(w http.ResponseWriter, _ *http.Request) {
		g.mu.Lock()
		c, away, key := g.cutoff, g.away, g.key
		g.mu.Unlock()
		if away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		c.Namespace, c.Group = "shop", "orders"
		signed, err := wire.SignCutoff(key, c)
		if err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(wire.CutoffAnswer{Cutoff: c, Signed: signed})
	})
	g.web = httptest.NewServer(mux)
	t.Cleanup(g.web.Close)
	return g
}

// opened says that a server is opened in a new epoch.
func (g *group) opened(epoch int64, site string, s *mysqltest.Server) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turn = wire.ArchiverTurn{Epoch: epoch, Site: site, Active: true}
	g.cutoff.Epoch, g.cutoff.Site = epoch, site
	g.cutoff.Epochs = append([]wire.CutoffEpoch{{Epoch: epoch, Site: site, ServerUUID: text(g.t, s, "SELECT @@server_uuid"), PromotedAt: time.Now(), Kind: "Planned",
		GTIDExecuted: executed(g.t, s).String()}}, g.cutoff.Epochs...)
}

// config is that of a site.
func (g *group) config(site string, s *mysqltest.Server) wire.ArchiverConfig {
	return wire.ArchiverConfig{
		Bucket: wire.BackupBucket{Folder: filepath.Join(g.dir, "bucket"), Namespace: "shop", Group: "orders"}, Profile: "nightly", GroupUID: "uid", Site: site,
		Recipients: []string{g.identity.Recipient().String()}, IntervalMillis: 5000, OperatorURL: g.web.URL, SidecarURL: g.web.URL + "/" + site,
		AuthorityKey: base64.StdEncoding.EncodeToString(g.key.Public().(ed25519.PublicKey)),
		Server: wire.ArchiverServer{Socket: filepath.Join(s.Dir, "mysqld.sock"), User: mysql.AccountBackup, PasswordFile: filepath.Join(g.dir, "password"),
			BinlogIndex: filepath.Join(s.Dir, "data", "binlog.index")},
		StatusFile: filepath.Join(g.dir, "status-"+site+".json"), MemoryBytes: 256 << 20,
	}
}

// run starts an archiver in this process; it ends with the test or with the function.
func (g *group) run(site string, s *mysqltest.Server) (stop func()) {
	g.t.Helper()
	return g.runConfig(g.config(site, s))
}

func (g *group) runConfig(wc wire.ArchiverConfig) (stop func()) {
	t := g.t
	t.Helper()
	c, err := ParseConfig([]byte(wc.Text()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	log := io.Discard
	if testing.Verbose() {
		log = os.Stderr
	}
	p := New(c, slog.New(slog.NewTextHandler(log, nil)).With("site", wc.Site))
	p.pruneEvery, p.config.IntervalMillis = 2*time.Second, 500
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	stop = func() {
		began := time.Now()
		cancel()
		<-done
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end took %s", took)
		}
	}
	t.Cleanup(stop)
	return stop
}

// helperVariable has this test program be an archiver in a process of its own, which can be killed.
const helperVariable = "MFG_TEST_ARCHIVER_RATE"

func TestMain(m *testing.M) {
	rate, err := strconv.ParseInt(os.Getenv(helperVariable), 10, 64)
	if err != nil {
		os.Exit(m.Run())
	}
	c, err := ParseConfig([]byte(os.Getenv(wire.EnvArchiverConfig)))
	if err != nil {
		panic(err)
	}
	p := New(c, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	p.config.IntervalMillis, p.rate, p.rateBeside = 500, rate, rate
	p.Run(context.Background())
}

// process starts an archiver in a process of its own, which reads so many bytes a second at most.
func (g *group) process(site string, s *mysqltest.Server, rate int64) *exec.Cmd {
	g.t.Helper()
	own, err := os.Executable()
	if err != nil {
		g.t.Fatal(err)
	}
	cmd := exec.CommandContext(g.t.Context(), own)
	cmd.Env = append(os.Environ(), helperVariable+"="+strconv.FormatInt(rate, 10), wire.EnvArchiverConfig+"="+g.config(site, s).Text())
	if testing.Verbose() {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func (g *group) status(site string) wire.ArchiverStatus {
	raw, err := os.ReadFile(filepath.Join(g.dir, "status-"+site+".json"))
	if err != nil {
		return wire.ArchiverStatus{}
	}
	s, err := wire.ParseArchiverStatus(raw)
	if err != nil {
		g.t.Errorf("status: %v\n%s", err, raw)
	}
	return s
}

// until waits for a status.
func (g *group) until(site, what string, yes func(wire.ArchiverStatus) bool) wire.ArchiverStatus {
	g.t.Helper()
	var s wire.ArchiverStatus
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		s = g.status(site)
		if yes(s) {
			return s
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("not within 90 s: %s: %+v", what, s)
		}
	}
}

// archived waits until a server is archived as it is now.
func (g *group) archived(site string) archive.Listing {
	g.t.Helper()
	now := time.Now()
	g.until(site, "all is archived", func(st wire.ArchiverStatus) bool { return st.Latest.After(now) && st.PendingBytes == 0 })
	return g.list()
}

func (g *group) open() *archive.Archive {
	g.t.Helper()
	a, err := archive.Open(g.t.Context(), bucket.Config{Folder: filepath.Join(g.dir, "bucket"), Namespace: "shop", Group: "orders"})
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

func (g *group) list() archive.Listing {
	g.t.Helper()
	l, err := g.open().List(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	if len(l.Unreadable) > 0 {
		g.t.Fatalf("unreadable: %+v", l.Unreadable)
	}
	return l
}

// plaintext is a log as the archive has it in one folder, all of its files behind each other.
func (g *group) plaintext(l archive.Listing, epoch int64, log string) []byte {
	g.t.Helper()
	ids, err := bucket.ParseIdentities(strings.NewReader(g.identity.String()))
	if err != nil {
		g.t.Fatal(err)
	}
	var out bytes.Buffer
	for _, f := range l.Logs {
		if f.Epoch != epoch || f.Log != log {
			continue
		}
		if f.From != int64(out.Len()) {
			g.t.Fatalf("%s begins at %d, and %d bytes are before it", f.Name(), f.From, out.Len())
		}
		r, err := g.open().Read(g.t.Context(), f, ids)
		if err != nil {
			g.t.Fatal(err)
		}
		if _, err := io.Copy(&out, r); err != nil {
			g.t.Fatal(err)
		}
		_ = r.Close()
	}
	return out.Bytes()
}

// server is one that takes writes and has the account of backups.
func newServer(t *testing.T, opts mysqltest.Options) *mysqltest.Server {
	t.Helper()
	opts.TLS = true
	opts.Config = append(opts.Config, "innodb_redo_log_capacity=64M", "max_allowed_packet=64M")
	s := mysqltest.Start(t, opts)
	s.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
	s.Exec(t, append([]string{"SET sql_log_bin = 0"}, mysql.BackupAccountStatements(password, true)...)...)
	s.Exec(t, "SET sql_log_bin = 0", "GRANT REPLICATION SLAVE ON *.* TO '"+mysql.AccountBackup+"'@'%'")
	return s
}

func text(t *testing.T, s *mysqltest.Server, query string) string {
	t.Helper()
	var v string
	if err := s.Root(t).QueryRowContext(context.Background(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func executed(t *testing.T, s *mysqltest.Server) gtid.Set {
	t.Helper()
	return gtid.MustParse(text(t, s, "SELECT @@GLOBAL.gtid_executed"))
}

// logs are the names of the server's binary logs.
func logs(t *testing.T, s *mysqltest.Server) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.Dir, "data", "binlog.index"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, line := range strings.Fields(string(raw)) {
		names = append(names, filepath.Base(line))
	}
	return names
}

// fromServer is a log as mysqlbinlog gets it from the server.
func fromServer(t *testing.T, s *mysqltest.Server, log string) []byte {
	t.Helper()
	dir := mysqltest.Folder(t, false)
	cmd := mysqltest.Command(t, dir, "mysqlbinlog", "--read-from-remote-server", "--raw", "--host=127.0.0.1", fmt.Sprintf("--port=%d", s.Port), "--ssl-mode=REQUIRED",
		"--user="+mysql.AccountBackup, "--result-file=/srv/", log)
	cmd.Env = append(cmd.Env, "MYSQL_PWD="+password, "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mysqlbinlog: %v\n%s", err, out)
	}
	raw, err := os.ReadFile(filepath.Join(dir, log))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// decoded is what mysqlbinlog makes of a log.
func decoded(t *testing.T, raw []byte) string {
	t.Helper()
	dir := mysqltest.Folder(t, false)
	if err := os.WriteFile(filepath.Join(dir, "log.000001"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := mysqltest.Command(t, dir, "mysqlbinlog", "--verify-binlog-checksum", "/srv/log.000001")
	cmd.Env = append(cmd.Env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("mysqlbinlog: %v", err)
	}
	return string(out)
}
