// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
)

// detourOf names the two ends of the cable that is put between a node's own and the bridge.
func (e Endpoint) detourOf() (end, bridged string) { return e.Veth() + "d", e.Veth() + "b" }

// endpointOf finds a node.
func (c *Cluster) endpointOf(node string) (Endpoint, error) {
	nodes, err := c.Nodes()
	if err != nil {
		return Endpoint{}, err
	}
	for _, e := range nodes {
		if e.Name == node {
			return e, nil
		}
	}
	return Endpoint{}, fmt.Errorf("the lab has no node %s", node)
}

// Detour takes a node's cable off the bridge and puts another one there, and tells the two ends between which somebody must
// carry frames from now on. Until then the node is cut off.
func (c *Cluster) Detour(ctx context.Context, node string) (near, far string, err error) {
	e, err := c.endpointOf(node)
	if err != nil {
		return "", "", err
	}
	end, bridged := e.detourOf()
	for _, cmd := range []string{
		fmt.Sprintf("link add %s type veth peer name %s", end, bridged),
		fmt.Sprintf("link set %s up", end),
		fmt.Sprintf("link set %s up", bridged),
		fmt.Sprintf("link set %s master %s", bridged, bridgeName),
		fmt.Sprintf("link set %s nomaster", e.Veth()),
	} {
		if err := ip(ctx, "%s", cmd); err != nil {
			return "", "", err
		}
	}
	return e.Veth(), end, nil
}

// Straighten takes a detour back. A node without one stays as it is.
func (c *Cluster) Straighten(ctx context.Context, node string) error {
	e, err := c.endpointOf(node)
	if err != nil {
		return err
	}
	end, _ := e.detourOf()
	if !linkExists(end) {
		return nil
	}
	if linkExists(e.Veth()) { // a node without power has no cable
		if err := ip(ctx, "link set %s master %s", e.Veth(), bridgeName); err != nil {
			return err
		}
	}
	return ip(ctx, "link del %s", end)
}
