// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/api/wire"
)

// volumeInterval is how often the file system of the data volume is asked how full it is.
const volumeInterval = 10 * time.Second

// volumeUse tells how full the data volume is.
type volumeUse struct {
	dir string
	log *slog.Logger

	last atomic.Pointer[wire.VolumeUse]
}

// Report is what the last look found; nil before the first.
func (v *volumeUse) Report() *wire.VolumeUse { return v.last.Load() }

// run looks now and then until ctx ends. Nobody waits for it: a look may hang for as long as the volume does.
func (v *volumeUse) run(ctx context.Context) {
	ticker := time.NewTicker(volumeInterval)
	defer ticker.Stop()
	for {
		if use, err := useOf(v.dir); err == nil {
			v.last.Store(use)
		} else {
			v.log.Debug("look how full the volume is", "error", err) // the last answer stands
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// useOf counts as df does: what only root may use is neither free nor part of the whole.
func useOf(dir string) (*wire.VolumeUse, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil, err
	}
	used := int64(st.Blocks-st.Bfree) * st.Bsize
	return &wire.VolumeUse{UsedBytes: used, TotalBytes: used + int64(st.Bavail)*st.Bsize}, nil
}
