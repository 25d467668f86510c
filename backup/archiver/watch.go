// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watchPause is how long the index may be missing while it is replaced.
const watchPause = 100 * time.Millisecond

// watch nudges whenever the index of the binary logs changes, which is when a log is sealed. Only the index is watched, not its directory:
// there every commit would be an event. The index is replaced by rename, so it is watched again after each change; what is missed in between the
// interval finds.
func watch(ctx context.Context, index string, nudge func(), log *slog.Logger) {
	told := false
	for ctx.Err() == nil {
		err := watchOnce(ctx, index)
		if err != nil && !told {
			told = true
			log.Warn("the index of the binary logs cannot be watched; it is looked at once in an interval", "file", index, "error", err)
		}
		pause := watchPause
		if err != nil {
			pause = 10 * time.Second
		} else {
			nudge()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// watchOnce returns once the index has changed.
func watchOnce(ctx context.Context, index string) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	if err := w.Add(index); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-w.Events: // whatever it is: the inode that lost its name is one too
	case _, open := <-w.Errors: // events were lost: look
		if !open {
			return errors.New("the watch has ended")
		}
	}
	return nil
}
