// SPDX-License-Identifier: Apache-2.0

package drill

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/drill/verdict"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

const (
	// canarySchema begins the name of the schema of a drill. Each drill has its own: of two at once, the one that ends first
	// must not drop the other's rows.
	canarySchema = "mfg_drill_"
	// canaryEvery is how often each site is tried: no pause can be measured more exactly.
	canaryEvery = 20 * time.Millisecond
	// canaryRestart is how long an ended session waits before the next one.
	canaryRestart = 100 * time.Millisecond
	// canaryPatience is how long the first row, and the last words, may take.
	canaryPatience = 10 * time.Second
	// judgePatience is how long it may take to read all rows.
	judgePatience = time.Minute
)

// Canary writes rows on both sites of a drill, over the socket in the pod, and notes when each was acknowledged. The site
// that is open accepts them; the other refuses. All times are by the one clock of this machine.
type Canary struct {
	namespace, group string
	sites            []string
	schema, table    string
	password         string
	Env              cli.Environment
	cluster          Cluster

	quit chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	next  int64
	Acked []Acknowledged
	said  string // the mysql client's last words that are no refusal
}

// Acknowledged is a row that a site said it has committed.
type Acknowledged struct {
	Site string
	Row  int64
	At   time.Time
}

// StartCanary makes the table on the active site, and writes until end. It returns once the first row is acknowledged.
func (op *Op) StartCanary(ctx context.Context, env cli.Environment, c Cluster, home string) (*Canary, error) {
	k := &Canary{namespace: op.Namespace, group: op.Group, sites: []string{home, op.To}, Env: env, cluster: c, quit: make(chan struct{}),
		schema: canarySchema + strconv.FormatInt(env.Now().UnixMilli(), 10)}
	k.table = k.schema + ".canary"
	var err error
	if k.password, err = (&mysqlclient.Op{Namespace: op.Namespace, Group: op.Group, User: "root"}).Password(ctx, c); err != nil {
		return nil, k.without(err)
	}
	if _, err := k.sql(ctx, home, "CREATE SCHEMA "+k.schema); err != nil {
		return nil, k.without(err)
	}
	if _, err := k.sql(ctx, home, "CREATE TABLE "+k.table+" (id BIGINT PRIMARY KEY)"); err != nil {
		return nil, errors.Join(k.without(err), k.End(ctx, home))
	}
	for _, site := range k.sites {
		k.done.Go(func() { k.write(context.WithoutCancel(ctx), site) })
	}
	if !k.await(ctx, home) {
		k.mu.Lock()
		err := fmt.Errorf("no row was acknowledged by %s within %s (the mysql client says: %s)\n  see whether clients can write: kubectl mfg status %s -n %s",
			home, canaryPatience, cmp.Or(k.said, "nothing"), k.group, k.namespace)
		k.mu.Unlock()
		return nil, errors.Join(k.without(err), k.End(ctx, home))
	}
	return k, nil
}

// without adds to an error how to drill without a canary.
func (k *Canary) without(err error) error {
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("the canary needs the right to exec into pods and to read the group's root Secret: %w", err)
	}
	return cli.Refused("refused: no canary can write, so nothing would be measured by a client: %w\n  to drill without one: kubectl mfg drill %s -n %s --canary=false", err, k.group, k.namespace)
}

// Mark returns a place in the list of acknowledged rows.
func (k *Canary) Mark() int {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.Acked)
}

// Measure waits until a site accepts the rows and returns the longest time since a mark without an acknowledged one.
func (k *Canary) Measure(ctx context.Context, mark int, site string) (pauseMillis *int64, rows int64) {
	if k == nil || !k.await(ctx, site) {
		return nil, 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	longest := time.Duration(0)
	for i := max(1, mark); i < len(k.Acked); i++ {
		longest = max(longest, k.Acked[i].At.Sub(k.Acked[i-1].At))
	}
	ms := longest.Milliseconds()
	return &ms, int64(len(k.Acked) - mark)
}

// await waits until the last acknowledged row is a site's.
func (k *Canary) await(ctx context.Context, site string) bool {
	for waited := time.Duration(0); ; waited += canaryEvery {
		k.mu.Lock()
		n := len(k.Acked)
		there := n > 0 && k.Acked[n-1].Site == site
		k.mu.Unlock()
		if there || waited >= canaryPatience || !k.Env.Wait(ctx, canaryEvery) {
			return there
		}
	}
}

// write keeps a session open on a site. If MySQL ends it, as in a failover, another follows.
func (k *Canary) write(ctx context.Context, site string) {
	for {
		if err := k.session(ctx, site); err != nil {
			k.say(err.Error())
		}
		select {
		case <-k.quit:
			return
		case <-time.After(canaryRestart):
		}
	}
}

// session runs one mysql client and feeds it a statement at a time.
func (k *Canary) session(ctx context.Context, site string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	// It begins before the first request: an API server that hangs must not hold Stop.
	go func() {
		select {
		case <-k.quit:
			time.AfterFunc(canaryPatience/5, cancel)
		case <-ended:
		}
	}()
	pod, err := (&mysqlclient.Op{Namespace: k.namespace, Group: k.group, Site: site}).Pod(ctx, k.cluster)
	if err != nil {
		return err
	}
	in, statements := io.Pipe()
	go func() {
		k.feed(statements, ended)
		_ = statements.Close()
	}()
	// A client stuck in a statement does not see the end of its input.
	stop := context.AfterFunc(ctx, func() { _ = in.Close() })
	defer stop()
	err = k.cluster.Exec(ctx, k.execution(pod, in, &eachLine{do: func(l string) { k.acknowledge(site, l) }}, &eachLine{do: func(l string) {
		if k.ends(l) {
			cancel()
		}
	}}))
	_ = in.Close()
	return err
}

// execution is a mysql client that continues after an error. The password goes through stdin: a command line is in the
// audit log.
func (k *Canary) execution(pod string, in io.Reader, out, errOut io.Writer) pods.Execution {
	return pods.Execution{Namespace: k.namespace, Pod: pod, Container: pods.ContainerMySQL, In: in, Out: out, ErrOut: errOut, Command: []string{
		"sh", "-c", `IFS= read -r MYSQL_PWD && export MYSQL_PWD && exec "$@"`, "sh",
		"mysql", "--no-defaults", "--user=root", "--socket=" + pods.MysqlSocket, "--batch", "--skip-column-names", "--unbuffered", "--force",
	}}
}

// feed writes the password, then one row after the other. offline_mode does not keep root out, and behind it a site may
// be writable for the operator alone, so each statement checks whether the site is open.
func (k *Canary) feed(w io.Writer, ended <-chan struct{}) {
	if _, err := io.WriteString(w, k.password+"\n"); err != nil {
		return
	}
	tick := time.NewTicker(canaryEvery)
	defer tick.Stop()
	for {
		select {
		case <-k.quit:
			return
		case <-ended:
			return
		case <-tick.C:
		}
		k.mu.Lock()
		k.next++
		row := k.next
		k.mu.Unlock()
		if _, err := fmt.Fprintf(w, "INSERT INTO %[1]s SELECT %[2]d FROM DUAL WHERE NOT @@global.super_read_only AND NOT @@global.offline_mode; SELECT id FROM %[1]s WHERE id = %[2]d;\n", k.table, row); err != nil {
			return
		}
	}
}

// acknowledge takes a line of the client: a row that it has just committed and read back.
func (k *Canary) acknowledge(site, line string) {
	row, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		return // no other line is expected
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Acked = append(k.Acked, Acknowledged{Site: site, Row: row, At: time.Now()})
}

// ends is true for an error after which the client would no longer write: its session was ended, or the server is gone.
func (k *Canary) ends(line string) bool {
	k.say(line)
	for _, lost := range []string{"ERROR 2002", "ERROR 2006", "ERROR 2013", "ERROR 3032", "ERROR 4031"} {
		if strings.HasPrefix(line, lost) {
			return true
		}
	}
	return false
}

func (k *Canary) say(words string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !strings.Contains(words, "super-read-only") {
		k.said = words
	}
}

// Judge ends the writing and looks for every acknowledged row on the site that is active now. It does so after an interrupt too, but not without
// bound: a mysqld whose volume hangs takes the connection and never answers.
func (k *Canary) Judge(ctx context.Context, active string) *verdict.Canary {
	if k == nil {
		return nil
	}
	k.Stop()
	out := &verdict.Canary{Rows: int64(len(k.Acked)), EveryMillis: canaryEvery.Milliseconds()}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), judgePatience)
	defer cancel()
	raw, err := k.sql(ctx, active, "SELECT id FROM "+k.table)
	if err != nil {
		out.Message = "the rows could not be read: " + cli.FirstLine(err)
		return out
	}
	there := map[string]bool{}
	for _, id := range strings.Fields(raw) {
		there[id] = true
	}
	missing := int64(0)
	for _, a := range k.Acked {
		if !there[strconv.FormatInt(a.Row, 10)] {
			missing++
		}
	}
	out.Missing = &missing
	return out
}

// Stop ends the sessions; nothing changes after it.
func (k *Canary) Stop() {
	select {
	case <-k.quit:
	default:
		close(k.quit)
	}
	k.done.Wait()
}

// End leaves nothing behind.
func (k *Canary) End(ctx context.Context, active string) error {
	if k == nil {
		return nil
	}
	k.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), canaryPatience)
	defer cancel()
	if _, err := k.sql(ctx, active, "DROP SCHEMA IF EXISTS "+k.schema); err != nil {
		return fmt.Errorf("the schema %s is left behind: %w\n  to remove it: kubectl mfg mysql %s SITE -n %s -e 'DROP SCHEMA %s'", k.schema, err, k.group, k.namespace, k.schema)
	}
	return nil
}

// sql runs statements on a site and returns what they print.
func (k *Canary) sql(ctx context.Context, site, statements string) (string, error) {
	pod, err := (&mysqlclient.Op{Namespace: k.namespace, Group: k.group, Site: site}).Pod(ctx, k.cluster)
	if err != nil {
		return "", err
	}
	var out, errOut bytes.Buffer
	e := k.execution(pod, strings.NewReader(k.password+"\n"+statements+"\n"), &out, &errOut)
	e.Command = e.Command[:len(e.Command)-1] // without this option an error ends it
	if err := k.cluster.Exec(ctx, e); err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

// eachLine passes on whole lines.
type eachLine struct {
	do   func(string)
	rest []byte
}

// Write takes the input in pieces of any size.
func (l *eachLine) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.do(strings.TrimSpace(string(line)))
		l.rest = rest
	}
}
