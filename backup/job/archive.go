// SPDX-License-Identifier: Apache-2.0

package job

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// left is what of a data directory belongs to that one server, or is made again: its identity, its keys of TLS, its logs, temporary and
// doublewrite files, persisted settings (a restored server must not take any), and the record of the clone.
func left(name string, d fs.DirEntry) bool {
	switch name {
	case "auto.cnf", "mysqld-auto.cnf", "ibtmp1", "#innodb_temp", "#clone", "ib_buffer_pool":
		return true
	}
	if strings.Contains(name, "/") {
		return false
	}
	return strings.HasSuffix(name, ".pem") || strings.HasSuffix(name, ".dblwr") || strings.HasPrefix(name, "binlog.") ||
		strings.HasPrefix(name, "relay-bin") || strings.HasSuffix(name, ".pid") || !d.IsDir() && !d.Type().IsRegular()
}

// pack writes a data directory of a server that has ended as a tar, sorted by name.
func pack(ctx context.Context, dir string, out io.Writer) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil || name == "." {
			return err
		}
		if left(name, d) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		return packFile(w, file, name, d)
	})
	return errors.Join(err, w.Close())
}

func packFile(w *tar.Writer, file, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o640, Size: info.Size(), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if d.IsDir() {
		h.Mode, h.Size, h.Typeflag, h.Name = 0o750, 0, tar.TypeDir, h.Name+"/"
	}
	if err := w.WriteHeader(h); err != nil || d.IsDir() {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{f}, make([]byte, 1<<20))
	return err
}

// unpack makes a data directory of a tar. Nothing may lie outside it, nothing is overwritten, and there is nothing but files and
// directories. It reads to the end of the stream: only that says that all of it was there.
func unpack(ctx context.Context, dir string, in io.Reader) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, in)
			return err
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name := path.Clean(h.Name)
		if !filepath.IsLocal(name) {
			return fail(Reason(bucket.Damaged), fmt.Errorf("the backup holds a file named %.100q, which lies outside the data directory", h.Name))
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.Mkdir(name, 0o750)
		case tar.TypeReg:
			err = unpackFile(root, name, r)
		default:
			err = fail(Reason(bucket.Damaged), fmt.Errorf("the backup holds %.100q, which is neither a file nor a directory", h.Name))
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, r io.Reader) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, r, make([]byte, 1<<20))
	return errors.Join(err, f.Close())
}

// syncTree makes everything below a directory durable.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		return syncFile(file)
	})
}

func syncFile(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// PartialSuffix marks a directory that is being filled. Its mark is there before anything else, and goes when all of it is on the disk: what
// has a mark is never whole.
const PartialSuffix = ".loading"

// clear makes an empty directory, in place of what an earlier try of ours left. Anything else that is there is not touched.
func clear(dir string) error {
	mark := dir + PartialSuffix
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case len(entries) > 0:
		if _, err := os.Stat(mark); err != nil {
			return fail(TargetNotEmpty, fmt.Errorf("%s holds data that no backup brought: nothing was touched; choose another volume, or move the data away", dir))
		}
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	if err := errors.Join(syncFile(mark), syncFile(filepath.Dir(dir))); err != nil {
		return err
	}
	// The directory itself may be the mount of a volume.
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o750)
}

// settle makes the directory durable, and takes its mark off.
func settle(dir string) error {
	if err := errors.Join(syncTree(dir), syncFile(filepath.Dir(dir))); err != nil {
		return err
	}
	if err := os.Remove(dir + PartialSuffix); err != nil {
		return err
	}
	return syncFile(filepath.Dir(dir))
}
