// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// The rows: numbers, and text that compresses to about a half, as much data does.
const (
	backupTables    = 4
	backupRowBytes  = 1024
	backupBatchRows = 8 << 10
	// backupRoom is how many times the data must fit on the disk: two groups of two sites, a scratch copy, a backup and a half to spare.
	backupRoom = 6.5
	// backupCatchUp is how long a replica may be behind after all of the rows.
	backupCatchUp = 30 * time.Minute
)

// enoughRoom refuses to fill the disk of a machine.
func enoughRoom(dir string, size int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("look at the room of %s: %w", dir, err)
	}
	free, need := int64(st.Bavail)*st.Bsize, int64(backupRoom*float64(size))
	if free < need {
		return fmt.Errorf("%s has %d MiB free, and this needs %d MiB: give a smaller SIZE", dir, free>>20, need>>20)
	}
	return nil
}

// fill makes the rows, has every site apply them, and takes the binary logs away, which are as large again.
func (k *backupBench) fill(ctx context.Context) error {
	now, err := k.group.AwaitReady(ctx, bringUp)
	if err != nil {
		return err
	}
	active := now.Status.ActiveSite
	if _, err := k.group.RootSQL(ctx, active, "CREATE DATABASE IF NOT EXISTS app"); err != nil {
		return err
	}
	batches := max(k.size/backupTables/backupRowBytes/backupBatchRows, 1)
	began := time.Now()
	for i := range backupTables {
		table := fmt.Sprintf("app.rows_%d", i+1)
		statements := []string{
			"CREATE TABLE " + table + " (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT NOT NULL, at DATETIME(6), v VARCHAR(1200) NOT NULL, INDEX (n))",
			"SET SESSION cte_max_recursion_depth = 1 << 20",
		}
		insert := fmt.Sprintf("INSERT INTO %s (n, at, v) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) "+
			"SELECT i, NOW(6), HEX(RANDOM_BYTES(%d)) FROM c", table, backupBatchRows, (backupRowBytes-64)/2)
		// In pieces: one command that takes minutes would be one that nobody can follow.
		for done := int64(0); done < batches; {
			n := min(batches-done, 16)
			done += n
			for range n {
				statements = append(statements, insert)
			}
			if _, err := k.group.RootSQL(ctx, active, strings.Join(statements, "; ")); err != nil {
				return fmt.Errorf("fill %s: %w", table, err)
			}
			statements = []string{"SET SESSION cte_max_recursion_depth = 1 << 20"}
		}
		k.stage.Say("filled %s, %.0f s since the first row", table, time.Since(began).Seconds())
	}
	if err := k.group.AwaitCaughtUp(ctx, active, backupCatchUp); err != nil {
		return err
	}
	for _, site := range now.Spec.Sites {
		if _, err := k.group.RootSQL(ctx, site.Name, "FLUSH BINARY LOGS; DO SLEEP(1.1); PURGE BINARY LOGS BEFORE NOW()"); err != nil {
			return fmt.Errorf("remove binary logs of %s: %w", site.Name, err)
		}
		if site.Name != active {
			k.source = site.Name
		}
	}
	k.stage.Say("every site has the rows after %.0f s; reading digests", time.Since(began).Seconds())
	if k.digests, err = k.group.Digests(ctx, active); err != nil {
		return err
	}
	volume, err := k.group.VolumeDir(ctx, k.source)
	if err != nil {
		return err
	}
	k.dir = filepath.Join(volume, "data")
	k.figures.SizeBytes = batches * backupTables * backupBatchRows * backupRowBytes
	k.figures.DirectoryBytes, err = folderBytes(k.dir)
	return err
}

// folderBytes adds up files; those that go meanwhile count for nothing.
func folderBytes(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum, err
}

// baselines are what a person would do without us: mysqldump into zstd, and a copy of the directory.
func (k *backupBench) baselines(ctx context.Context, run int) error {
	dir, err := os.MkdirTemp(k.stage.Lab.Dir(), "bench-")
	if err != nil {
		return fmt.Errorf("make room for baselines: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var errs []error
	for name, measure := range map[string]func(context.Context, string) error{baselineDump: k.dump, baselineCopy: k.copyDirectory} {
		at := filepath.Join(dir, name)
		began := time.Now()
		err := measure(ctx, at)
		took := time.Since(began).Seconds()
		stored, sizeErr := folderBytes(at)
		if err = errors.Join(err, sizeErr); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		k.figures.addBaseline(name, backupSample{Run: run, BackupSeconds: round(took), StoredBytes: stored})
		k.stage.Say("%s: %.1f s, %d MB", name, took, stored>>20)
		_ = os.RemoveAll(at)
	}
	return errors.Join(errs...)
}

// dump runs the mysqldump of the site's own image in the site's own file system, over its socket, into this machine's zstd.
func (k *backupBench) dump(ctx context.Context, to string) error {
	pid, err := stage.FindProcess(ctx, k.group, k.source, stage.Mysqld)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := k.stage.Kube.Get(ctx, client.ObjectKey{Namespace: backupNamespace, Name: v1alpha1.RootSecret(group)}, secret); err != nil {
		return fmt.Errorf("read root password: %w", err)
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	zstd := exec.CommandContext(ctx, "zstd", "-q", "-c")
	dump := exec.CommandContext(ctx, "nsenter", "--mount", "--target", strconv.Itoa(pid), "--", "mysqldump", "--no-defaults", "--user=root",
		"--socket=/run/mfg/mysqld.sock", "--single-transaction", "--set-gtid-purged=ON", "--routines", "--events", "--triggers", "--hex-blob", "--databases", "app")
	dump.Env = append(os.Environ(), "MYSQL_PWD="+string(secret.Data["password"]))
	var dumpSaid, zstdSaid strings.Builder
	dump.Stderr, zstd.Stderr, zstd.Stdout = &dumpSaid, &zstdSaid, out
	pipe, err := dump.StdoutPipe()
	if err != nil {
		return err
	}
	zstd.Stdin = pipe
	if err := dump.Start(); err != nil {
		return fmt.Errorf("start mysqldump: %w", err)
	}
	packed := zstd.Run()
	dumped := dump.Wait()
	if err := errors.Join(dumped, packed); err != nil {
		return fmt.Errorf("%w: %s %s", err, dumpSaid.String(), zstdSaid.String())
	}
	return out.Close()
}

// copyDirectory copies the data directory of a site that goes on meanwhile. Nobody could start a server on it: it is for the time alone.
func (k *backupBench) copyDirectory(ctx context.Context, to string) error {
	out, err := exec.CommandContext(ctx, "cp", "--recursive", "--reflink=never", k.dir, to).CombinedOutput()
	// A file that went in between is no matter.
	if err != nil && !strings.Contains(string(out), "No such file") {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
