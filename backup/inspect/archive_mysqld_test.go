// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package inspect

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// world is a server and an archive that gets its logs.
type world struct {
	t        *testing.T
	s        *mysqltest.Server
	config   bucket.Config
	identity *age.X25519Identity
	seen     map[string]bool
}

func newWorld(t *testing.T, config ...string) *world {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, identity: id, seen: map[string]bool{}, config: bucket.Config{Folder: t.TempDir(), Namespace: "shop", Group: "orders"}}
	w.s = mysqltest.Start(t, mysqltest.Options{Config: config})
	w.s.Exec(t, "SET GLOBAL super_read_only = OFF", "CREATE DATABASE shop")
	return w
}

func (w *world) text(query string) (text string) {
	w.t.Helper()
	if err := w.s.Root(w.t).QueryRowContext(w.t.Context(), query).Scan(&text); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return text
}

func (w *world) executed() gtid.Set { return gtid.MustParse(w.text("SELECT @@GLOBAL.gtid_executed")) }

// archive puts what the server has written since into the folder of an epoch, encrypted; a log is sealed first, so that it is whole.
func (w *world) archive(epoch int64, site string) {
	w.t.Helper()
	ctx := w.t.Context()
	w.s.Exec(w.t, "FLUSH BINARY LOGS")
	a := w.open()
	defer func() { _ = a.Close() }()
	recipients, err := archive.ParseRecipients([]string{w.identity.Recipient().String()})
	if err != nil {
		w.t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(w.s.Dir, "data", "binlog.0*"))
	if err != nil || len(files) < 2 {
		w.t.Fatalf("no binary logs in %s: %v", w.s.Dir, err)
	}
	slices.Sort(files)
	for _, file := range files[:len(files)-1] {
		if w.seen[file] {
			continue
		}
		w.seen[file] = true
		raw, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		f, err := a.Create(ctx, archive.LogManifest{Epoch: epoch, Site: site, ServerUUID: w.text("SELECT @@server_uuid"), Log: filepath.Base(file), Sealed: true}, recipients)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := f.Write(raw); err != nil {
			w.t.Fatal(err)
		}
		held := archive.NewCounter(gtid.Set{}, false)
		for at := len(archive.Magic); at < len(raw); {
			h, err := archive.ParseHeader(raw[at:])
			if err != nil {
				w.t.Fatal(err)
			}
			if h.Telling() {
				if err := held.Add(raw[at:at+int(h.Bytes)], int64(at)); err != nil {
					w.t.Fatal(err)
				}
			}
			at += int(h.Bytes)
		}
		c := held.Content()
		c.SeenAt = time.Now()
		if _, err := f.Commit(ctx, c); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) open() *archive.Archive {
	w.t.Helper()
	a, err := archive.Open(w.t.Context(), w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// epoch writes with which set an epoch began.
func (w *world) epoch(n int64, site string, began gtid.Set) {
	w.t.Helper()
	a := w.open()
	defer func() { _ = a.Close() }()
	e := archive.Epoch{Epoch: n, Site: site, PromotedAt: time.Now(), Kind: archive.KindEmergency, GTIDExecuted: began.String()}
	if err := a.PutEpoch(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
}

type answered struct {
	lines []wire.InspectLine
	text  string
	end   wire.InspectEnd
	code  int
}

func (a answered) transactions() (all []wire.ArchivedTransaction) {
	for _, l := range a.lines {
		if l.Transaction != nil {
			all = append(all, *l.Transaction)
		}
	}
	return all
}

// ask runs the program with a question, and reads its answer as the plugin does.
func (w *world) ask(command string, r wire.InspectRequest) answered {
	w.t.Helper()
	if r.Identity == "" {
		r.Identity = w.identity.String()
	}
	question, err := json.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	var out, log bytes.Buffer
	p := &Program{Bucket: w.config, In: bytes.NewReader(question), Out: &out, Log: slog.New(slog.NewJSONHandler(&log, nil))}
	a := answered{code: p.Run(w.t.Context(), command)}
	if strings.Contains(log.String()+out.String(), "AGE-SECRET-KEY") {
		w.t.Error("the identity got out")
	}
	for _, raw := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
		l, err := wire.ParseInspectLine(raw)
		if err != nil {
			w.t.Fatalf("%v: %.200s", err, raw)
		}
		a.text += l.Text
		if l.End != nil {
			a.end = *l.End
		}
		a.lines = append(a.lines, l)
	}
	if a.end.Reason == "" {
		w.t.Fatalf("the answer has no end: %.400s", out.String())
	}
	return a
}

// load runs SQL as a person would who pipes it into a client.
func (w *world) load(text string) {
	w.t.Helper()
	c := driver.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd = "unix", filepath.Join(w.s.Dir, "mysqld.sock"), "root", mysqltest.Passwords.Root
	c.MultiStatements, c.MaxAllowedPacket = true, 0
	connector, err := driver.NewConnector(c)
	if err != nil {
		w.t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(w.t.Context(), text); err != nil {
		w.t.Fatalf("%v\n%.4000s", err, text)
	}
}

func (w *world) digest(table string) string {
	w.t.Helper()
	var name, sum string
	if err := w.s.Root(w.t).QueryRowContext(w.t.Context(), "CHECKSUM TABLE "+table).Scan(&name, &sum); err != nil {
		w.t.Fatal(err)
	}
	return sum + " of " + w.text("SELECT COUNT(*) FROM "+table)
}
