// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// volumesPerNode is enough for ten groups at a time and some more; RecycleVolumes makes used ones new.
const volumesPerNode = 14

func volumeName(node string, i int) string { return fmt.Sprintf("local-%s-%d", node, i) }

func (c *Cluster) volumePath(node, name string) string {
	return filepath.Join(c.nodeDir(node), "volumes", name)
}

// makeStorage creates the storage class and every node's volumes.
func (c *Cluster) makeStorage(ctx context.Context, nodes []Endpoint) error {
	manifests, err := render("storage.yaml", nil)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		for i := range volumesPerNode {
			m, err := c.makeVolume(n.Name, volumeName(n.Name, i+1))
			if err != nil {
				return err
			}
			manifests += m
		}
	}
	return c.Apply(ctx, manifests)
}

// makeVolume makes a volume's directory, empty and open to any user, and returns its manifest.
func (c *Cluster) makeVolume(node, name string) (string, error) {
	path := c.volumePath(node, name)
	if err := os.RemoveAll(path); err != nil {
		return "", fmt.Errorf("empty volume: %w", err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", fmt.Errorf("make volume: %w", err)
	}
	// Any pod's user must be able to write. Not in MkdirAll, whose mode the umask changes.
	if err := os.Chmod(path, 0o777); err != nil {
		return "", fmt.Errorf("make volume: %w", err)
	}
	return render("volume.yaml", map[string]string{"Name": name, "Node": node, "Path": path})
}

// RecycleVolumes empties the volumes whose claims are gone and offers them again. It returns
// how many that were. No provisioner does this for local volumes.
func (c *Cluster) RecycleVolumes(ctx context.Context) (int, error) {
	c.recycling.Lock()
	defer c.recycling.Unlock()
	out, err := c.Kubectl(ctx, "get", "persistentvolumes", "-l", "mysql-mfg.io/lab-volume=true", "-o", "json")
	if err != nil {
		return 0, err
	}
	released, err := parseReleased(out)
	if err != nil {
		return 0, err
	}
	if len(released) == 0 {
		return 0, nil
	}
	args := []string{"delete", "persistentvolumes", "--wait", "--timeout=5m"}
	for name := range released {
		args = append(args, name)
	}
	if _, err := c.Kubectl(ctx, args...); err != nil {
		return 0, err
	}
	var manifests strings.Builder
	for name, node := range released {
		m, err := c.makeVolume(node, name)
		if err != nil {
			return 0, err
		}
		manifests.WriteString(m)
	}
	return len(released), c.Apply(ctx, manifests.String())
}

// parseReleased finds the volumes whose claims are gone, by name, with their nodes.
func parseReleased(list string) (map[string]string, error) {
	var volumes struct {
		Items []struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Status struct {
				Phase string `json:"phase"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(list), &volumes); err != nil {
		return nil, fmt.Errorf("read volumes: %w", err)
	}
	released := map[string]string{}
	for _, v := range volumes.Items {
		if v.Status.Phase == "Released" || v.Status.Phase == "Failed" {
			released[v.Metadata.Name] = v.Metadata.Labels["kubernetes.io/hostname"]
		}
	}
	return released, nil
}
