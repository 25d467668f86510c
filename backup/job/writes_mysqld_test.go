// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

var counter = regexp.MustCompile(` AUTO_INCREMENT=\d+`)

// Under writes the GTID set fits the data exactly: what is missing, and nothing else, can be replayed on top, and both are then the same.
// Each writer has a row of its own: where transactions wait for each other's rows mysqldump's lock gives up (docs/reference/backup-job.md).
func TestGTIDFitsUnderWrites(t *testing.T) {
	for _, method := range []string{bucket.Logical, bucket.Physical} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := origin(t, mysqltest.Options{})
			fill(t, s, 10)
			s.Exec(t, "CREATE TABLE big.w (id INT AUTO_INCREMENT PRIMARY KEY, n INT)", "CREATE TABLE big.c (id INT PRIMARY KEY, n INT)",
				"INSERT INTO big.c VALUES (0, 0), (1, 0), (2, 0), (3, 0)")
			stop := make(chan struct{})
			var writers sync.WaitGroup
			for id := range 4 {
				writers.Go(func() {
					db := s.Root(t)
					for {
						select {
						case <-stop:
							return
						default:
						}
						tx, err := db.BeginTx(t.Context(), nil)
						if err != nil {
							continue
						}
						_, _ = tx.ExecContext(t.Context(), "UPDATE big.c SET n = n + 1 WHERE id = ?", id)
						_, _ = tx.ExecContext(t.Context(), "INSERT INTO big.w (n) SELECT n FROM big.c WHERE id = ?", id)
						_ = tx.Commit()
					}
				})
			}
			j := newJob(t, false).from(s)
			j.config.Method = method
			res := j.must("make")
			close(stop)
			writers.Wait()
			j.site(false)
			j.must("load")
			db := j.opened("/srv/volume/data.restored", false)
			var rows, n int
			if err := db.QueryRowContext(t.Context(), "SELECT (SELECT COUNT(*) FROM big.w), (SELECT SUM(n) FROM big.c)").Scan(&rows, &n); err != nil || rows != n || n == 0 {
				t.Errorf("%d rows, %d counted: %v", rows, n, err)
			}
			before := executed(t, db)
			if before != res.GTIDExecuted || before == executed(t, s.Root(t)) {
				t.Errorf("nothing is proven: %s", before)
			}
			for _, statement := range []string{
				fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='%s', SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1",
					s.Port, mysql.AccountReplication, strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(mysqltest.Passwords.Replication)),
				"START REPLICA",
			} {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			mysqltest.Eventually(t, "the rest is replayed", func() bool { return executed(t, db) == executed(t, s.Root(t)) })
			if _, err := db.ExecContext(t.Context(), "STOP REPLICA"); err != nil {
				t.Error(err)
			}
			want, got := digests(t, s.Root(t)), digests(t, db)
			for _, all := range []map[string]string{want, got} {
				// The counter of a site is above what it gave out after an INSERT ... SELECT, and that of a copy just above the rows.
				all["create `big`.`rows_`"] = counter.ReplaceAllString(all["create `big`.`rows_`"], "")
			}
			same(t, want, got)
		})
	}
}
