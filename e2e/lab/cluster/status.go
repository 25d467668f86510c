// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Status is what `lab status` shows.
type Status struct {
	Dir        string       `json:"dir"`
	Phase      string       `json:"phase"`
	Kubeconfig string       `json:"kubeconfig"`
	Tools      string       `json:"tools"`
	Started    time.Time    `json:"started"`
	API        bool         `json:"apiReady"`
	Nodes      []NodeStatus `json:"nodes"`
	Drops      []Drop       `json:"drops"`
	// Dead are programs of the lab that ended though nobody ended them.
	Dead []string `json:"dead"`
	// Over: none of its programs is left, as after a restart of the machine. The next `lab up` cleans up after it.
	Over bool `json:"over"`
}

// NodeStatus is one node as the lab and as Kubernetes see it.
type NodeStatus struct {
	Endpoint
	Ready  bool `json:"ready"`
	Cut    bool `json:"cut"`
	Paused bool `json:"paused"`
	Killed bool `json:"killed"`
}

// Status looks at the lab as it is now.
func (c *Cluster) Status(ctx context.Context) (Status, error) {
	s, err := c.state()
	if err != nil {
		return Status{}, err
	}
	st := Status{
		Dir: c.dir, Phase: s.Phase, Kubeconfig: c.Kubeconfig(), Tools: c.Tools(), Started: s.Started,
		Drops: append([]Drop{}, s.Drops...), Dead: []string{}, Over: s.over(),
	}
	for _, name := range slices.Sorted(maps.Keys(s.Processes)) {
		if !s.Processes[name].Alive() {
			st.Dead = append(st.Dead, name)
		}
	}
	// A dead API server is a finding and no reason to show nothing.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ready, err := c.readyNodes(ctx)
	st.API = err == nil
	for _, n := range s.Nodes {
		st.Nodes = append(st.Nodes, NodeStatus{
			Endpoint: n, Ready: slices.Contains(ready, n.Name),
			Cut: s.Cut[n.Name], Paused: s.Paused[n.Name], Killed: s.Killed[n.Name],
		})
	}
	return st, nil
}

func (c *Cluster) readyNodes(ctx context.Context) ([]string, error) {
	out, err := c.Kubectl(ctx, "get", "nodes", "-o", "json", "--request-timeout=5s")
	if err != nil {
		return nil, err
	}
	return parseReady(out)
}

// parseReady finds the names of ready nodes in a node list.
func parseReady(list string) ([]string, error) {
	var nodes struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Status struct {
				Conditions []struct {
					Type   string `json:"type"`
					Status string `json:"status"`
				} `json:"conditions"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(list), &nodes); err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	var ready []string
	for _, n := range nodes.Items {
		for _, cond := range n.Status.Conditions {
			if cond.Type == "Ready" && cond.Status == "True" {
				ready = append(ready, n.Metadata.Name)
			}
		}
	}
	return ready, nil
}
