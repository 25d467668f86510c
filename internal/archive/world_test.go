// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// txn is a transaction of the model.
type txn struct {
	id string
	at int64 // microseconds
}

func (x txn) set() gtid.Set { return gtid.MustParse(x.id) }

func setOf(all []txn) gtid.Set {
	var ids []string
	for _, x := range all {
		ids = append(ids, x.id)
	}
	return gtid.MustParse(strings.Join(ids, ","))
}

// binlog is one log of a site: what it had before, and what is in it. A transaction has 100 bytes, the beginning 200.
type binlog struct {
	name     string
	previous []txn
	txns     []txn
}

const txnBytes, beginBytes = 100, 200

func (b *binlog) end() int64 { return beginBytes + txnBytes*int64(len(b.txns)) }

// node is a site.
type node struct {
	name, uuid string
	executed   []txn // in order
	logs       []*binlog
	number     int
	own        int
}

func (n *node) rotate() {
	n.number++
	n.logs = append(n.logs, &binlog{name: fmt.Sprintf("binlog.%06d", n.number), previous: slices.Clone(n.executed)})
}

func (n *node) take(x txn) {
	n.executed = append(n.executed, x)
	last := n.logs[len(n.logs)-1]
	last.txns = append(last.txns, x)
}

// clone makes a site a copy of another, with logs of its own that begin again.
func (n *node) clone(from *node) {
	n.executed, n.logs, n.number = slices.Clone(from.executed), nil, 0
	n.rotate()
}

// world is a group with its archive, and what is true of it.
type world struct {
	nodes   []*node
	active  *node
	epoch   int64
	now     int64
	epochs  []Epoch
	files   []Log
	content map[string][]txn // by key
	pruned  *Pruned
	beat    *Heartbeat
	// truth is the history, lost what failovers lost; backups are lengths of truth.
	truth   []txn
	lost    []txn
	backups []backupOf
	// gone are transactions that were purged from the server that archived, before they were.
	tags bool
}

type backupOf struct {
	set gtid.Set
	n   int
	at  time.Time
}

func newWorld(sites int, tags bool) *world {
	w := &world{content: map[string][]txn{}, now: 1_000_000_000, tags: tags}
	for i := range sites {
		n := &node{name: string(rune('a' + i)), uuid: fmt.Sprintf("%08d-0000-0000-0000-000000000000", i+1)}
		n.rotate()
		w.nodes = append(w.nodes, n)
	}
	w.promote(w.nodes[0], KindInitial)
	return w
}

func (w *world) tick() int64 { w.now += 1000; return w.now }

func (w *world) promote(n *node, kind string) {
	w.epoch++
	w.active = n
	w.epochs = append(w.epochs, Epoch{Version: 1, Epoch: w.epoch, Site: n.name, ServerUUID: n.uuid, PromotedAt: micro(w.tick()), Kind: kind,
		GTIDExecuted: setOf(n.executed).String()})
}

func (w *world) write() {
	n := w.active
	n.own++
	id := fmt.Sprintf("%s:%d", n.uuid, n.own)
	if w.tags && n.own%3 == 0 {
		id = fmt.Sprintf("%s:audit:%d", n.uuid, n.own)
	}
	x := txn{id: id, at: w.tick()}
	n.take(x)
	w.truth = append(w.truth, x)
}

// replicate gives a replica at most so many transactions.
func (w *world) replicate(n *node, most int) {
	if n == w.active {
		return
	}
	for _, x := range w.active.executed[len(n.executed):min(len(w.active.executed), len(n.executed)+most)] {
		n.take(x)
	}
}

func (w *world) planned(n *node) {
	w.replicate(n, len(w.active.executed))
	w.promote(n, KindPlanned)
}

// emergency opens a site with what it has. The old one, and whoever has more, is made again.
func (w *world) emergency(n *node) {
	w.lost = append(w.lost, w.truth[len(n.executed):]...)
	w.truth = slices.Clone(w.truth[:len(n.executed)])
	w.promote(n, KindEmergency)
	for _, m := range w.nodes {
		if m != n && len(m.executed) > len(n.executed) {
			m.clone(n)
		}
	}
}

func (w *world) listing() Listing {
	l := NewListing(w.epochs, w.files)
	l.Heartbeat, l.Pruned = w.beat, w.pruned
	return l
}

// put archives [from, to) of a log.
func (w *world) put(b *binlog, from int64, sealed bool) {
	n := w.active
	first := int((max(from, beginBytes) - beginBytes) / txnBytes)
	held := b.txns[first:]
	l := Log{LogManifest: LogManifest{Version: 1, Epoch: w.epoch, Site: n.name, ServerUUID: n.uuid, Log: b.name, From: from, To: b.end(), Sealed: sealed,
		Transactions: int64(len(held)), SeenAt: micro(w.tick())}, Set: setOf(held), Previous: setOf(b.previous).Union(setOf(b.txns[:first]))}
	for _, x := range held {
		if l.FirstCommit == 0 {
			l.FirstCommit = x.at
		}
		l.LastCommit = x.at
	}
	if sealed {
		// What came after it may be in the next log.
		l.SeenAt = micro(1)
		for _, x := range slices.Concat(b.previous, held) {
			l.SeenAt = micro(x.at)
		}
	}
	l.Object.Key = l.file() + "-0000000000000000"
	w.files = append(w.files, l)
	w.content[l.key()] = slices.Clone(held)
}

// archive brings at most so many files of the active site's logs into the archive.
func (w *world) archive(most int) {
	l := w.listing()
	var own []ServerLog
	for _, b := range w.active.logs {
		own = append(own, ServerLog{Name: b.name, Previous: setOf(b.previous)})
	}
	c := w.cutoff()
	if next := NextPruned(l, c); !c.At.IsZero() && len(w.files) == 0 {
		// As the archiver does that begins beyond what is archived.
		w.pruned = &next
		l = w.listing()
	}
	at := Resume(own, Covered(History(l)))
	for i := at; i < len(w.active.logs) && most > 0; i++ {
		b, last := w.active.logs[i], i+1 == len(w.active.logs)
		held := HeldOf(l, LogManifest{Epoch: w.epoch, Site: w.active.name, ServerUUID: w.active.uuid}, b.name)
		switch {
		case held.Sealed || last && held.To == b.end():
		case last:
			w.put(b, held.To, false)
			most--
		default:
			w.put(b, 0, true)
			most--
		}
	}
}

// archiveAll archives everything, so that the archive is as new as the active site.
func (w *world) archiveAll() {
	w.archive(1 << 20)
	n := w.active
	w.beat = &Heartbeat{Version: 1, Epoch: w.epoch, Site: n.name, ServerUUID: n.uuid, At: micro(w.tick()), GTIDExecuted: setOf(n.executed).String()}
}

func (w *world) purge(keep int) {
	n := w.active
	if len(n.logs) > keep {
		n.logs = n.logs[len(n.logs)-keep:]
	}
}

func (w *world) backup() {
	w.backups = append(w.backups, backupOf{set: setOf(w.active.executed), n: len(w.active.executed), at: micro(w.tick())})
}

// cutoff is the oldest retained backup of the history.
func (w *world) cutoff() Cutoff {
	for _, b := range w.backups {
		if b.n <= len(w.truth) && setOf(w.truth[:b.n]).Equal(b.set) {
			return Cutoff{Backup: "b", At: b.at, Set: b.set}
		}
	}
	return Cutoff{}
}

// prune drops the oldest backups, and what is not needed any more.
func (w *world) prune(drop int) {
	w.backups = w.backups[min(drop, len(w.backups)):]
	c := w.cutoff()
	l := w.listing()
	old := Prunable(l, c)
	if len(old) == 0 {
		return
	}
	pruned := NextPruned(l, c)
	w.pruned = &pruned
	for _, o := range old {
		w.files = slices.DeleteFunc(w.files, func(f Log) bool { return f.key() == o.key() })
	}
}
