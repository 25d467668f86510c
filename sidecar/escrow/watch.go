// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"log/slog"

	"github.com/fsnotify/fsnotify"
)

// watch wakes its reader when anything in a directory changes: once for any number of events. If the directory cannot be
// watched, only the slow look at intervals remains.
func watch(dir string, log *slog.Logger) (<-chan struct{}, func()) {
	woken := make(chan struct{}, 1)
	w, err := fsnotify.NewWatcher()
	if err == nil {
		if err = w.Add(dir); err != nil {
			_ = w.Close()
		}
	}
	if err != nil {
		log.Warn("the directory of the keyring cannot be watched; it is looked at now and then", "dir", dir, "error", err)
		return woken, func() {}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for changed(w) {
			select {
			case woken <- struct{}{}:
			default:
			}
		}
	}()
	return woken, func() {
		_ = w.Close()
		<-ended
	}
}

// changed waits for a change; false means that the watcher was closed.
func changed(w *fsnotify.Watcher) bool {
	for {
		select {
		case event, ok := <-w.Events:
			if ok && event.Op == fsnotify.Chmod {
				continue
			}
			return ok
		case _, ok := <-w.Errors:
			// Events were lost, so wake the reader.
			return ok
		}
	}
}
