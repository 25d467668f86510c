// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/e2e/lab/image"
)

// The images of the cache store. Dragonfly's own binary is in no Debian archive: its image holds a proxy that speaks Dragonfly's
// commands in front of a Valkey in the same container.
const (
	ValkeyImage    = "localhost/valkey:9.1"
	DragonflyImage = "localhost/dragonfly-proxy:1"
)

// valkeyPackages make the root file system of both. A shell and the usual tools are in it, as in the official images, for scripts
// of probes and for people who look around with kubectl exec.
var valkeyPackages = []string{
	"valkey-server", "valkey-tools",
	// Without base-files there is no /bin and no /lib: they are links into /usr.
	"base-files", "bash", "coreutils", "dash", "grep", "hostname", "libc-bin", "procps", "sed",
}

// valkeyDropped is what the containers have no use for, beyond what the MySQL image goes without.
var valkeyDropped = []string{
	"usr/lib/x86_64-linux-gnu/gconv/", "usr/lib/aarch64-linux-gnu/gconv/", "usr/lib/x86_64-linux-gnu/systemd/",
	"usr/lib/aarch64-linux-gnu/systemd/", "usr/lib/systemd/", "usr/share/", "usr/bin/valkey-benchmark", "usr/bin/system", "etc/valkey/",
	"etc/init.d/", "var/lib/dpkg/", "var/log/", // usr/bin/valkey-server is a link to valkey-check-rdb, which stays
}

// cacheRecipe changes with everything that the root file system is made of.
const cacheRecipe = "cache recipe 2"

// valkeyRootfs makes the root file system with Valkey as a tar, or takes it from the cache.
func (c *Cluster) valkeyRootfs(ctx context.Context, cache string) (string, error) {
	sum := sha256.Sum256([]byte(cacheRecipe + " " + strings.Join(valkeyPackages, " ")))
	rootfs := filepath.Join(cache, "valkey-"+hex.EncodeToString(sum[:])[:16]+".tar")
	if used(rootfs) {
		return rootfs, nil
	}
	c.say("making the Valkey image of Debian packages")
	archive, err := c.debianArchive(ctx)
	if err != nil {
		return "", err
	}
	part := rootfs + ".part"
	defer func() { _ = os.Remove(part) }()
	if err := c.work(ctx, "/", nil, "mmdebstrap", "--quiet", "--variant=extract", "--format=tar",
		`--aptopt=Acquire::Check-Valid-Until "false"`,
		"--include="+strings.Join(valkeyPackages, ","), "sid", part, archive); err != nil {
		return "", fmt.Errorf("make Valkey root file system: %w", err)
	}
	if err := os.Rename(part, rootfs); err != nil {
		return "", fmt.Errorf("keep Valkey root file system: %w", err)
	}
	return rootfs, nil
}

func keepValkey(name string) bool {
	if slices.Contains([]string{"etc/passwd", "etc/group", "tmp", "run", "etc/nsswitch.conf", "data"}, name) {
		return false
	}
	dropped := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return !slices.ContainsFunc(mysqlDropped, dropped) && !slices.ContainsFunc(valkeyDropped, dropped)
}

// cacheFiles are what the packages' scripts would make, and the entry points of both images. They do what those of the official
// images do with arguments alone: put the server in front of them.
func cacheFiles(proxy string) []image.File {
	const uid = 999
	entry := func(server, pattern string) []byte {
		return []byte("#!/bin/sh\nset -e\ncase \"${1:-}\" in " + pattern + ") set -- " + server + " \"$@\" ;; esac\nexec \"$@\"\n")
	}
	return []image.File{
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nvalkey:x:999:999::/data:/bin/false\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nvalkey:x:999:\nnogroup:x:65534:\n")},
		{Path: "etc/nsswitch.conf", Mode: 0o644, Data: []byte("passwd: files\ngroup: files\nhosts: files dns\n")},
		{Path: "tmp", Mode: 0o1777},
		{Path: "run", Mode: 0o755},
		{Path: "data", Mode: 0o777, UID: uid, GID: uid},
		{Path: "usr/local/bin/docker-entrypoint.sh", Mode: 0o755, Data: entry("valkey-server", `-*|*.conf`)},
		{Path: "usr/local/bin/entrypoint.sh", Mode: 0o755, Data: entry("dragonfly", `-*|""`)},
		{Path: "usr/local/bin/dragonfly", Mode: 0o755, Source: proxy},
	}
}

// buildCacheImages builds the images of the cache store and loads them on every node.
func (c *Cluster) buildCacheImages(ctx context.Context, repo string) ([]string, error) {
	s, err := c.state()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	rootfs, err := c.valkeyRootfs(ctx, s.Cache)
	if err != nil {
		return nil, err
	}
	proxy := filepath.Join(c.dir, "images", "dragonfly")
	if err := c.goRun(ctx, filepath.Join(repo, "e2e"), []string{"build", "-p", "2", "-trimpath", "-ldflags", "-s -w", "-o", proxy, "./dragonfly"}); err != nil {
		return nil, fmt.Errorf("compile the Dragonfly proxy: %w", err)
	}
	var built []string
	for _, cfg := range []image.Config{
		{Name: ValkeyImage, Entrypoint: []string{"docker-entrypoint.sh"}, Cmd: []string{"valkey-server"}},
		{Name: DragonflyImage, Entrypoint: []string{"entrypoint.sh"}, Cmd: []string{"dragonfly", "--logtostderr"}},
	} {
		cfg.User, cfg.WorkingDir = "999:999", "/data"
		cfg.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
		tar := filepath.Join(c.dir, "images", strings.NewReplacer("/", "-", ":", "-").Replace(cfg.Name)+".tar")
		if err := writeCacheImage(tar, cfg, rootfs, proxy); err != nil {
			return built, err
		}
		if err := c.LoadImage(ctx, tar); err != nil {
			return built, err
		}
		built = append(built, cfg.Name)
	}
	c.say("built and loaded %s in %.1fs", strings.Join(built, " and "), time.Since(began).Seconds())
	return built, nil
}

func writeCacheImage(tar string, cfg image.Config, rootfs, proxy string) error {
	in, err := os.Open(rootfs)
	if err != nil {
		return fmt.Errorf("open Valkey root file system: %w", err)
	}
	defer func() { _ = in.Close() }()
	_, err = image.WriteRootfs(tar, cfg, in, keepValkey, cacheFiles(proxy))
	return err
}
