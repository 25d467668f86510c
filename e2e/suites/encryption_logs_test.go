// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	tokens, keys := 0, 0
	for _, what := range v.needles {
		if strings.HasPrefix(what, "the token") {
			tokens++
		} else {
			keys++
		}
	}
	if tokens == 0 || keys == 0 {
		t.Errorf("%d spellings of tokens and %d of keys are known: that none is in a log proves nothing", tokens, keys)
	}
	logs := filepath.Join(lab.Lab.Dir(), "logs")
	decoys, missing := plantDecoys(t, filepath.Join(logs, "decoys"))
	needles := maps.Clone(v.needles)
	maps.Copy(needles, decoys.needles)
	nodes, err := filepath.Glob(filepath.Join(lab.Lab.Dir(), "nodes", "*", "podlogs"))
	if err != nil || len(nodes) == 0 {
		t.Fatalf("no logs of pods: %v", err)
	}
	for _, dir := range append([]string{logs}, nodes...) {
		hits, _ := search(t, dir, needles, everything)
		for _, h := range hits {
			if strings.HasPrefix(h.needle, decoyPrefix) {
				delete(missing, h.needle)
				continue
			}
			t.Errorf("%s is in %s", h.needle, h.file)
		}
	}
	for what := range missing {
		t.Errorf("%s was written into a log, and not found: the search proves nothing", what)
	}
	nothingInObjects(t, v)
}

// nothingInObjects searches what anybody may read in the API server who may read no Secrets.
func nothingInObjects(t *testing.T, v *vault) {
	t.Helper()
	finder := newFinder(t, v.needles)
	for _, args := range [][]string{
		{"get", "events", "-A", "-o", "json"}, {"get", "mfg", "-A", "-o", "json"}, {"get", "pods,configmaps,deployments", "-A", "-o", "json"},
	} {
		out, err := lab.Lab.Kubectl(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		finder.in([]byte(out), func(needle string) {
			t.Errorf("%s is in what kubectl %v shows", v.needles[needle], args)
		})
	}
}
