// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// keepLogs gives each log of a pod a second name beside the logs of the lab, for as long as the test runs: the kubelet removes the
// first one with the pod, and the pods that had a token and a keyring to push are all gone when the logs are searched.
func keepLogs(t *testing.T) {
	t.Helper()
	kept := filepath.Join(lab.Lab.Dir(), "logs", "pods")
	if err := errors.Join(os.RemoveAll(kept), os.MkdirAll(kept, 0o700)); err != nil {
		t.Fatal(err)
	}
	nodes := filepath.Join(lab.Lab.Dir(), "nodes") + string(filepath.Separator)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			linkLogs(nodes, kept)
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
}

func linkLogs(nodes, kept string) {
	logs, _ := filepath.Glob(nodes + "*/podlogs/*/*/*.log")
	for _, log := range logs {
		var st syscall.Stat_t
		if syscall.Stat(log, &st) != nil {
			continue // it went with its pod just now
		}
		// A log that was rotated is another file of the same name.
		name := strings.ReplaceAll(strings.TrimPrefix(log, nodes), string(filepath.Separator), "_")
		_ = os.Link(log, filepath.Join(kept, fmt.Sprintf("%s.%d", name, st.Ino))) // most of them are there already
	}
}

// nothingInLogs comes last: it searches what all stories left in the logs of every program and pod of the lab, in events
// and in status.
func nothingInLogs(t *testing.T, v *vault) {
	v.learn(t)
	tokens := 0
	for _, what := range v.needles {
		if strings.HasPrefix(what, "the token") {
			tokens++
		}
	}
	if tokens == 0 {
		t.Error("no token was ever seen: that none is in a log proves nothing")
	}
	dirs := []string{filepath.Join(lab.Lab.Dir(), "logs")}
	nodes, err := filepath.Glob(filepath.Join(lab.Lab.Dir(), "nodes", "*", "podlogs"))
	if err != nil || len(nodes) == 0 {
		t.Fatalf("no logs of pods: %v", err)
	}
	for _, dir := range append(dirs, nodes...) {
		hits, _ := search(t, dir, v.needles, everything)
		for _, h := range hits {
			t.Errorf("%s is in %s", h.needle, h.file)
		}
	}
	for _, args := range [][]string{
		{"get", "events", "-A", "-o", "json"}, {"get", "mfg", "-A", "-o", "json"}, {"get", "pods,configmaps,deployments", "-A", "-o", "json"},
	} {
		out, err := lab.Lab.Kubectl(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		for needle, what := range v.needles {
			if strings.Contains(out, needle) {
				t.Errorf("%s is in what kubectl %v shows", what, args)
			}
		}
	}
}
