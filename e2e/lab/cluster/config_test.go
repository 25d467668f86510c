// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func testNode(v2 bool) nodeConfig {
	c := &Cluster{dir: "/lab", cgroups: cgroups{v2: v2}}
	return c.nodeConfig(endpoint("east", 3, true))
}

// renderYAML renders a template and reads its first document.
func renderYAML(t *testing.T, name string, data any) map[string]any {
	t.Helper()
	text, err := render(name, data)
	if err != nil {
		t.Fatal(err)
	}
	doc, _, _ := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	var got map[string]any
	if err := yaml.UnmarshalStrict([]byte(doc), &got); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	return got
}

func TestKubeletConfiguration(t *testing.T) {
	v1, v2 := renderYAML(t, "kubelet.yaml", testNode(false)), renderYAML(t, "kubelet.yaml", testNode(true))
	if got := v1["cgroupRoot"]; got != "/mfg-lab/east" {
		t.Errorf("cgroupRoot = %v: down would not find the containers", got)
	}
	if v1["failCgroupV1"] != false {
		t.Error("kubelet refuses v1 unless told otherwise")
	}
	if _, ok := v2["failCgroupV1"]; ok {
		t.Error("v2 needs no exception")
	}
	if _, ok := v1["nodeStatusUpdateFrequency"]; ok {
		t.Error("the lab must find out about a lost node as slowly as production does")
	}
	if got := v1["containerLogMaxSize"]; got != "1Gi" {
		t.Errorf("containerLogMaxSize = %v: a writer's journal loses its beginning after ten minutes under load", got)
	}
}

func TestOtherConfigurations(t *testing.T) {
	node := testNode(true)
	if got := renderYAML(t, "proxy.yaml", node)["hostnameOverride"]; got != "east" {
		t.Errorf("hostnameOverride = %v", got)
	}
	cni, err := render("cni.conflist", node)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid([]byte(cni)) || !strings.Contains(cni, `"subnet": "10.244.3.0/24"`) {
		t.Errorf("CNI configuration:\n%s", cni)
	}
	toml, err := render("containerd.toml", node)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`root = "/lab/nodes/east/containerd"`, `Root = "/lab/nodes/east/run/runc"`, "restrict_oom_score_adj = true"} {
		if !strings.Contains(toml, want) {
			t.Errorf("containerd configuration lacks %s", want)
		}
	}
	renderYAML(t, "kubeconfig.yaml", map[string]string{"PKI": "/p", "Who": "admin", "Server": apiserver})
	renderYAML(t, "coredns.yaml", map[string]string{"DNS": dnsIP})
	renderYAML(t, "storage.yaml", nil)
	renderYAML(t, "volume.yaml", map[string]string{"Name": "v", "Node": "east", "Path": "/v"})
}

func TestBuildKey(t *testing.T) {
	repo := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(repo, "m", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m\n")
	write("go.sum", "")
	b := build{module: "m", packages: []string{"."}}
	key := func(goVersion string) string {
		k, err := b.key(repo, goVersion)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	seen := []string{key("go1"), key("go2")}
	write("go.sum", "x")
	seen = append(seen, key("go1"))
	write("main.go", "package main")
	seen = append(seen, key("go1"))
	if n := len(slices.Compact(slices.Sorted(slices.Values(seen)))); n != len(seen) {
		t.Errorf("keys repeat: %v", seen)
	}
	if key("go1") != seen[3] {
		t.Error("the key changes by itself")
	}
	if !cacheEntry.MatchString("kube-" + strings.TrimPrefix(seen[0], "m-")) {
		t.Errorf("%s would never be pruned", seen[0])
	}
}

func TestVersionFlags(t *testing.T) {
	b := build{versioned: "k8s.io/kubernetes"}
	for _, gomod := range []string{"require k8s.io/kubernetes v1.37.2\n", "require (\n\tk8s.io/kubernetes v1.37.2\n)\n"} {
		got, err := b.versionFlags("tool k8s.io/kubernetes/cmd/kubelet\n" + gomod)
		if err != nil || !strings.Contains(got, "gitVersion=v1.37.2") || !strings.Contains(got, "gitMinor=37") {
			t.Errorf("flags = %q, %v", got, err)
		}
	}
	if _, err := b.versionFlags("module m\n"); err == nil {
		t.Error("a go.mod without Kubernetes accepted")
	}
}

func TestKeepMySQL(t *testing.T) {
	for name, want := range map[string]bool{
		"usr/sbin/mysqld": true, "usr/share/mysql-8.0/english/errmsg.sys": true, "etc/passwd": false,
		"usr/share/doc/x/copyright": false, "usr/share/doc": true,
	} {
		if keepMySQL(name) != want {
			t.Errorf("keep %s = %t", name, !want)
		}
	}
}
