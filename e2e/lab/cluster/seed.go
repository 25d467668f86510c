// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mysql-mfg/mfg/e2e/lab/image"
)

// ensureSeed returns a containerd root that holds the base images already unpacked. Every
// node starts with a copy of it, made of hard links: to unpack MySQL on each node would take
// longer than the rest of a warm start.
func (c *Cluster) ensureSeed(ctx context.Context, cache string, tars []string) (string, error) {
	sum := sha256.New()
	version, err := output(ctx, "containerd", "--version")
	if err != nil {
		return "", err
	}
	fmt.Fprintln(sum, "recipe 1", version)
	for _, tar := range tars {
		digest, err := image.Digest(tar)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, digest)
	}
	seed := filepath.Join(cache, "seed-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if used(seed) {
		return seed, nil
	}
	c.say("unpacking the base images")
	if err := c.makeSeed(ctx, seed, tars); err != nil {
		return "", fmt.Errorf("unpack base images: %w", err)
	}
	return seed, nil
}

func (c *Cluster) makeSeed(ctx context.Context, seed string, tars []string) error {
	run := filepath.Join(c.dir, "seed")
	part := seed + ".part"
	if err := errors.Join(os.RemoveAll(part), os.RemoveAll(run), os.MkdirAll(run, 0o700), os.MkdirAll(part, 0o700)); err != nil {
		return err
	}
	config, err := render("seed.toml", map[string]string{"Root": part, "Run": run})
	if err != nil {
		return err
	}
	if err := os.WriteFile(run+"/containerd.toml", []byte(config), 0o600); err != nil {
		return err
	}
	const name = "containerd-seed"
	if err := c.start(program{name: name, cgroup: "sys/seed", argv: []string{"containerd", "-c", run + "/containerd.toml", "-l", "warn"}}); err != nil {
		return err
	}
	err = awaitSocket(ctx, run+"/containerd.sock")
	for _, tar := range tars {
		if err == nil {
			err = importImage(ctx, run+"/containerd.sock", tar)
		}
	}
	// A stopped containerd has written everything down.
	if err := errors.Join(err, c.stop(ctx, name, syscall.SIGTERM)); err != nil {
		return err
	}
	return os.Rename(part, seed)
}

// seedNode gives a node its containerd root.
func (c *Cluster) seedNode(ctx context.Context, n Endpoint, seed string) error {
	dst := filepath.Join(c.nodeDir(n.Name), "containerd")
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return fmt.Errorf("make node directory: %w", err)
	}
	if _, err := output(ctx, "cp", "-al", seed, dst); err != nil {
		// Cache and lab are on different file systems.
		if _, err := output(ctx, "rm", "-rf", dst); err != nil {
			return err
		}
		if _, err := output(ctx, "cp", "-a", seed, dst); err != nil {
			return err
		}
	}
	// Layers are only ever read, but the databases are written to: those must be copies.
	return copyDatabases(seed, dst)
}

func copyDatabases(seed, dst string) error {
	files, err := filepath.Glob(filepath.Join(seed, "*", "*.db"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("copy databases: none found in %s (%w)", seed, errors.Join(err))
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("copy databases: %w", err)
		}
		to := filepath.Join(dst, strings.TrimPrefix(file, seed))
		if err := errors.Join(os.Remove(to), os.WriteFile(to, raw, 0o600)); err != nil {
			return fmt.Errorf("copy databases: %w", err)
		}
	}
	return nil
}
