// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Info asks the engine what it is. An engine that takes an older password gets the first of them.
func (c *Client) Info(ctx context.Context) (Info, error) {
	answer, err := c.do(ctx, "INFO")
	if err != nil {
		return Info{}, err
	}
	out := parse(answer)
	if out.Role == "" {
		return Info{}, &Error{c.target.Addr, "what answers is no cache engine: INFO names no role", nil}
	}
	_ = c.SetPassword(ctx) // it answers all the same; Outdated says if this failed
	return out, nil
}

// Follow makes the engine a replica of a master, whose data replaces what it held.
func (c *Client) Follow(ctx context.Context, host string, port int) error {
	c.abort(ctx)
	_, err := c.do(ctx, "REPLICAOF", host, strconv.Itoa(port))
	return err
}

// abort gives up a hand-over that is under way. If there is none, the engine refuses, and so does an engine that has no such command.
func (c *Client) abort(ctx context.Context) {
	if c.target.Engine == v1alpha1.CacheValkey {
		_, _ = c.do(ctx, "FAILOVER", "ABORT")
	}
}

// Promote makes the engine a master, whatever its own master says.
func (c *Client) Promote(ctx context.Context) error {
	c.abort(ctx)
	if _, err := c.do(ctx, "REPLICAOF", "NO", "ONE"); err != nil {
		return err
	}
	now, err := c.Info(ctx)
	if err != nil {
		return err
	}
	if now.Role != v1alpha1.CacheMaster {
		return fmt.Errorf("%s: %w", c.target.Addr, ErrRole)
	}
	return nil
}

// CutClients ends the connections of applications. Those of replicas and this one stay.
func (c *Client) CutClients(ctx context.Context) error {
	if c.target.Engine == v1alpha1.CacheDragonfly {
		return c.cutByNumber(ctx)
	}
	var all []error
	for _, kind := range clientKinds {
		_, err := c.do(ctx, "CLIENT", "KILL", "TYPE", kind)
		all = append(all, err)
	}
	return errors.Join(all...)
}

// clientKinds are what Valkey calls the clients of applications. One that subscribes is no normal one, and would not notice that it is connected
// to an old master: it sends nothing.
var clientKinds = []string{"normal", "pubsub"}

// SetPassword has the engine take the first of its passwords from now on, from applications and at its own master. Connections stay.
func (c *Client) SetPassword(ctx context.Context) error {
	if len(c.target.Passwords) == 0 || !c.Outdated() {
		return nil
	}
	for _, setting := range []string{"masterauth", "requirepass"} {
		if _, err := c.do(ctx, "CONFIG", "SET", setting, c.target.Passwords[0]); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
	c.at = 0
	return nil
}

const (
	// lookEvery is how often to check whether a take-over has ended.
	lookEvery = 10 * time.Millisecond
	// oneLook bounds one such check.
	oneLook = 200 * time.Millisecond
	// hungAfter is how long there may be no master: a target that lives needs a few milliseconds.
	hungAfter = 400 * time.Millisecond
	// mostReserve is the most of a budget that is kept to give up a take-over.
	mostReserve = 300 * time.Millisecond
)

// TakeOver has one engine become the master in place of another, with every key, within the deadline of the context. If it fails,
// the old master stays the master, unless the error is ErrHung.
func TakeOver(ctx context.Context, from, to *Client) error {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return fmt.Errorf("take over without a deadline: %w", context.DeadlineExceeded)
	}
	left := time.Until(deadline)
	budget := left - min(left/4, mostReserve)
	if to.target.Engine == v1alpha1.CacheDragonfly {
		return takeOverDragonfly(ctx, to, budget)
	}
	return takeOverValkey(ctx, from, to, budget)
}

// takeOverDragonfly asks the target. It needs a master that lives; that may end its process afterwards.
func takeOverDragonfly(ctx context.Context, to *Client, budget time.Duration) error {
	seconds := max(1, int(budget/time.Second))
	if _, err := to.do(ctx, "REPLTAKEOVER", strconv.Itoa(seconds)); err != nil {
		if says(err, "unknown command") {
			return fmt.Errorf("%s: REPLTAKEOVER: %w", to.target.Addr, ErrUnsupported)
		}
		return err
	}
	now, err := to.Info(ctx)
	if err != nil {
		return err
	}
	if now.Role != v1alpha1.CacheMaster {
		return fmt.Errorf("%s: %w", to.target.Addr, ErrNotTaken)
	}
	return nil
}

// takeOverValkey asks the old master, which answers at once and continues alone.
func takeOverValkey(ctx context.Context, from, to *Client, budget time.Duration) error {
	deadline := time.Now().Add(budget)
	before, err := from.Info(ctx)
	if err != nil {
		return err
	}
	if before.FailingOver { // another client began one and did not wait for its end
		from.abort(ctx)
	}
	replica, known := before.ReplicaOf(to.target.Hosts)
	if !known || !replica.Online {
		return fmt.Errorf("%s at %s: %w", to.target.Addr, from.target.Addr, ErrNotOnline)
	}
	if _, err := look(ctx, to); err != nil { // no engine would take writes during the wait for it
		return fmt.Errorf("%w: %w", ErrNotTaken, err)
	}
	millis := max(1, time.Until(deadline).Milliseconds())
	if _, err := from.do(ctx, "FAILOVER", "TO", replica.Host, strconv.Itoa(replica.Port), "TIMEOUT", strconv.FormatInt(millis, 10)); err != nil {
		switch {
		case says(err, "not online", "is not a replica"):
			return fmt.Errorf("%s at %s: %w", to.target.Addr, from.target.Addr, ErrNotOnline)
		case says(err, "unknown command"):
			return fmt.Errorf("%s: FAILOVER: %w", from.target.Addr, ErrUnsupported)
		}
		return err
	}
	return await(ctx, from, to, deadline)
}

// confirm has a replica tell its master at once what it has received. Unless asked, it does so once a second, and a master that hands over
// waits for that with all writes held back (seen on Valkey 9.1.2: up to 0.9 s). The command has no answer, so it bypasses the library, on
// a connection that has just been used; without one, the take-over waits out the second.
func (c *Client) confirm() {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last == nil || last.SetWriteDeadline(time.Now().Add(oneLook)) != nil {
		return
	}
	_, _ = last.Conn.Write([]byte("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"))
}

// await watches a take-over until it ends, and gives it up if it does not.
func await(ctx context.Context, from, to *Client, deadline time.Time) error {
	var letGo time.Time
	for time.Now().Before(deadline) && ctx.Err() == nil {
		to.confirm()
		now, err := look(ctx, to)
		if err == nil && now.Role == v1alpha1.CacheMaster {
			return nil
		}
		old, oldErr := look(ctx, from)
		switch {
		case oldErr != nil:
			letGo = time.Time{} // not known
		case old.Role == v1alpha1.CacheMaster && !old.FailingOver:
			return fmt.Errorf("%s: %w", to.target.Addr, ErrNotTaken)
		case old.Role == v1alpha1.CacheMaster:
			letGo = time.Time{}
		case letGo.IsZero():
			letGo = time.Now()
		case time.Since(letGo) > hungAfter:
			return fmt.Errorf("%s: %w", to.target.Addr, ErrHung)
		}
		pause(ctx, lookEvery)
	}
	// Our time is over. An old master that still has the role keeps it. One that has let go is not called back from here: the
	// target may take over at this very moment, and the decision is left to code that sees both.
	if old, err := look(ctx, from); err == nil && old.Role == v1alpha1.CacheMaster {
		from.abort(ctx)
		return fmt.Errorf("%s: %w", to.target.Addr, ErrNotTaken)
	}
	return fmt.Errorf("%s: %w", to.target.Addr, ErrHung)
}

func look(ctx context.Context, c *Client) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, oneLook)
	defer cancel()
	return c.Info(ctx)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
