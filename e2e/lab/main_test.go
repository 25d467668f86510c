// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

// Scripts, the Makefile and the suites rely on these.
func TestCommandNames(t *testing.T) {
	for _, line := range []string{
		"up", "down", "status", "kubeconfig", "tools", "load", "images", "exec", "volumes recycle",
		"node cut", "node heal", "node pause", "node resume", "node pause-kubelet", "node resume-kubelet", "node kill", "node start", "net cut", "net heal",
	} {
		words := strings.Fields(line)
		cmd, rest, err := newCommand().Find(words)
		if err != nil || len(rest) > 0 || cmd.Name() != words[len(words)-1] {
			t.Errorf("there is no command %q (%v, %v)", line, rest, err)
		}
	}
}

func TestPrintStatusShowsFaults(t *testing.T) {
	st := cluster.Status{
		Dir: "/lab", Phase: "running", API: true,
		Nodes: []cluster.NodeStatus{{Endpoint: cluster.Endpoint{Name: "east"}, Killed: true, Cut: true}},
		Drops: []cluster.Drop{{From: "west", To: "host"}},
		Dead:  []string{"kubelet-west"},
	}
	var out bytes.Buffer
	if err := printStatus(&out, st); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"killed,cut", "west -> host", "kubelet-west", "/lab/logs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
