// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"regexp"
	"slices"
)

// The lab's addresses. They are fixed: only one lab runs at a time, and a fixed plan makes
// every log line readable.
const (
	bridgeName  = "mfglab0"
	nodeNet     = "10.89.0.0/24"
	podNet      = "10.244.0.0/16"
	serviceNet  = "10.96.0.0/16"
	hostIP      = "10.89.0.1"
	apiserverIP = "10.96.0.1"
	dnsIP       = "10.96.0.10"
	apiserver   = "https://" + hostIP + ":6443"

	firstNode   = 2
	clientIndex = 200
)

// Names with a meaning of their own in commands that take endpoints.
const (
	// HubName is the node that holds the operator and everything else that is no site.
	HubName = "hub"
	// HostName stands for the machine itself: the control plane and whatever runs outside.
	HostName = "host"
	// ClientName is a network namespace without a kubelet, a place to run clients in.
	ClientName = "client"
	// AllName stands for every other endpoint.
	AllName = "all"
)

// Endpoint is one place on the lab's network: a node, the client namespace or the host.
type Endpoint struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
	IP    string `json:"ip"`
	MAC   string `json:"mac"`
	// PodCIDR is empty for endpoints that run no pods.
	PodCIDR string `json:"podCIDR,omitempty"`
}

// Netns is the name of the endpoint's network namespace, "" for the host.
func (e Endpoint) Netns() string {
	if e.Name == HostName {
		return ""
	}
	return "mfg-" + e.Name
}

// Veth is the host's end of the endpoint's cable. It goes by number because the kernel
// allows 15 characters only.
func (e Endpoint) Veth() string { return fmt.Sprintf("mfgv%d", e.Index) }

var nodeName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,28}[a-z0-9])?$`)

// planNodes gives every node its place: the hub, if wanted, comes first.
func planNodes(sites []string, hub bool) ([]Endpoint, error) {
	names := slices.Clone(sites)
	if hub {
		names = append([]string{HubName}, names...)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("plan nodes: no node named")
	}
	if len(names) > 20 {
		return nil, fmt.Errorf("plan nodes: %d nodes are too many for one machine", len(names))
	}
	var nodes []Endpoint
	for i, name := range names {
		switch {
		case !nodeName.MatchString(name):
			return nil, fmt.Errorf("plan nodes: %q is no name for a node (lower-case letters, digits, dashes; 30 at most)", name)
		case slices.Contains(names[:i], name):
			return nil, fmt.Errorf("plan nodes: %q is named twice", name)
		case slices.Contains([]string{HostName, ClientName, AllName}, name):
			return nil, fmt.Errorf("plan nodes: the name %q is taken by the lab", name)
		}
		nodes = append(nodes, endpoint(name, firstNode+i, true))
	}
	return nodes, nil
}

func endpoint(name string, index int, pods bool) Endpoint {
	e := Endpoint{
		Name: name, Index: index,
		IP:  fmt.Sprintf("10.89.0.%d", index),
		MAC: fmt.Sprintf("02:6d:66:67:00:%02x", index),
	}
	if pods {
		e.PodCIDR = fmt.Sprintf("10.244.%d.0/24", index)
	}
	return e
}

func hostEndpoint() Endpoint   { return endpoint(HostName, 1, false) }
func clientEndpoint() Endpoint { return endpoint(ClientName, clientIndex, false) }
