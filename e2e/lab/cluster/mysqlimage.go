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
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/e2e/lab/image"
)

// debianArchive finds the archive that apt is set up with. On a new machine apt has no lists yet, and knows none.
func (c *Cluster) debianArchive(ctx context.Context) (string, error) {
	archive, err := knownArchive(ctx)
	if err != nil || archive != "" {
		return archive, err
	}
	c.say("refreshing the package lists")
	if _, err := apt(ctx, "update"); err != nil {
		return "", fmt.Errorf("refresh package lists: %w", err)
	}
	archive, err = knownArchive(ctx)
	if err == nil && archive == "" {
		err = errors.New("find the Debian archive: apt is set up with none, and images are made of Debian packages")
	}
	return archive, err
}

// knownArchive is the archive in the lists of apt, "" if there are none.
func knownArchive(ctx context.Context) (string, error) {
	out, err := output(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)", "Created-By: Packages")
	if err != nil {
		return "", fmt.Errorf("find the Debian archive: %w", err)
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 3 && f[1] == "Debian" && f[2] == "Debian" {
			return f[0], nil
		}
	}
	return "", nil
}

// mysqlPackages make the MySQL image. A shell and the usual tools are in it for people who
// look around with kubectl exec.
var mysqlPackages = []string{
	"mysql-server-core", "mysql-client-core", "mysql-common", "libjemalloc2",
	"bash", "coreutils", "dash", "findutils", "grep", "hostname", "libc-bin", "procps", "sed",
}

// mysqlImage makes localhost/mysql:9.7 of Debian packages, or takes it from the cache.
func (c *Cluster) mysqlImage(ctx context.Context, cache string) (string, error) {
	sum := sha256.Sum256([]byte("recipe 1 " + strings.Join(mysqlPackages, " ") + strings.Join(mysqlDropped, " ")))
	tar := filepath.Join(cache, "mysql-"+hex.EncodeToString(sum[:])[:16]+".tar")
	if used(tar) {
		return tar, nil
	}
	c.say("making the MySQL image of Debian packages")
	archive, err := c.debianArchive(ctx)
	if err != nil {
		return "", err
	}
	rootfs := filepath.Join(c.dir, "images", "mysql-rootfs.tar")
	defer func() { _ = os.Remove(rootfs) }()
	if err := c.work(ctx, "/", nil, "mmdebstrap", "--quiet", "--variant=extract",
		// The Release file of sid may be past its date where the archive is a snapshot.
		`--aptopt=Acquire::Check-Valid-Until "false"`,
		"--include="+strings.Join(mysqlPackages, ","), "sid", rootfs, archive); err != nil {
		return "", fmt.Errorf("make MySQL root file system: %w", err)
	}
	in, err := os.Open(rootfs)
	if err != nil {
		return "", fmt.Errorf("open MySQL root file system: %w", err)
	}
	defer func() { _ = in.Close() }()
	_, err = image.WriteRootfs(tar, image.Config{
		Name: "localhost/mysql:9.7", Entrypoint: []string{"/usr/sbin/mysqld"}, User: "999:999",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}, in, keepMySQL, mysqlFiles())
	return tar, err
}

// mysqlDropped is what a container has no use for; it is a third of the image.
var mysqlDropped = []string{
	"usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/info/", "usr/share/lintian/",
	"usr/share/perl/", "usr/share/zoneinfo/", "usr/share/i18n/", "usr/share/bash-completion/",
	"var/cache/", "var/lib/apt/", "var/lib/dpkg/info/", "boot/", "dev/", "usr/lib/mysql-test/", "usr/share/mysql-test/",
}

func keepMySQL(name string) bool {
	// What mysqlFiles brings along must not be there twice.
	if slices.Contains([]string{"etc/passwd", "etc/group", "tmp", "run", "etc/nsswitch.conf"}, name) {
		return false
	}
	return !slices.ContainsFunc(mysqlDropped, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// mysqlFiles are what the packages' scripts would make: they did not run.
func mysqlFiles() []image.File {
	const uid = 999
	return []image.File{
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/bash\nmysql:x:999:999:MySQL Server:/var/lib/mysql:/bin/false\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nmysql:x:999:\nnogroup:x:65534:\n")},
		{Path: "etc/nsswitch.conf", Mode: 0o644, Data: []byte("passwd: files\ngroup: files\nhosts: files dns\n")},
		{Path: "tmp", Mode: 0o1777},
		{Path: "run", Mode: 0o755},
		{Path: "run/mysqld", Mode: 0o755, UID: uid, GID: uid},
		{Path: "var/lib/mysql", Mode: 0o750, UID: uid, GID: uid},
		{Path: "var/lib/mysql-files", Mode: 0o770, UID: uid, GID: uid},
	}
}
