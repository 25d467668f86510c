// SPDX-License-Identifier: Apache-2.0

// Package mfg_test holds the layout of the repository as a test: which package may import which, and which must stay
// free of clocks, networks and clients. docs/decisions and CONTRIBUTING.md tell why.
package mfg_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mysql-mfg/mfg"

// rule is what one package may import.
type rule struct {
	// own are prefixes of packages of this module.
	own []string
	// pure packages decide: they get facts, time and randomness as arguments, and can be tested without a world.
	pure bool
	// ban are prefixes of other modules that must not appear.
	ban []string
}

// clients talk to a Kubernetes API.
var clients = []string{"k8s.io/client-go", "k8s.io/cli-runtime", "sigs.k8s.io/controller-runtime"}

var (
	// worldly are what a pure package must not import. An entry stands for itself and everything below it.
	worldly = append([]string{"context", "net", "os", "database/sql", "log", "math/rand", "crypto/rand"}, clients...)
	// kubernetes is what the sidecar must not even import by way of others.
	kubernetes = []string{"k8s.io", "sigs.k8s.io"}
)

// layout has a row for every package. main -> shells -> pure cores -> api; no shell imports another shell.
var layout = map[string]rule{
	"":                                {},
	"api/v1alpha1":                    {ban: clients},
	"api/pace":                        {pure: true, own: []string{"api/v1alpha1"}},
	"api/wire":                        {pure: true, ban: kubernetes},
	"api/client":                      {own: []string{"api/wire"}, ban: kubernetes},
	"internal/logpipe":                {ban: kubernetes},
	"internal/logkeys":                {pure: true, ban: kubernetes},
	"internal/clock":                  {pure: true, ban: kubernetes},
	"internal/clock/clocktest":        {pure: true, ban: kubernetes},
	"internal/chain":                  {pure: true, ban: kubernetes},
	"internal/program":                {ban: kubernetes},
	"internal/volumelock":             {ban: kubernetes},
	"internal/door":                   {own: []string{"api/wire"}, ban: kubernetes},
	"internal/bucket":                 {ban: kubernetes},
	"internal/archive":                {own: []string{"internal/bucket", "internal/gtid"}, ban: kubernetes},
	"internal/gtid":                   {pure: true, ban: kubernetes},
	"internal/mysql":                  {own: []string{"internal/gtid", "internal/mysql/bounded", "internal/mysql/lag"}, ban: kubernetes},
	"internal/mysql/bounded":          {ban: kubernetes},
	"internal/mysql/lag":              {ban: kubernetes},
	"internal/mysql/mysqltest":        {own: []string{"internal/mysql", "internal/gtid"}, ban: kubernetes},
	"internal/mysql/datadir":          {ban: kubernetes},
	"internal/mysql/application":      {own: []string{"internal/mysql"}, ban: kubernetes},
	"internal/mysql/binlog":           {own: []string{"internal/mysql", "internal/gtid"}, ban: kubernetes},
	"operator":                        {own: []string{"operator", "api", "internal"}},
	"operator/gate":                   {pure: true},
	"operator/facts":                  {pure: true, own: []string{"operator/gate", "api/v1alpha1", "api/wire", "internal/gtid"}},
	"operator/facts/factstest":        {pure: true, own: []string{"operator/facts", "api/v1alpha1", "api/wire", "internal/gtid"}},
	"operator/remedy":                 {pure: true, own: []string{"operator/facts", "api/v1alpha1"}},
	"operator/lineage":                {pure: true, own: []string{"operator/facts", "api/v1alpha1", "internal/gtid"}},
	"operator/memory":                 {pure: true, own: []string{"operator/facts", "operator/gate", "operator/lineage", "api/v1alpha1", "api/wire", "internal/gtid"}},
	"operator/promotion":              {pure: true, own: []string{"operator/facts", "operator/lineage", "operator/memory", "operator/remedy", "api/v1alpha1", "api/wire", "internal/gtid"}},
	"operator/views":                  {pure: true, own: []string{"operator/facts", "operator/memory", "operator/promotion", "operator/remedy", "api/v1alpha1", "api/wire", "internal/gtid"}},
	"operator/failover":               {pure: true, own: []string{"operator/facts", "operator/gate", "operator/lineage", "operator/memory", "operator/promotion", "operator/remedy", "operator/views", "api/v1alpha1", "api/wire", "internal/gtid"}},
	"operator/explain":                {pure: true, own: []string{"operator/facts", "operator/failover", "operator/memory", "operator/promotion", "operator/remedy", "api/v1alpha1", "api/wire", "internal/gtid"}},
	"operator/backup":                 {pure: true, own: []string{"api/v1alpha1"}},
	"operator/recipients":             {pure: true, own: []string{"operator/render", "api/v1alpha1", "api/wire"}},
	"operator/backupjob":              {pure: true, own: []string{"operator/render", "api/v1alpha1", "api/wire"}},
	"operator/backups":                {own: []string{"operator/backup", "operator/backupjob", "operator/limits", "operator/render", "operator/scope", "operator/report", "api/v1alpha1", "api/wire", "internal/gtid", "internal/mysql"}},
	"operator/pitr":                   {pure: true, own: []string{"operator/report/conditions", "api/v1alpha1", "api/wire", "internal/gtid"}},
	"operator/archiving":              {own: []string{"operator/pitr", "operator/render", "operator/report", "operator/scope", "operator/signing", "api/v1alpha1", "api/wire", "internal/gtid", "internal/mysql"}},
	"operator/leading":                {own: []string{"internal/clock", "api/v1alpha1", "api/wire"}},
	"operator/claims":                 {pure: true, own: []string{"api/v1alpha1"}},
	"operator/authority":              {pure: true, own: []string{"internal/clock", "api/wire"}},
	"operator/keyring":                {pure: true, own: []string{"api/v1alpha1", "api/wire"}},
	"operator/campaign":               {pure: true, own: []string{"api/v1alpha1"}},
	"operator/passwords":              {pure: true, own: []string{"api/v1alpha1"}},
	"operator/application":            {pure: true, own: []string{"api/v1alpha1"}},
	"operator/rollout":                {pure: true, own: []string{"api/v1alpha1", "api/wire"}},
	"operator/upgrade":                {pure: true, own: []string{"api/pace"}},
	"operator/upgrade/turns":          {own: []string{"operator/upgrade", "operator/report", "api/pace", "api/v1alpha1"}},
	"operator/tracing":                {own: []string{"operator/report", "api/v1alpha1"}},
	"operator/secure":                 {pure: true, own: []string{"api/v1alpha1"}},
	"operator/restore":                {pure: true, own: []string{"operator/report/conditions", "api/v1alpha1", "api/wire"}},
	"operator/limits":                 {pure: true},
	"operator/render":                 {pure: true, own: []string{"api/v1alpha1", "api/wire"}},
	"operator/report":                 {},
	"operator/report/conditions":      {own: []string{"api/v1alpha1"}},
	"operator/report/events":          {own: []string{"api/v1alpha1"}},
	"operator/report/metrics":         {},
	"operator/request":                {own: []string{"api/v1alpha1"}},
	"operator/access":                 {own: []string{"api", "internal"}},
	"operator/lost":                   {own: []string{"api/v1alpha1", "api/wire", "internal"}},
	"operator/signing":                {own: []string{"api/v1alpha1", "api/wire"}},
	"operator/cache":                  {pure: true, own: []string{"api/v1alpha1"}},
	"operator/cache/engine":           {own: []string{"api/v1alpha1"}},
	"operator/cache/loop":             {own: []string{"operator/cache", "operator/report", "operator/request", "api/v1alpha1", "internal/clock"}},
	"operator/monitor":                {own: []string{"operator/cache", "operator/signing", "operator/access", "operator/authority", "operator/explain", "operator/failover", "operator/report", "operator/request", "api", "internal"}},
	"operator/monitor/cachedesk":      {own: []string{"operator/cache", "operator/failover"}},
	"operator/monitor/evidence":       {own: []string{"operator/failover", "api/v1alpha1"}},
	"operator/monitor/groupevents":    {own: []string{"operator/failover", "operator/monitor/groupstatus", "operator/report/events", "operator/report/metrics", "api/v1alpha1"}},
	"operator/monitor/groupstatus":    {pure: true, own: []string{"operator/failover", "operator/report/conditions", "internal/gtid", "api/v1alpha1", "api/wire"}},
	"operator/monitor/receivers":      {own: []string{"operator/failover", "internal/mysql"}},
	"operator/monitor/workers":        {},
	"operator/cacheobjects":           {own: []string{"operator/limits", "operator/access", "operator/render", "api/v1alpha1"}},
	"operator/cacheobjects/turn":      {pure: true, own: []string{"api/v1alpha1"}},
	"operator/scope":                  {own: []string{"operator/render", "operator/upgrade", "operator/report", "operator/request", "api/pace", "api/v1alpha1", "api/wire", "internal/gtid"}},
	"operator/apply":                  {own: []string{"api/v1alpha1"}},
	"operator/work":                   {own: []string{"operator/scope", "operator/lineage", "operator/facts", "operator/failover", "operator/keyring", "api/v1alpha1", "api/wire", "internal/gtid", "internal/mysql"}},
	"operator/trim":                   {own: []string{"api/v1alpha1"}},
	"operator/volumes":                {own: []string{"operator/scope", "operator/report", "api/v1alpha1"}},
	"operator/scope/scopetest":        {own: []string{"operator/scope", "operator/signing", "api/v1alpha1"}},
	"operator/restoring":              {own: []string{"operator/scope", "operator/keyring", "operator/render", "operator/report", "operator/restore", "api/v1alpha1"}},
	"operator/securing":               {own: []string{"operator/scope", "operator/work", "operator/report", "operator/secure", "api/v1alpha1", "internal/mysql"}},
	"operator/follow":                 {own: []string{"operator/limits", "operator/scope", "operator/apply", "operator/render", "operator/report", "api/v1alpha1"}},
	"operator/work/worktest":          {own: []string{"api/v1alpha1", "internal/gtid", "internal/mysql"}},
	"operator/clone":                  {own: []string{"operator/scope", "operator/work", "operator/keyring", "operator/report", "operator/request", "api/v1alpha1", "internal/gtid", "internal/mysql"}},
	"operator/accounts":               {own: []string{"operator/scope", "operator/apply", "operator/work", "operator/access", "operator/passwords", "operator/application", "operator/render", "operator/report", "operator/request", "api/v1alpha1", "api/wire", "internal/mysql"}},
	"operator/encryption":             {own: []string{"operator/scope", "operator/apply", "operator/work", "operator/failover", "operator/lineage", "operator/keyring", "operator/campaign", "operator/recipients", "operator/render", "operator/report", "operator/request", "api/v1alpha1", "api/wire", "internal/mysql"}},
	"operator/certs":                  {pure: true, own: []string{"internal/chain"}},
	"operator/certificates":           {own: []string{"internal/chain", "operator/certs", "operator/scope", "operator/render", "operator/report", "operator/request", "api/v1alpha1"}},
	"operator/controller":             {own: []string{"operator/limits", "operator/cacheobjects", "operator/certificates", "operator/scope", "operator/apply", "operator/work", "operator/follow", "operator/clone", "operator/accounts", "operator/encryption", "operator/signing", "operator/access", "operator/claims", "operator/failover", "operator/keyring", "operator/lineage", "operator/passwords", "operator/recipients", "operator/render", "operator/restoring", "operator/report", "operator/request", "operator/rollout", "operator/securing", "operator/volumes", "api", "internal"}},
	"operator/escrow":                 {own: []string{"api/v1alpha1", "api/wire"}},
	"operator/server":                 {own: []string{"operator/report", "api", "internal/clock", "internal/door", "internal/gtid"}},
	"backup":                          {own: []string{"backup", "api/wire", "internal/program"}, ban: kubernetes},
	"backup/archiver":                 {own: []string{"internal/archive", "internal/bucket", "internal/gtid", "api/wire", "api/client"}, ban: kubernetes},
	"backup/job":                      {own: []string{"backup/job/loading", "backup/job/making", "backup/job/terms", "internal/bucket"}, ban: kubernetes},
	"backup/job/loading":              {own: []string{"backup/job/mysqld", "backup/job/terms", "backup/replay", "internal/archive", "internal/bucket", "internal/mysql", "internal/gtid", "internal/volumelock"}, ban: kubernetes},
	"backup/job/making":               {own: []string{"backup/job/mysqld", "backup/job/terms", "internal/bucket", "internal/mysql", "internal/gtid"}, ban: kubernetes},
	"backup/job/mysqld":               {own: []string{"backup/job/terms", "internal/mysql"}, ban: kubernetes},
	"backup/job/terms":                {own: []string{"internal/bucket"}, ban: kubernetes},
	"backup/replay":                   {own: []string{"internal/archive", "internal/bucket", "internal/gtid"}, ban: kubernetes},
	"backup/inspect":                  {own: []string{"api/wire", "internal/archive", "internal/bucket", "internal/gtid", "internal/mysql/binlog"}, ban: kubernetes},
	"sidecar":                         {own: []string{"sidecar", "api/wire", "api/client", "internal"}, ban: kubernetes},
	"sidecar/fence":                   {pure: true, own: []string{"api/wire"}, ban: kubernetes},
	"sidecar/probe":                   {own: []string{"api/wire", "internal/mysql"}, ban: kubernetes},
	"sidecar/measure":                 {own: []string{"api/wire", "internal/mysql"}, ban: kubernetes},
	"sidecar/escrow":                  {own: []string{"api/wire", "api/client", "internal/mysql"}, ban: kubernetes},
	"sidecar/watchdog":                {ban: kubernetes},
	"sidecar/agent":                   {own: []string{"sidecar/fence", "sidecar/watchdog", "api/wire", "api/client", "internal"}, ban: kubernetes},
	"kubectl-mfg":                     {own: []string{"kubectl-mfg", "api", "tui"}},
	"kubectl-mfg/cmd":                 {own: []string{"kubectl-mfg", "api", "tui"}},
	"kubectl-mfg/adopt":               {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/keyrings", "kubectl-mfg/mysqlclient", "kubectl-mfg/report", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/readonly":            {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/mysqlclient", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/apppassword":         {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/mysqlclient", "kubectl-mfg/pods", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/backup":              {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/live", "kubectl-mfg/pods", "kubectl-mfg/progress", "kubectl-mfg/reader", "kubectl-mfg/report", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/bundle":              {own: []string{"api/v1alpha1", "kubectl-mfg/escape", "kubectl-mfg/pods"}},
	"kubectl-mfg/cache":               {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/live", "kubectl-mfg/pods", "kubectl-mfg/report", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/certificates":        {own: []string{"api/v1alpha1", "internal/chain", "kubectl-mfg/report"}},
	"kubectl-mfg/cli":                 {own: []string{"api/v1alpha1", "kubectl-mfg/escape"}},
	"kubectl-mfg/cluster":             {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/cli", "kubectl-mfg/live", "kubectl-mfg/pods", "tui/feed", "tui/gauge"}},
	"kubectl-mfg/dashboard":           {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/failover", "kubectl-mfg/inspect", "kubectl-mfg/live", "kubectl-mfg/logs", "kubectl-mfg/pause", "kubectl-mfg/reclone", "kubectl-mfg/request", "kubectl-mfg/screen", "tui"}},
	"kubectl-mfg/doctor":              {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/cli", "kubectl-mfg/live", "kubectl-mfg/mysqlclient", "kubectl-mfg/pods", "kubectl-mfg/report", "kubectl-mfg/screen"}},
	"kubectl-mfg/drill":               {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/drill/verdict", "kubectl-mfg/failover", "kubectl-mfg/live", "kubectl-mfg/mysqlclient", "kubectl-mfg/pods", "kubectl-mfg/report", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/drill/verdict":       {own: []string{"api/v1alpha1", "kubectl-mfg/report"}, pure: true},
	"kubectl-mfg/escape":              {pure: true},
	"kubectl-mfg/failover":            {own: []string{"internal/gtid", "api/v1alpha1", "api/wire", "kubectl-mfg/cli", "kubectl-mfg/live", "kubectl-mfg/pods", "kubectl-mfg/report", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/inspect":             {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/certificates", "kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/keyrings", "kubectl-mfg/live", "kubectl-mfg/pods", "kubectl-mfg/report", "kubectl-mfg/screen", "tui/canvas"}},
	"kubectl-mfg/keyrings":            {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/report"}},
	"kubectl-mfg/live":                {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/pods", "kubectl-mfg/report"}},
	"kubectl-mfg/logs":                {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/request"}},
	"kubectl-mfg/mysqlclient":         {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/pods", "kubectl-mfg/request"}},
	"kubectl-mfg/passwords":           {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/fence":               {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/pause":               {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/pitr":                {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/pods", "kubectl-mfg/reader", "kubectl-mfg/report", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/pitr/pitrtest":       {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/cli", "kubectl-mfg/pods"}},
	"kubectl-mfg/pods":                {own: []string{"api/v1alpha1"}},
	"kubectl-mfg/reclone":             {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/report", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/preflight":           {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/cli", "kubectl-mfg/doctor", "kubectl-mfg/report", "kubectl-mfg/screen"}},
	"kubectl-mfg/progress":            {own: []string{"kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/screen"}},
	"kubectl-mfg/reader":              {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/live"}},
	"kubectl-mfg/restore":             {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/cli", "kubectl-mfg/escape", "kubectl-mfg/live", "kubectl-mfg/pitr", "kubectl-mfg/pods", "kubectl-mfg/progress", "kubectl-mfg/report", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/recovery":            {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/cli", "kubectl-mfg/keyrings", "kubectl-mfg/pods", "kubectl-mfg/report", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/restart":             {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/pods", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/renew":               {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/report":              {own: []string{"internal/gtid", "api/pace", "api/v1alpha1", "api/wire"}},
	"kubectl-mfg/request":             {own: []string{"api/v1alpha1", "api/wire", "kubectl-mfg/cli", "kubectl-mfg/live", "kubectl-mfg/report", "kubectl-mfg/screen"}},
	"kubectl-mfg/rotate":              {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/failover", "kubectl-mfg/keyrings", "kubectl-mfg/live", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"kubectl-mfg/screen":              {own: []string{"internal/gtid", "api/v1alpha1", "api/wire", "kubectl-mfg/certificates", "kubectl-mfg/escape", "kubectl-mfg/keyrings", "kubectl-mfg/report"}},
	"kubectl-mfg/upgrade":             {own: []string{"api/v1alpha1", "kubectl-mfg/cli", "kubectl-mfg/live", "kubectl-mfg/report", "kubectl-mfg/request", "kubectl-mfg/screen"}},
	"tui":                             {own: []string{"internal/clock", "internal/gtid", "api", "kubectl-mfg/report", "tui"}, ban: clients},
	"tui/canvas":                      {pure: true, ban: kubernetes},
	"tui/copies":                      {own: []string{"api/v1alpha1", "kubectl-mfg/report", "tui/canvas", "tui/paint"}, pure: true},
	"tui/drill":                       {own: []string{"internal/gtid", "api/v1alpha1", "kubectl-mfg/report", "tui/canvas", "tui/paint"}, pure: true},
	"tui/feed":                        {own: []string{"api"}, ban: clients},
	"tui/gauge":                       {own: []string{"internal/gtid"}, pure: true, ban: kubernetes},
	"tui/help":                        {own: []string{"tui/canvas"}, pure: true, ban: kubernetes},
	"tui/paint":                       {own: []string{"tui/canvas"}, pure: true},
	"tui/standin":                     {own: []string{"api/v1alpha1", "api/wire"}, pure: true},
	"tui/timeline":                    {own: []string{"api", "kubectl-mfg/report", "tui/canvas", "tui/paint"}, pure: true},
	"hack/crd":                        {own: []string{"api/v1alpha1"}},
	"hack/licences":                   {},
	"api/v1alpha1/applyconfiguration": {own: []string{"api/v1alpha1"}},
}

// generated packages follow the row of their parent.
var generated = []string{"api/v1alpha1/applyconfiguration"}

// pkg is what is needed of `go list -json`.
type pkg struct {
	ImportPath string
	Imports    []string
	GoFiles    []string
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-e", "-json=ImportPath,Imports,GoFiles"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list packages: %v\n%s", err, stderr.String())
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// within tells whether a path is one of the prefixes or below one.
func within(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}

func rowOf(path string) (rule, bool) {
	for _, parent := range generated {
		if within(path, []string{parent}) {
			path = parent
		}
	}
	r, ok := layout[path]
	return r, ok
}

func TestEveryPackageImportsOnlyWhatItMay(t *testing.T) {
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		r, ok := rowOf(name)
		if !ok {
			t.Errorf("%s has no row in layout: say what it may import", name)
			continue
		}
		for _, imported := range p.Imports {
			checkImport(t, name, r, imported)
		}
	}
}

func checkImport(t *testing.T, name string, r rule, imported string) {
	t.Helper()
	if own, ok := strings.CutPrefix(imported, module+"/"); ok {
		if !within(own, r.own) && !within(own, []string{name}) {
			t.Errorf("%s imports %s, which its row does not allow", name, own)
		}
		return
	}
	switch {
	case within(imported, r.ban):
		t.Errorf("%s imports %s, which its row bans", name, imported)
	case r.pure && within(imported, worldly):
		t.Errorf("%s is pure and imports %s: pass in what it needs", name, imported)
	}
}

// The sidecar has no Kubernetes credentials, and its fence must not depend on what a client library does.
func TestSidecarKnowsNoKubernetes(t *testing.T) {
	for _, p := range list(t, "-deps", "./sidecar/...") {
		if within(p.ImportPath, kubernetes) {
			t.Errorf("the sidecar depends on %s", p.ImportPath)
		}
	}
}

// The libraries of object storage are four times the sidecar, and must not run in the process that fences (docs/decisions/0024).
func TestSidecarKnowsNoObjectStorage(t *testing.T) {
	for _, p := range list(t, "-deps", "./sidecar/...") {
		if within(p.ImportPath, []string{module + "/internal/bucket", "gocloud.dev"}) {
			t.Errorf("the sidecar depends on %s", p.ImportPath)
		}
	}
}

// Every user downloads the plugin: the libraries of object storage would make it half as large again (docs/decisions/0024). What a storage
// holds is read by the program backup, in a pod.
func TestPluginKnowsNoObjectStorage(t *testing.T) {
	for _, p := range list(t, "-deps", "./kubectl-mfg") {
		if within(p.ImportPath, []string{module + "/internal/bucket", "gocloud.dev", "github.com/aws", "cloud.google.com/go/storage", "github.com/Azure/azure-sdk-for-go"}) {
			t.Errorf("the plugin depends on %s", p.ImportPath)
		}
	}
}

func TestShellsDoNotImportShells(t *testing.T) {
	shells := []string{
		"operator/monitor", "operator/controller", "operator/server", "operator/follow", "operator/encryption", "operator/accounts", "operator/clone", "operator/cache/loop",
		"operator/backups", "operator/restoring", "operator/securing",
	}
	for _, shell := range shells {
		for _, p := range list(t, "./"+shell) {
			for _, imported := range p.Imports {
				own := strings.TrimPrefix(imported, module+"/")
				// The controller puts its wings together; they know nothing of each other.
				composes := shell == "operator/controller" && !within(own, shells[:3])
				if !within(own, []string{shell}) && within(own, shells) && !composes {
					t.Errorf("%s imports %s: publish what it needs through an interface", shell, own)
				}
			}
		}
	}
}

func TestEveryRowHasItsPackage(t *testing.T) {
	var have []string
	for _, p := range list(t, "./...") {
		have = append(have, strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/"))
	}
	for name := range layout {
		if !slices.Contains(have, name) {
			t.Errorf("layout has a row for %s, which is no package", name)
		}
	}
}
