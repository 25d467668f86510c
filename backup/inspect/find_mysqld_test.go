// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package inspect

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

func TestFind(t *testing.T) {
	w := newWorld(t)
	w.s.Exec(t, "CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(20))", "CREATE TABLE shop.other (id INT PRIMARY KEY)", "CREATE DATABASE attic",
		"CREATE TABLE attic.orders (id INT PRIMARY KEY)")
	w.archive(1, "a")
	w.s.Exec(t, "INSERT INTO shop.orders VALUES (1, 'a'), (2, 'b')", "SET GTID_NEXT = 'AUTOMATIC:nightly'", "UPDATE shop.orders SET note = 'c' WHERE id = 2",
		"SET GTID_NEXT = 'AUTOMATIC'", "INSERT INTO shop.other VALUES (2)")
	time.Sleep(20 * time.Millisecond)
	middle := time.Now().UTC()
	time.Sleep(20 * time.Millisecond)
	w.s.Exec(t, "SET SESSION binlog_transaction_compression = ON", "DELETE FROM shop.orders WHERE id = 1")
	w.archive(1, "a")
	w.s.Exec(t, "DROP TABLE attic.orders", "USE shop", "DROP TABLE IF EXISTS other, orders", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "TRUNCATE shop.orders", "DROP DATABASE attic")
	w.archive(2, "a")

	find := func(ask wire.AskFind) []wire.ArchivedTransaction {
		t.Helper()
		got := w.ask(wire.InspectFind, wire.InspectRequest{Find: &ask})
		if got.code != 0 {
			t.Fatalf("%+v", got.end)
		}
		return got.transactions()
	}

	drops := find(wire.AskFind{Drop: &wire.AskTable{Schema: "shop", Table: "orders"}})
	if len(drops) != 2 || drops[0].Statements[0] != "DROP TABLE shop.other, shop.orders" || drops[1].Statements[0] != "TRUNCATE TABLE shop.orders" || drops[0].Epoch != 2 {
		t.Fatalf("%+v", drops)
	}
	all := find(wire.AskFind{Drop: &wire.AskTable{Table: "orders"}})
	if len(all) != 3 || all[1].Previous != all[0].GTID || all[0].Previous == "" {
		t.Errorf("%+v", all)
	}
	if got := find(wire.AskFind{Drop: &wire.AskTable{Schema: "attic", Table: "orders"}}); len(got) != 2 || got[1].Statements[0] != "DROP DATABASE attic" {
		t.Errorf("%+v", got)
	}

	around := find(wire.AskFind{Before: middle})
	if len(around) != 2 || around[0].Role != wire.RoleBefore || around[1].Role != wire.RoleAfter || around[0].Tables[0].Table != "other" || around[1].Tables[0].Deleted != 1 {
		t.Errorf("%+v", around)
	}
	if got := find(wire.AskFind{Before: time.Now().Add(time.Hour)}); len(got) != 1 || got[0].Role != wire.RoleBefore || got[0].Statements[0] != "DROP DATABASE attic" {
		t.Errorf("%+v", got)
	}

	row := func(key string, column int) []wire.ArchivedTransaction {
		return find(wire.AskFind{Touching: &wire.AskRow{AskTable: wire.AskTable{Schema: "shop", Table: "orders"}, Key: []string{key}, Column: column}, Until: middle.Add(time.Minute)})
	}
	if got := row("2", 0); len(got) != 6 { // CREATE, INSERT, UPDATE, and DROP, CREATE, TRUNCATE
		t.Errorf("%d: %+v", len(got), got)
	}
	if got := row("c", 2); len(got) != 5 || got[1].Tables[0].Updated != 1 || !containsTag(got[1].GTID) {
		t.Errorf("%d: %+v", len(got), got)
	}
	if got := find(wire.AskFind{Touching: &wire.AskRow{AskTable: wire.AskTable{Table: "other"}}, Epoch: 1}); len(got) != 2 {
		t.Errorf("%+v", got)
	}
	by := w.ask(wire.InspectFind, wire.InspectRequest{Find: &wire.AskFind{Touching: &wire.AskRow{AskTable: wire.AskTable{Table: "orders"}, Key: []string{"2"}}}})
	if by.end.KeyBy == "" {
		t.Error("nobody says that the key is a guess")
	}
	if got := w.ask(wire.InspectFind, wire.InspectRequest{Identity: otherIdentity(t), Find: &wire.AskFind{Drop: &wire.AskTable{Table: "orders"}}}); got.end.Reason != reasonIdentity || got.code != exitRefused {
		t.Errorf("%+v", got.end)
	}
}

func containsTag(gtid string) bool {
	n := 0
	for _, c := range gtid {
		if c == ':' {
			n++
		}
	}
	return n == 2
}

func TestTimeline(t *testing.T) {
	w := newWorld(t)
	w.s.Exec(t, "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1)")
	w.archive(1, "a")
	began := w.executed()
	w.s.Exec(t, "INSERT INTO shop.orders VALUES (2)")
	lost := w.executed().Subtract(began)
	w.archive(1, "a")
	w.epoch(2, "b", began)
	got := w.ask(wire.InspectTimeline, wire.InspectRequest{Timeline: &wire.AskTimeline{Target: &wire.BackupTarget{GTID: lost.String()}}})
	if got.code != 0 || len(got.lines) != 3 {
		t.Fatalf("%+v", got)
	}
	tl := got.lines[0].Timeline
	if len(tl.Epochs) != 2 || tl.Epochs[0].Lost != 1 || tl.Epochs[0].LostGTIDs != lost.String() || tl.Epochs[1].Site != "b" || tl.Earliest.IsZero() || tl.Files == 0 {
		t.Errorf("%+v", tl)
	}
	if c := got.lines[1].Check; c == nil || c.Refusal != "NoBackup" {
		t.Errorf("%+v", c)
	}
}
