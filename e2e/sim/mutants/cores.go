// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"slices"
)

// core is a package of which every condition and every effect is mutated.
type core struct {
	folder string
	// files are those that hold guards; none are all of the package.
	files []string
	// also is another core whose tests come by, after its own; empty is none.
	also string
	// draws is how often property tests are drawn, in one run after the other until one fails. Never zero: a property that is
	// not drawn at all proves nothing, and fails without any mutation.
	draws []int
	// timed is true if its tests wait for clocks and other processes: only a failure that repeats itself counts.
	timed bool
}

// cores are the packages that decide, and of the shells the files that docs/internals/invariants.md names.
var cores = []core{
	{folder: "operator/failover", draws: []int{20}},
	{folder: "operator/lineage", also: "operator/failover", draws: []int{20}},
	{folder: "operator/memory", also: "operator/failover", draws: []int{20}},
	{folder: "operator/promotion", also: "operator/failover", draws: []int{20}},
	{folder: "operator/views", also: "operator/failover", draws: []int{20}},
	{folder: "operator/explain", also: "operator/failover", draws: []int{20}},
	{folder: "operator/facts", draws: []int{10}},
	{folder: "operator/gate", draws: []int{10, 100}},
	{folder: "sidecar/fence", draws: []int{10, 100}},
	{folder: "operator/authority", draws: []int{10}},
	{folder: "operator/keyring", draws: []int{10, 200}},
	{folder: "operator/campaign", draws: []int{10, 200}},
	{folder: "operator/passwords", draws: []int{10, 200}},
	{folder: "operator/backup", draws: []int{10, 200}},
	{folder: "operator/backups", files: []string{"outcome.go", "perform.go", "yield.go"}, draws: []int{10}, timed: true},
	{folder: "operator/restore", draws: []int{10}, also: reconcile},
	{folder: "operator/pitr", draws: []int{10}},
	{folder: "internal/bucket", files: []string{"create.go"}, draws: []int{10}, timed: true},
	{folder: "internal/archive", files: []string{"gaps.go", "history.go", "missing.go", "plan.go", "prune.go", "put.go", "read.go", "resume.go"}, draws: []int{10, 200}, timed: true},
	{folder: "operator/request", draws: []int{10}},
	{folder: "operator/cache", draws: []int{20, 200}},
	{folder: "operator/cache/engine", files: []string{"bounds.go", "certificate.go", "cut.go", "info.go"}, draws: []int{10}, timed: true},
	{folder: "operator/cache/loop", files: []string{"gather.go", "loop.go", "perform.go", "persist.go", "route.go", "stale.go"}, draws: []int{10}, timed: true},
	{folder: "operator/cacheobjects", draws: []int{10}, also: reconcile, timed: true},
	{folder: "operator/rollout", draws: []int{10, 200}},
	{folder: "operator/upgrade", draws: []int{10}},
	{folder: "api/pace", draws: []int{10}},
	{folder: "api/v1alpha1", files: []string{"restore.go"}, draws: []int{10}},
	{folder: "operator/secure", draws: []int{10}},
	{folder: "operator/certs", draws: []int{10}},
	{folder: "operator/monitor/receivers", draws: []int{10}},
	{folder: "operator/claims", draws: []int{10}},
	{folder: "sidecar/watchdog", draws: []int{10}, timed: true},
	{folder: "internal/door", draws: []int{10}, timed: true},
	{folder: "api/wire", files: []string{"chain.go", "statement.go", "proof.go"}, draws: []int{10}},
	{folder: "operator/monitor", files: []string{"facts.go", "gather.go", "passwords.go", "perform.go", "persist.go", "policy.go", "proof.go", "site_client.go", "site_link.go"}, draws: []int{10}, timed: true},
	{folder: "operator/monitor/cachedesk", draws: []int{10}, timed: true},
	{folder: "operator/monitor/evidence", files: []string{"evidence.go"}, draws: []int{10}, timed: true},
	{folder: "operator/monitor/groupstatus", files: []string{"durable.go"}, draws: []int{10}},
	{folder: "operator/escrow", files: []string{"versions.go"}, draws: []int{10}, timed: true},
	{folder: "operator/render", files: []string{"keyring.go", "pod.go", "restore.go"}, draws: []int{10}},
	{folder: "operator/server", files: []string{"escrow.go"}, draws: []int{10}, timed: true},
	{folder: "sidecar/agent", files: []string{"keys.go", "opening.go", "slot.go", "store.go"}, draws: []int{10}, timed: true},
	{folder: "sidecar/escrow", files: []string{"file.go"}, draws: []int{10}, timed: true},
	{folder: "sidecar", files: []string{"accounts.go", "keyring.go", "restored.go", "supervise.go"}, draws: []int{10}, timed: true},
	{folder: "operator/controller", files: []string{"authority.go", "claims.go", "rollout.go", "status.go", "unlisted.go"}, draws: []int{10}, timed: true},
	{folder: "operator/work", files: []string{"rotation.go"}, draws: []int{10}, also: reconcile, timed: true},
	{folder: "operator/scope", files: []string{"failing.go", "silent.go", "site.go"}, draws: []int{10}, also: reconcile, timed: true},
	{folder: "operator/apply", files: []string{"owner.go"}, draws: []int{10}, also: reconcile, timed: true},
	{folder: "operator/clone", files: []string{
		"engines.go", "lapse.go", "provision.go", "provision_clone.go", "provisioning.go", "reclone.go",
	}, draws: []int{10}, also: reconcile, timed: true},
	{folder: "operator/encryption", files: []string{"campaign.go", "keyring.go", "keyring_facts.go", "keyring_going.go", "keyring_own.go", "keyring_rotate.go"}, draws: []int{10}, also: reconcile, timed: true},
	{folder: "operator/backupjob", files: []string{"job.go"}, draws: []int{10}},
	{folder: "operator/accounts", files: []string{"passwords.go", "secret.go", "servers.go"}, draws: []int{10}, also: reconcile, timed: true},
}

// reconcile is where the tests of the whole reconcile are: they examine its wings too.
const reconcile = "operator/controller"

// elsewhere are the files and folders that docs/internals/invariants.md names and that are not mutated, with the reason.
var elsewhere = map[string]string{
	"internal/mysql":         "statements to MySQL: a real mysqld misses them (`go test -tags mysqld`), which a hunt cannot start thousands of times",
	"internal/mysql/datadir": "one guard, before mysqld starts: a real mysqld misses it (`go test -tags mysqld ./internal/mysql`)",
	"internal/logpipe":       "a queue that drops: what is lost without a guard is time, which its tests measure under load",
	"api/client":             "an HTTP client: it decides nothing",
	"backup/archiver":        "a mysqld and a bucket at work: `go test -tags mysqld ./backup/archiver/` misses a guard, on real servers that a hunt cannot start thousands of times",
	"backup/job/making":      "mysqld, mysqldump and a bucket at work: `make test-backup` misses a guard, on real servers that a hunt cannot start thousands of times",
	"backup/job/loading":     "mysqld and a bucket at work, as in backup/job/making",
}

// tested are the folders whose tests see the core.
func (c core) tested() []string {
	if c.also == "" {
		return []string{c.folder}
	}
	return []string{c.folder, c.also}
}

func (c core) packageOf() string { return "./" + c.folder }

func (c core) holds(file string) bool {
	return len(c.files) == 0 || slices.Contains(c.files, path.Base(file))
}
