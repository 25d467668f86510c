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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// keepLogs gives each log of a pod a second name beside the logs of the lab, for as long as the test runs: the kubelet removes the
// first one with the pod, and the pods that had a token and a keyring to push are all gone when the logs are searched.
func keepLogs(t *testing.T) {
	t.Helper()
	kept := keptLogs()
	if err := errors.Join(os.RemoveAll(kept), os.MkdirAll(kept, 0o700)); err != nil {
		t.Fatal(err)
	}
	nodes := nodeFiles()
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

// keptLogs is where logs of pods stay.
func keptLogs() string { return filepath.Join(lab.Lab.Dir(), "logs", "pods") }

// nodeFiles is where the lab has the files of its nodes.
func nodeFiles() string { return filepath.Join(lab.Lab.Dir(), "nodes") + string(filepath.Separator) }

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
	decoys, missing := plantDecoys(t, filepath.Join(logs, "decoys"), "of a program")
	ofAPod, missingOfAPod := plantInPod(t)
	maps.Copy(missing, missingOfAPod)
	needles := maps.Clone(v.needles)
	maps.Copy(needles, decoys.needles)
	maps.Copy(needles, ofAPod.needles)
	logsOfPodsThatAreGone(t)
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

// plantInPod has a pod say decoys that is gone by the time the logs are searched.
func plantInPod(t *testing.T) (*vault, map[string]bool) {
	t.Helper()
	pod := filepath.Join(nodeFiles(), "hub", "podlogs", "lab_decoys_0")
	decoys, missing := plantDecoys(t, filepath.Join(pod, "decoys"), "of a pod")
	linkLogs(nodeFiles(), keptLogs())
	if err := os.RemoveAll(pod); err != nil {
		t.Fatal(err)
	}
	return decoys, missing
}

// logsOfPodsThatAreGone fails the test if there are none: those pods had a token and a keyring to push.
func logsOfPodsThatAreGone(t *testing.T) {
	t.Helper()
	here := map[uint64]bool{}
	logs, err := filepath.Glob(nodeFiles() + "*/podlogs/*/*/*.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		var st syscall.Stat_t
		if syscall.Stat(log, &st) == nil {
			here[st.Ino] = true
		}
	}
	kept, err := os.ReadDir(keptLogs())
	if err != nil {
		t.Fatal(err)
	}
	gone := slices.ContainsFunc(kept, func(e os.DirEntry) bool {
		var st syscall.Stat_t
		return !strings.Contains(e.Name(), "lab_decoys") && syscall.Stat(filepath.Join(keptLogs(), e.Name()), &st) == nil && !here[st.Ino]
	})
	if !gone {
		t.Errorf("of %d logs that were kept each is one of a pod that still runs: the search proves nothing of pods that pushed a keyring", len(kept))
	}
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
