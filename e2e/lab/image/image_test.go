// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// entries reads a tar into name -> content and the order of its names.
func entries(t *testing.T, r io.Reader) (map[string]string, []string) {
	t.Helper()
	got, order := map[string]string{}, []string{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return got, order
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(b)
		order = append(order, h.Name)
	}
}

func TestArchiveLayout(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "x.tar")
	cfg := Config{Name: "localhost/x:1", Entrypoint: []string{"/x"}, User: "65532"}
	files := []File{{Path: "tmp", Mode: 0o1777}, {Path: "x", Mode: 0o755, Data: []byte("binary")}}
	digest, err := Write(dst, cfg, files)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(dst)
	if err != nil {
		t.Fatal(err)
	}
	outer, order := entries(t, bytes.NewReader(raw))
	if order[0] != "manifest.json" {
		t.Errorf("first entry is %s, readers look for the manifest first", order[0])
	}
	var list []manifest
	if err := json.Unmarshal([]byte(outer["manifest.json"]), &list); err != nil {
		t.Fatal(err)
	}
	if got := list[0].RepoTags[0]; got != cfg.Name {
		t.Errorf("name = %s", got)
	}
	if want := "sha256:" + strings.TrimSuffix(list[0].Config, ".json"); digest != want {
		t.Errorf("digest = %s, the archive says %s", digest, want)
	}
	var doc document
	if err := json.Unmarshal([]byte(outer[list[0].Config]), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Config.User != "65532" || doc.RootFS.DiffIDs[0] != "sha256:"+strings.TrimSuffix(list[0].Layers[0], ".tar") {
		t.Errorf("configuration = %+v", doc)
	}
	layer, _ := entries(t, strings.NewReader(outer[list[0].Layers[0]]))
	if layer["x"] != "binary" {
		t.Errorf("layer = %v", layer)
	}
	if _, ok := layer["tmp/"]; !ok {
		t.Error("no directory tmp/")
	}
}

func TestRootfsIsFilteredAndReproducible(t *testing.T) {
	rootfs := func() io.Reader {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, n := range []string{"./usr/sbin/mysqld", "./usr/share/doc/x"} {
			_ = w.WriteHeader(&tar.Header{Name: n, Size: 1, Mode: 0o755, Typeflag: tar.TypeReg})
			_, _ = w.Write([]byte("x"))
		}
		_ = w.Close()
		return &b
	}
	keep := func(n string) bool { return !strings.HasPrefix(n, "usr/share/doc/") }
	dir := t.TempDir()
	var digests [2]string
	for i := range digests {
		d, err := WriteRootfs(filepath.Join(dir, "x.tar"), Config{Name: "x"}, rootfs(), keep, nil)
		if err != nil {
			t.Fatal(err)
		}
		digests[i] = d
	}
	if digests[0] != digests[1] {
		t.Errorf("digests differ: %v", digests)
	}
	raw, _ := os.ReadFile(filepath.Join(dir, "x.tar"))
	outer, order := entries(t, bytes.NewReader(raw))
	layer, _ := entries(t, strings.NewReader(outer[order[2]]))
	if len(layer) != 1 || layer["usr/sbin/mysqld"] != "x" {
		t.Errorf("layer = %v", layer)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Two tests may build the same image at the same time, over one that is there already.
func TestSeveralBuildTheSameImage(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "x.tar")
	files := []File{{Path: "x", Mode: 0o755, Data: bytes.Repeat([]byte("binary"), 1<<16)}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			want, err := Write(dst, Config{Name: "localhost/x:1"}, files)
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := Digest(dst); err != nil || got != want {
				t.Errorf("the archive has digest %s, want %s: %v", got, want, err)
			}
		})
	}
	all.Wait()
	if left, err := filepath.Glob(dst + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}
