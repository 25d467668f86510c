// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"testing"

	backup "github.com/mysql-mfg/mfg/backup/job"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// The shortest way through all of it: a failover that loses transactions, the end of what is archived, and what is refused.
func TestPointInTime(t *testing.T) {
	t.Parallel()
	h := newHistory(t, 1, false, "a", "b")
	h.write("", "CREATE DATABASE d")
	h.some(20)
	h.backup("a", "first", bucket.Logical)
	h.some(20)
	h.cut()
	h.some(5)
	h.fail("b", "Emergency")
	h.some(30)
	h.archive(true)
	reference := mysqltest.Start(t, mysqltest.Options{Config: []string{"super_read_only=OFF", "read_only=OFF"}})
	var all []string
	for _, e := range h.kept() {
		all = append(all, e.sql...)
	}
	reference.Exec(t, all...)
	res, db := h.load(1, backup.PointInTime{Latest: true}, false)
	same(t, digests(t, reference.Root(t)), digests(t, db))
	if got := gtid.MustParse(executed(t, db)); !got.Equal(h.executed("b")) {
		t.Errorf("executed %s, want %s", got, h.executed("b"))
	}
	last := h.kept()[len(h.kept())-1].id
	if res.ReplayedTo == nil || !res.ReplayedTo.Equal(h.times[last]) || res.Replayed != 50 || res.Backup != "first" {
		t.Errorf("%+v, want the time %s", res, h.times[last])
	}
	h.clean(1, db)
	ours(t, h.job)
}
