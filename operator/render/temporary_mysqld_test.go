// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package render_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// inRoom is an encrypted server with its temporary files in so much memory.
func inRoom(t *testing.T, size string, config ...string) *mysqltest.Server {
	t.Helper()
	var room string
	s := mysqltest.Start(t, mysqltest.Options{
		Keyring: true, TLS: true,
		Config: append([]string{"tmpdir=/srv/room", "innodb_temp_tablespaces_dir=/srv/room", "innodb_temp_data_file_path=../room/ibtmp1:12M:autoextend"}, config...),
		BeforeStart: func(datadir string) {
			if room != "" {
				return
			}
			room = filepath.Join(filepath.Dir(datadir), "room")
			if err := errors.Join(os.Mkdir(room, 0o700), unix.Mount("tmpfs", room, "tmpfs", 0, "mode=1777,size="+size)); err != nil {
				t.Errorf("make room: %v", err)
			}
		},
	})
	t.Cleanup(func() { _ = unix.Unmount(room, unix.MNT_DETACH) })
	return s
}

// A transaction that does not fit into the memory of a replica is refused where it is made, before anything of it is in the binary
// log; one that is taken is applied.
func TestRealTransactionsFitIntoMemory(t *testing.T) {
	in := input(encrypted(sealed), temporary("", "64Mi", ""))
	bound := "max_binlog_cache_size=" + settings(t, in)["max_binlog_cache_size"]
	active, replica := inRoom(t, "64m", bound), inRoom(t, "64m", bound)
	active.Exec(t, "SET GLOBAL super_read_only=OFF", "SET GLOBAL read_only=OFF", "CREATE USER r IDENTIFIED BY 'r'", "GRANT REPLICATION SLAVE ON *.* TO r",
		"CREATE DATABASE d", "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")
	replica.Exec(t, fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='r', SOURCE_PASSWORD='r', "+
		"SOURCE_SSL=1, SOURCE_AUTO_POSITION=1", active.Port), "START REPLICA")
	write := func(rows int) error {
		_, err := active.Root(t).ExecContext(t.Context(), fmt.Sprintf("INSERT INTO d.t (v) WITH RECURSIVE n(i) AS "+
			"(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT REPEAT('x', 100000) FROM n", rows))
		return err
	}
	if err := write(165); err != nil {
		t.Errorf("16.5 MB are refused: %v", err)
	}
	before := executed(t, active)
	var refused *driver.MySQLError
	if err := write(170); !errors.As(err, &refused) || refused.Number != 1197 {
		t.Errorf("17 MB: %v, want error 1197", err)
	}
	if after := executed(t, active); after != before {
		t.Errorf("%s was committed, %s before", after, before)
	}
	mysqltest.Eventually(t, "the replica has what was committed", func() bool { return strings.Contains(executed(t, replica), before) })
}

func executed(t *testing.T, s *mysqltest.Server) (set string) {
	t.Helper()
	if err := s.Root(t).QueryRowContext(context.WithoutCancel(t.Context()), "SELECT @@gtid_executed").Scan(&set); err != nil {
		t.Fatal(err)
	}
	return set
}
