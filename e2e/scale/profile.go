// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// profileSeconds is for how long the processor's time is sampled.
const profileSeconds = 20

// profile fetches profiles of an operator that serves them, and returns how to wait for that. The operator as it is
// released serves none.
func (f *field) profile(ctx context.Context) (finish func()) {
	if f.options.profile == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for name, path := range map[string]string{
			"cpu": fmt.Sprintf("/debug/pprof/profile?seconds=%d", profileSeconds), "heap": "/debug/pprof/heap", "goroutine": "/debug/pprof/goroutine",
		} {
			body, err := fetch(ctx, http.DefaultClient, "http://"+f.options.profile+path)
			if err == nil {
				err = os.WriteFile(filepath.Join(f.dir, name+".pprof"), []byte(body), 0o600)
			}
			if err != nil {
				f.say("profile %s: %v", name, err)
			}
		}
	}()
	return func() { <-done }
}
