// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"testing"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// A verification goes to the end of what is archived.
func TestAVerificationReplays(t *testing.T) {
	h := newHistory(t, 3, false, "a")
	h.write("", "CREATE DATABASE d")
	h.some(10)
	h.backup("a", "first", bucket.Physical)
	h.some(20)
	h.archive(true)
	h.job.config.Replay, h.job.config.Backup = true, "first"
	last := h.kept()[len(h.kept())-1].id
	if res := h.job.must("verify"); res.ReplayedTo == nil || !res.ReplayedTo.Equal(h.times[last]) || res.Replayed != 20 || len(res.Warnings) > 0 {
		t.Errorf("%+v, want it to reach %s", res, h.times[last])
	}
}
