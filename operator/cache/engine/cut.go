// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// killsAtOnce is how many connections one write cuts.
const killsAtOnce = 256

// replicationName is how the names of connections begin that Dragonfly's replicas make.
const replicationName = "repl_"

// cutByNumber cuts clients of Dragonfly, which has no CLIENT KILL TYPE: its documentation has ADDR, LADDR and ID. Its list of clients does
// not say what kind they are either, but replicas' connections have names of their own.
func (c *Client) cutByNumber(ctx context.Context) error {
	if _, err := c.do(ctx, "PING"); err != nil { // finds the password that it takes
		return err
	}
	rdb, _ := c.conn()
	defer c.forget(rdb) // another connection of this client may be among those that are cut
	conn := rdb.Conn()
	defer func() { _ = conn.Close() }()
	own, err := conn.Do(ctx, "CLIENT", "ID").Int64()
	if err != nil {
		return c.clean(err)
	}
	list, err := conn.Do(ctx, "CLIENT", "LIST").Text()
	switch {
	case errors.Is(err, errTooMuch):
		return c.cutByAddress(ctx)
	case err != nil:
		return c.clean(err)
	}
	ids := applications(list, own)
	for len(ids) > 0 {
		some := ids[:min(len(ids), killsAtOnce)]
		ids = ids[len(some):]
		_, err := conn.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range some {
				p.Do(ctx, "CLIENT", "KILL", "ID", id)
			}
			return nil
		})
		if err != nil && !answered(err) {
			return c.clean(err)
		}
		if err != nil && says(c.clean(err), "syntax", "unknown", "unsupported", "not supported") {
			return nil // a version before 1.15: as a replica it refuses writes, and applications find that out with their next one
		}
	}
	return nil
}

// cutByAddress cuts all that is connected to the address under which this client reached it, as applications did: for when there are
// more clients than a list may hold. That also cuts replicas, which come back, and this connection, whose answer may be lost.
func (c *Client) cutByAddress(ctx context.Context) error {
	_, err := c.do(ctx, "CLIENT", "KILL", "LADDR", c.target.Addr)
	if ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) && !says(err, "err ") {
		return nil // it did so, or did not answer: then this connection was among them
	}
	return err
}

// applications are the numbers of the clients in a list that are neither replicas nor this one.
func applications(list string, own int64) []string {
	var out []string
	for line := range strings.Lines(list) {
		f := map[string]string{}
		for word := range strings.FieldsSeq(line) {
			if key, value, ok := strings.Cut(word, "="); ok {
				f[key] = value
			}
		}
		if id := integer(f["id"]); id > 0 && id != own && !strings.HasPrefix(f["name"], replicationName) {
			out = append(out, f["id"])
		}
	}
	return out
}

// answered is true for an error that the engine sent, not one on the way to it.
func answered(err error) bool {
	_, told := errors.AsType[redis.Error](err)
	return told && !errors.Is(err, redis.Nil)
}

// forget has the next command make a new connection.
func (c *Client) forget(rdb *redis.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rdb == rdb {
		c.drop()
	}
}
