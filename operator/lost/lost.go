// SPDX-License-Identifier: Apache-2.0

// Package lost counts the rows of the transactions that a failover lost, table by table, from the binary log of the old
// active site once it is back. It changes nothing and decides nothing: a failover never waits for it.
package lost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/binlog"
)

const (
	// tablesTold is how many tables a record names; one more entry sums up the rest.
	tablesTold = 63
	maxBytes   = 4 << 30
	// maxEvent is small beside the memory of the operator: an event is there some four times while it is read.
	maxEvent = 16 << 20
	// maxCounts bounds the counts of all groups together.
	maxCounts = 2
	// countTimeout bounds one count, retryAfter and maxTries how often one is tried that did not get through.
	countTimeout = 10 * time.Minute
	retryAfter   = 15 * time.Second
	maxTries     = 8
	// keptFor is how long an outcome is kept for the loop to take it over.
	keptFor = time.Hour
)

// errPanicked says that what the server sent is no such protocol.
var errPanicked = errors.New("the server's answer cannot be read")

// Access gives the accounts and certificates; *access.Access implements it.
type Access interface {
	Site(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, podIP string) (mysql.Target, error)
	Replication(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, source string) (mysql.Source, error)
}

// Options is what a Counter is made of.
type Options struct {
	Access Access
	// Log is slog.Default if nil.
	Log *slog.Logger
	// Count is binlog.Count if nil.
	Count func(context.Context, mysql.Target, gtid.Set, binlog.Limits) (binlog.Counts, error)
}

// Counter counts in the background. It is safe for concurrent use.
type Counter struct {
	Options
	slots chan struct{}

	mu   sync.Mutex
	jobs map[key]*job
}

// key is a record of a group: an epoch has one.
type key struct {
	group types.UID
	name  types.NamespacedName
	epoch int64
}

type job struct {
	running   bool
	tries     int
	notBefore time.Time
	// rows and state are the outcome once done.
	done  bool
	rows  []v1alpha1.LostRows
	state string
	at    time.Time
}

// New makes a Counter.
func New(o Options) *Counter {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Count == nil {
		o.Count = binlog.Count
	}
	return &Counter{Options: o, slots: make(chan struct{}, maxCounts), jobs: map[key]*job{}}
}

// Rows returns the rows of a record's lost transactions once they are counted, and in state v1alpha1.LostRowsCounted or
// why the rows are not whole. It never blocks: the first call for a record starts the count, later ones ask for the
// outcome. podIP is the address of the pod of the old active site, empty if it has none.
func (c *Counter) Rows(group *v1alpha1.MysqlFailoverGroup, r v1alpha1.FailoverRecord, podIP string) (rows []v1alpha1.LostRows, state string, done bool) {
	now := time.Now()
	k := key{group.UID, types.NamespacedName{Namespace: group.Namespace, Name: group.Name}, r.Epoch}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune(now)
	j := c.jobs[k]
	if j == nil {
		j = &job{}
		c.jobs[k] = j
	}
	j.at = now
	switch {
	case j.done:
		return j.rows, j.state, true
	case j.running || podIP == "" || now.Before(j.notBefore):
		return nil, "", false
	}
	want, err := gtid.Parse(r.LostSet)
	if err != nil || want.IsEmpty() {
		j.done, j.state = true, "not counted: the record does not name the transactions"
		return nil, j.state, true
	}
	j.running = true
	go c.run(group.DeepCopy(), k, r.From, podIP, want)
	return nil, "", false
}

// prune forgets what nobody has asked for in a while.
func (c *Counter) prune(now time.Time) {
	for k, j := range c.jobs {
		if !j.running && now.Sub(j.at) > keptFor {
			delete(c.jobs, k)
		}
	}
}

// run counts once. A count ends by itself: nothing that outlives the process is at stake, so it hangs on no context.
func (c *Counter) run(group *v1alpha1.MysqlFailoverGroup, k key, site, podIP string, want gtid.Set) {
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	log := c.Log.With("namespace", group.Namespace, "group", group.Name, "site", site, "epoch", k.epoch)
	log.Info("counting lost rows", "transactions", want.Count())
	counts, err := c.count(ctx, group, site, podIP, want)
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[k]
	if j == nil {
		return
	}
	j.running, j.at = false, time.Now()
	j.tries++
	if err != nil {
		log.Error("count lost rows", "error", err)
	}
	reason, final := why(err)
	switch {
	case err == nil:
		j.done, j.rows, j.state = true, rowsOf(counts), stateOf(counts)
	case final || j.tries >= maxTries:
		j.done, j.state = true, "not counted: "+reason
	default:
		j.notBefore = j.at.Add(retryAfter)
	}
}

// count counts once. The library trusts what it reads before an event, such as the greeting; where it panics, the count
// ends and not the operator, whose loops decide about every group. The value may quote rows and is not told.
func (c *Counter) count(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, podIP string, want gtid.Set) (out binlog.Counts, err error) {
	defer func() {
		if recover() != nil {
			out, err = binlog.Counts{}, errPanicked
		}
	}()
	// The site's certificate is that of the admin interface; the account and the port are those of a replica.
	target, err := c.Access.Site(ctx, group, site, podIP)
	if err != nil {
		return binlog.Counts{}, fmt.Errorf("reach %s: %w", site, err)
	}
	source, err := c.Access.Replication(ctx, group, site)
	if err != nil {
		return binlog.Counts{}, fmt.Errorf("reach %s: %w", site, err)
	}
	target.Addr = net.JoinHostPort(podIP, strconv.Itoa(wire.PortMySQL))
	target.User, target.Password = source.User, source.Password
	target.DialTimeout = cmp.Or(target.DialTimeout, 3*time.Second)
	return c.Count(ctx, target, want, binlog.Limits{Tables: tablesTold, Bytes: maxBytes, EventBytes: maxEvent})
}

// why says in words why rows were not counted, and whether that will stay so.
func why(err error) (reason string, final bool) {
	for _, known := range []error{binlog.ErrPurged, binlog.ErrUnknown, binlog.ErrTooLarge, binlog.ErrUnreadable, binlog.ErrIncomplete} {
		if errors.Is(err, known) {
			return known.Error(), true
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("it takes longer than %s", countTimeout), true
	}
	return "the binary log of the old active site could not be read", false
}

func rowsOf(c binlog.Counts) []v1alpha1.LostRows {
	var rows []v1alpha1.LostRows
	for _, t := range c.Tables {
		rows = append(rows, v1alpha1.LostRows{Schema: t.Schema, Table: t.Name, Inserted: t.Inserted, Updated: t.Updated, Deleted: t.Deleted})
	}
	if c.RestTables > 0 {
		rows = append(rows, v1alpha1.LostRows{Inserted: c.Rest.Inserted, Updated: c.Rest.Updated, Deleted: c.Rest.Deleted})
	}
	return rows
}

// stateOf admits what rows cannot tell.
func stateOf(c binlog.Counts) string {
	if c.Statements > 0 {
		return fmt.Sprintf("%s, but for %d statements that are not rows, such as DDL", v1alpha1.LostRowsCounted, c.Statements)
	}
	return v1alpha1.LostRowsCounted
}
