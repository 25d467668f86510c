// SPDX-License-Identifier: Apache-2.0

package making

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
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
