// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"embed"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "templates/*"))

// nodeConfig is what the templates of one node may use.
type nodeConfig struct {
	Endpoint
	Dir, PKI  string // the node's folder, the lab's certificates
	Run       string // sockets and whatever a reboot would lose
	DNS       string
	PodNet    string
	CgroupV1  bool
	CgroupDir string
}

func (c *Cluster) nodeConfig(n Endpoint) nodeConfig {
	dir := c.nodeDir(n.Name)
	return nodeConfig{
		Endpoint: n, Dir: dir, PKI: filepath.Join(c.dir, "pki"), Run: filepath.Join(dir, "run"),
		DNS: dnsIP, PodNet: podNet, CgroupV1: !c.cgroups.v2, CgroupDir: "/" + cgroupRoot + "/" + n.Name,
	}
}

func render(name string, data any) (string, error) {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return b.String(), nil
}

// renderKubeconfig names the certificates by path: those files live as long as the lab.
func renderKubeconfig(pki, who string) string {
	s, err := render("kubeconfig.yaml", map[string]string{"PKI": pki, "Who": who, "Server": apiserver})
	if err != nil {
		panic(err) // only a broken template can do that, and the tests render it
	}
	return s
}
