// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// valve stands between a replica and its source, and lets only so many more bytes of the source through.
type valve struct {
	port int
	left atomic.Int64
}

func newValve(t *testing.T, source *mysqltest.Server) *valve {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{port: l.Addr().(*net.TCPAddr).Port}
	v.left.Store(1 << 40)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", source.Port))
			if err != nil {
				_ = in.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _ = in.Close(); _ = out.Close() })
			go func() { _, _ = io.Copy(out, in) }()
			go v.pour(ctx, in, out)
		}
	}()
	return v
}

func (v *valve) pour(ctx context.Context, dst io.Writer, src io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		if rest := v.left.Add(-int64(n)) + int64(n); rest < int64(n) {
			_, _ = dst.Write(buf[:max(0, rest)])
			<-ctx.Done() // the rest is lost on the way, and nobody is told
			return
		}
		_, _ = dst.Write(buf[:n])
	}
}

// halfReceived makes a replica whose source was lost in the middle of a transaction of 200 events.
func halfReceived(t *testing.T) (source, replica *mysqltest.Server) {
	t.Helper()
	source, replica = writable(t, mysqltest.Options{}), mysqltest.Start(t, mysqltest.Options{})
	v := newValve(t, source)
	src := sourceOf(source)
	src.Port = v.port
	if err := replica.Operator(t).Follow(budget(t), src); err != nil {
		t.Fatal(err)
	}
	catchUp(t, source, replica)
	source.Exec(t, "CREATE TABLE app.big (v LONGTEXT)")
	catchUp(t, source, replica)
	before := status(t, source.Operator(t)).Executed
	v.left.Store(600_000)
	transaction := []string{"BEGIN"}
	for range 20 {
		transaction = append(transaction, "INSERT INTO app.big VALUES (REPEAT('"+strings.Repeat("x", 10)+"', 10000))")
	}
	source.Exec(t, append(transaction, "COMMIT")...)
	mysqltest.Eventually(t, "half of it is in the relay log", func() bool { return v.left.Load() < 0 })
	time.Sleep(time.Second)
	if st := status(t, replica.Operator(t)); !before.Contains(st.Executed) || !before.Contains(st.Retrieved) {
		t.Fatalf("the replica has more than half of it: %s, %s", st.Executed, st.Retrieved)
	}
	return source, replica
}

// I8 and the pause: half a transaction is nobody's, and must not hold up a promotion or a change of source.
func TestHalfReceivedTransaction(t *testing.T) {
	for name, act := range map[string]func(context.Context, *mysql.DB, *mysqltest.Server) error{
		"DropReplication": func(ctx context.Context, db *mysql.DB, _ *mysqltest.Server) error { return db.DropReplication(ctx) },
		"Follow": func(ctx context.Context, db *mysql.DB, source *mysqltest.Server) error {
			return db.Follow(ctx, sourceOf(source))
		},
	} {
		t.Run(name, func(t *testing.T) {
			source, replica := halfReceived(t)
			db := replica.Operator(t)
			if err := db.StopReceiver(budget(t)); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if err := act(budget(t), db, source); err != nil {
				t.Errorf("after %s: %v", time.Since(start), err)
			}
			if took := time.Since(start); took > stopLimit {
				t.Errorf("took %s; mysqld waits a minute if it is left alone", took)
			}
			want := 0 // half a transaction is none
			if name == "Follow" {
				catchUp(t, source, replica)
				want = 20
			}
			var rows int
			if err := replica.Root(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM app.big").Scan(&rows); err != nil || rows != want {
				t.Errorf("%d rows instead of %d: %v", rows, want, err)
			}
		})
	}
}
