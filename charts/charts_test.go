// SPDX-License-Identifier: Apache-2.0

//go:build helm

// Package charts_test renders the charts with the real helm. It is behind the build tag helm, so that the ordinary
// tests need no helm; with the tag a missing helm fails.
package charts_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/pace"
)

const (
	helm          = "../bin/helm"
	promtool      = "../bin/promtool"
	operatorChart = "mfg"
	groupChart    = "mysql-failover-group"
)

var update = flag.Bool("update", false, "write golden files and the tables of values")

func TestMain(m *testing.M) {
	flag.Parse()
	for _, tool := range []string{helm, promtool} {
		if _, err := os.Stat(tool); errors.Is(err, fs.ErrNotExist) {
			_, _ = os.Stderr.WriteString("charts: " + tool + " is missing: run 'make tools bin/promtool'\n")
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// run gives what helm printed to stdout, and its complaint if it failed.
func run(t *testing.T, args ...string) (string, string) {
	t.Helper()
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), helm, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG=/dev/null")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", err.Error() + ": " + stderr.String()
	}
	return stdout.String(), ""
}

// render gives the manifests of a chart for values in YAML.
func render(t *testing.T, chart, values string, args ...string) string {
	t.Helper()
	out, complaint := run(t, append(renderArgs(t, chart, values), args...)...)
	if complaint != "" {
		t.Fatalf("render %s: %s", chart, complaint)
	}
	return out
}

func renderArgs(t *testing.T, chart, values string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	release, namespace := "mfg", "mfg-system"
	if chart == groupChart {
		release, namespace = "orders", "shop"
	}
	return []string{"template", release, chart, "--namespace", namespace, "--values", file}
}

func TestLint(t *testing.T) {
	for _, chart := range []string{operatorChart, groupChart} {
		if out, complaint := run(t, "lint", "--strict", chart); complaint != "" {
			t.Errorf("lint %s: %s\n%s", chart, complaint, out)
		}
	}
}

// matrix are the renderings that are kept as golden files. The definition is compared elsewhere.
var matrix = map[string]struct{ chart, values string }{
	"mfg-default": {operatorChart, `crds: {enabled: false}`},
	"mfg-namespaced": {operatorChart, `
crds: {enabled: false}
watchNamespaces: [shop, billing]`},
	"mfg-escrow": {operatorChart, `
crds: {enabled: false}
auxiliary: {escrowTLS: {enabled: true, existingSecret: mfg-escrow-tls}}
escrowProtection: {operators: ["system:serviceaccount:mfg-blue:mfg-operator"]}`},
	"mfg-escrow-own": {operatorChart, `
crds: {enabled: false}
auxiliary: {escrowTLS: {enabled: true}}`},
	"mfg-tenants": {operatorChart, `
crds: {enabled: false}
watchNamespaces: [shop, billing]
tenants: {allowedImages: [mysql, registry.example.com/db/], allowedDNSSuffixes: ["{namespace}.db.example.com"]}`},
	"mfg-pods": {operatorChart, `
crds: {enabled: false}
podProtection: {enabled: true}`},
	"mfg-confined": {operatorChart, `
crds: {enabled: false}
escrowProtection: {enabled: false}
platformAssignsIDs: true
dataLossProtection: {enabled: true}
operatorConfinement: {enabled: true}`},
	"mfg-no-rights": {operatorChart, `
crds: {enabled: false}
rbac: {create: false, aggregateClusterRoles: false}
escrowProtection: {enabled: false}
serviceAccount: {create: false, name: own}`},
	"mfg-standby": {operatorChart, `
crds: {enabled: false}
watchNamespaces: [shop]
replicas: 2
networkPolicy: {enabled: true}`},
	"mfg-everything": {operatorChart, `
crds: {enabled: false}
image: {repository: registry.example.org/mfg/operator, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000001", pullPolicy: Always}
sidecarImage: {repository: registry.example.org/mfg/sidecar, tag: v9, pullPolicy: Never}
imagePullSecrets: [{name: pull}]
serviceAccount: {annotations: {example.org/a: b}}
nodeTaints: {enabled: true}
logging: {level: debug}
tracing: {endpoint: "http://collector.monitoring:4318"}
auxiliary: {statusAuthorization: true, escrowTLS: {enabled: true, existingSecret: mfg-escrow-tls}}
monitoring: {rules: {enabled: true, labels: {release: prometheus}, excludeRules: [MysqlFailoverGroupEncryptionIncomplete]},
  serviceMonitor: {enabled: true, labels: {release: prometheus}, interval: 15s}, podMonitor: {enabled: true, labels: {release: prometheus}, interval: 20s}}
networkPolicy:
  enabled: true
  metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  statusFrom: [{ipBlock: {cidr: 10.0.0.0/24}}]
resources: {requests: {cpu: "1"}}
priorityClassName: system-cluster-critical
nodeSelector: {kubernetes.io/os: linux}
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
tolerations: [{key: dedicated, operator: Exists, effect: NoSchedule}]
podAnnotations: {example.org/c: d}
podLabels: {example.org/e: f}
extraArgs: [--some-flag=1]`},
	"group-default": {groupChart, ``},
	"group-policy": {groupChart, `
networkPolicy: {enabled: true, operatorNamespace: operators, clientsFrom: [{podSelector: {matchLabels: {app: shop}}}],
  metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}`},
	"group-everything": {groupChart, everyField},
}

// everyField sets every field of the spec; TestEveryFieldIsAValue holds it to that.
const everyField = `
name: billing
labels: {team: money}
annotations: {example.org/owner: us}
image: registry.example.org/mysql:9.7.4
imagePullPolicy: Always
imagePullSecrets: [{name: pull}]
sites:
- name: paris
  role: primary-candidate
  priority: 10
  nodeSelector: {topology.kubernetes.io/zone: eu-1a}
  affinity: {podAntiAffinity: {}}
  tolerations: [{key: db, operator: Exists}]
  storage: {size: 100Gi, storageClassName: fast}
  resources: {requests: {cpu: "2", memory: 4Gi}}
  externalAddress: paris.example.org
- {name: frankfurt, role: primary-candidate}
- {name: madrid, role: dr-only, priority: -1}
mysqlConf: {max_connections: "500"}
tls: {secretName: billing-tls, issuerRef: {name: ca, kind: ClusterIssuer}}
failover: {mode: Manual, pollInterval: 1s, threshold: 5, crashGrace: 3s, cooldown: 1h, drainTimeout: 1m, maxLostTransactions: 0, onDivergence: Hold}
sidecar: {leaseTimeout: 15s, peerCheckInterval: 1s, fenceTimeout: 1s, resources: {requests: {cpu: 100m}}}
cache: {enabled: false}
backup: {profiles: [{name: nightly, storage: {s3: {bucket: backups, secretName: keys}}, encryption: {recipients: [age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p]}}], pitr: {enabled: true, profile: nightly}}
initFromBackup: {profile: nightly, backup: monday}
encryptionAtRest: {enabled: true, coverage: {binaryLog: false}, keyring: {retainVersions: 3}}
dns: {name: billing.example.org, ttlSeconds: 10}
taints: {enabled: true}
application: {database: billing, user: app}
maxReadLag: 30s
priorityClassName: databases
topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
podLabels: {team: money}
podAnnotations: {example.org/notes: ledger}
deletionPolicy: Delete
`

func TestGolden(t *testing.T) {
	for name, tc := range matrix {
		t.Run(name, func(t *testing.T) {
			golden(t, filepath.Join("testdata", name+".yaml"), render(t, tc.chart, tc.values))
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("read golden file (write it with -update): %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update accepts it):\n%s", file, diff)
	}
}

// TestWindowsOfUpgrades: what the operator can read, the schema takes.
func TestWindowsOfUpgrades(t *testing.T) {
	for _, window := range []string{"", "never", "22:00-04:00", "9:00-17:00", "Mon-Fri 22:00-04:00; Sat,Sun 00:00-24:00", "Tue,Thu-Fri 09:00-17:00;Sun 00:00-24:00;"} {
		if _, err := pace.ParseWindow(window); err != nil {
			t.Fatal(err)
		}
		if out, complaint := run(t, renderArgs(t, operatorChart, fmt.Sprintf("upgrades: {window: %q}", window))...); complaint != "" || window != "" && !strings.Contains(out, window) {
			t.Errorf("%q: %s", window, complaint)
		}
	}
}

func TestRefusedValues(t *testing.T) {
	tests := map[string]struct{ chart, values, want string }{
		"escrow Secret that is none":   {operatorChart, `auxiliary: {escrowTLS: {enabled: true, existingSecret: a/b}}`, "existingSecret"},
		"unknown value":                {operatorChart, `replica: 2`, "replica"},
		"three operators":              {operatorChart, `replicas: 3`, "replicas"},
		"unknown nested value":         {operatorChart, `image: {repo: x}`, "repo"},
		"digest that is none":          {operatorChart, `image: {digest: latest}`, "digest"},
		"namespaces as a string":       {operatorChart, `watchNamespaces: shop`, "watchNamespaces"},
		"interval that is none":        {operatorChart, `monitoring: {podMonitor: {interval: 30}}`, "interval"},
		"interval without a unit":      {operatorChart, `monitoring: {serviceMonitor: {interval: "30"}}`, "interval"},
		"pods without controllers":     {operatorChart, `podProtection: {replicaSetControllers: []}`, "replicaSetControllers"},
		"caches without controllers":   {operatorChart, `podProtection: {statefulSetControllers: []}`, "statefulSetControllers"},
		"denied and only warned":       {operatorChart, `podProtection: {actions: [Deny, Warn]}`, "actions"},
		"window of other days":         {operatorChart, `upgrades: {window: "Mo-Fr 22:00-04:00"}`, "window"},
		"window of hours alone":        {operatorChart, `upgrades: {window: "22-04"}`, "window"},
		"window after midnight":        {operatorChart, `upgrades: {window: "22:00-28:00"}`, "window"},
		"unknown log level":            {operatorChart, `logging: {level: loud}`, "level"},
		"unknown field of a group":     {groupChart, `replicas: 3`, "replicas"},
		"unknown field of a site":      {groupChart, `sites: [{name: a, role: dr-only, zone: x}, {name: b, role: dr-only}]`, "zone"},
		"one site":                     {groupChart, `sites: [{name: a, role: primary-candidate}]`, "sites"},
		"unknown role":                 {groupChart, `sites: [{name: a, role: primary}, {name: b, role: dr-only}]`, "role"},
		"setting that is not a string": {groupChart, `mysqlConf: {max_connections: 500}`, "max_connections"},
		"group name too long":          {groupChart, `name: abcdefghijklmnopqrstuvwxyz-abcd`, "name"},
		"failover threshold":           {groupChart, `failover: {threshold: 0}`, "threshold"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, complaint := run(t, renderArgs(t, tc.chart, tc.values)...)
			if !strings.Contains(complaint, tc.want) {
				t.Errorf("helm says %q, want a complaint about %q", complaint, tc.want)
			}
		})
	}
}
