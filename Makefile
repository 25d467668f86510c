# SPDX-License-Identifier: Apache-2.0
#
# `make help` lists the targets. The two that matter: `make demo` and `make test`.

SHELL := /bin/bash
.DEFAULT_GOAL := help
export CGO_ENABLED ?= 0
# Without it a package is compiled twice: once for what is started here, and once more for what goes into images and releases.
export GOFLAGS ?= -trimpath

CACHE := $(or $(MFG_CACHE),$(or $(HOME),/root)/.cache/mfg)
export MFG_CACHE := $(CACHE)

# Tools are compiled once for each content of tools/go.sum and each Go.
TOOLS := $(CACHE)/tools-$(shell { go version; cat tools/go.sum; } | sha256sum | cut -c1-12)
TOOL_golangci-lint := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
TOOL_controller-gen := sigs.k8s.io/controller-tools/cmd/controller-gen
TOOL_helm := helm.sh/helm/v4/cmd/helm

# The parts of `make check`, in the order in which they run.
CHECKS := format lint tidy generated unit unit-e2e
# The parts of `make test`. What only computes comes first, with the whole machine: beside the lab the same tests took ten times as long,
# and planned failovers were reverted because MySQL did not open in time. The other tests of servers and the start of the lab run beside
# the longest part of servers. The lab has the machine to itself, and what needs its programs comes after it.
FIRST := format tidy generated lint root unit unit-e2e helm release race
BESIDE_MYSQLD := backup valkey clone adopt
LAST := apiserver terminal
TESTS := $(FIRST) mysqld $(BESIDE_MYSQLD) lab-up lab $(LAST)

# What compiles has huge pages.
HUGE := e2e/lab/cluster/huge-pages.sh
# What runs on the lab does not: mysqld is to have the machine's own setting.
ON_THE_LAB := lab-up lab terminal apiserver

COUNT := bin/counts
OUT := out/test
GENERATED := config/crd charts/mfg/templates/crds docs/reference api/v1alpha1

RUNS ?=
CASE ?=
MERGE ?=
POINTS ?=
RATE ?=
CACHES ?=
GROUPS ?=
FROM ?=
WAY ?=

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

##: the main job

.PHONY: demo
demo: bin/lab bin/demo bin/mfg-e2e bin/kubectl-mfg ## Fail over on a real cluster on this machine and prove it (root, Debian; the first time compiles Kubernetes)
	@bin/demo

.PHONY: test
test: $(COUNT) ## check, helm, mysqld and the lab suites: a case of each part, and the long ones have targets of their own (root, Debian); ends with a count
	@rm -rf $(OUT); mkdir -p $(OUT); began=$$(date +%s); beside=; \
	trap 'for group in $$beside; do kill -TERM -- -$$group; done; exit 130' INT TERM; \
	$(call each,$(FIRST)) \
	$(MAKE) --no-print-directory mmdebstrap; \
	$(call beside,mysqld,,nice -n 19,$(BESIDE_MYSQLD)) other_servers=$$!; \
	setsid $(MAKE) --no-print-directory beside PARTS=lab-up >$(OUT)/beside-servers.log 2>&1 & lab_starts=$$!; beside="$$beside $$lab_starts"; \
	$(call each,mysqld) wait $$other_servers $$lab_starts; cat $(OUT)/beside-mysqld.log $(OUT)/beside-servers.log; \
	$(call each,lab) \
	beside=; \
	$(call each,$(LAST)) \
	$(COUNT) total -dir $(OUT) -took $$(($$(date +%s) - began)) $(TESTS)

.PHONY: beside
beside:
	@$(call each,$(PARTS)) true

.PHONY: check
check: $(COUNT) ## Format, lint, tidy, generated files, unit tests (no root, under two minutes warm)
	@$(call run,$(CHECKS))

.PHONY: race
race: ## What `make test` runs under the detector of races, and what takes too long for that (gcc and libc6-dev of Debian)
	@CGO_ENABLED=1 go test -race -count=1 -timeout 60m $(RACE) $(RACE_LONG)

.PHONY: test-encryption
test-encryption: build ## Every story of data-at-rest encryption on the lab, about half an hour (root, Debian)
	@go -C e2e test -tags lab,stories -v -count=1 -timeout 240m -run TestEncryptionAtRest ./suites/

.PHONY: test-encryption-kills
test-encryption-kills: build ## Kill everything at every step of rotation, clone and bootstrap (hours), KILLS=regexp of names like Rotation/sealing/node, CONTINUE=1 skips what has passed; writes out/encryption-kills.json
	@KILLS='$(KILLS)' CONTINUE='$(filter-out 0,$(CONTINUE))' go -C e2e test -tags lab,kills -v -count=1 -timeout 8h -run TestKilledWhileUnsealed ./suites/

.PHONY: encryption-kills-table
encryption-kills-table: ## Put the results of `make test-encryption-kills`, gathered in however many runs of one build, into docs/internals/encryption-kills.md
	@go -C e2e run ./kills/table -from ../out/encryption-kills.json -to ../docs/internals/encryption-kills.md

.PHONY: test-backup
test-backup: ## Every test of backups on real servers: too long for `make test` (root, Debian)
	@go test -tags mysqld,long -count=1 -v -timeout 60m ./backup/...

.PHONY: test-points
test-points: ## Restore random points of a history of many failovers on real servers, and compare each with the journal, POINTS=30 EPOCHS=11 (ten failovers) MIB=200 (root, Debian)
	@POINTS=$(or $(POINTS),30) EPOCHS=$(or $(EPOCHS),11) MIB=$(or $(MIB),200) go test -tags mysqld,long -count=1 -v -timeout 120m -run 'TestPointsOfManyFailovers$$' ./backup/job/

.PHONY: test-backup-lab
test-backup-lab: build ## Every story of backups on the lab, those too that are too long for `make test` (root, Debian)
	@go -C e2e test -tags lab,long -v -count=1 -timeout 60m -run 'Backup' ./suites/

MORE := TestQuickstart|TestTLSComesUnderLoad|TestTheKeyIsReplacedUnderARunningGroup|TestRemovedGroupKeepsItsData|TestUpdateThatGoesWrongStops|TestALostKeyReachesTheSitesWithNewPods|TestARenewedCertificateIsShownByDragonfly|TestAFloodOfStrangersHindersNoFailover|TestDashboardClientsThatStall
.PHONY: test-more
test-more: build ## Lab tests that `make test` has no time for: the quickstart, TLS for a group without it, a replaced and a lost key, a removed group, an update that goes wrong, a flood of strangers, clients of the dashboard that stall, Dragonfly's certificate (25 minutes; root, Debian)
	@go -C e2e test -tags lab,more -v -count=1 -parallel 2 -timeout 90m -run '^($(MORE))$$' ./suites/

.PHONY: test-upgrade-lab
test-upgrade-lab: build ## The pods of another version of the operator reach groups under load one after the other, there and back, GROUPS=3 about 40 minutes, WAY=there or back plays one of them, FROM=commit or FROM=path comes from an older one (root, Debian)
	@MFG_UPGRADE_FROM='$(if $(wildcard $(FROM)),$(abspath $(FROM)),$(FROM))' MFG_UPGRADE_GROUPS='$(GROUPS)' MFG_UPGRADE_WAY='$(WAY)' go -C e2e test -tags lab,long -v -count=1 -timeout 300m -run 'TestUpgradeAtLeisure$$' ./suites/

.PHONY: test-archive-lab
test-archive-lab: build ## Every story of the archive of binary logs on the lab, about an hour, ONLY=word plays those whose names have it, AWAY=10m is how long the bucket is away (root, Debian)
	@ONLY='$(ONLY)' AWAY='$(AWAY)' go -C e2e test -tags lab,long -v -count=1 -timeout 120m -run 'TestArchiveOfTheWorstDays$$' ./suites/

.PHONY: kills-backup
kills-backup: build ## Kill everything at every step of backups, their removal and restores (an hour), RUNS=40 SEED=1 KILLS=regexp of names like Restore/.*/node, CONTINUE=1 skips what has passed; writes out/kills-backup.json
	@RUNS='$(RUNS)' SEED='$(SEED)' KILLS='$(KILLS)' CONTINUE='$(filter-out 0,$(CONTINUE))' go -C e2e test -tags lab,kills -v -count=1 -timeout 6h -run 'TestKilledBackup$$' ./suites/

.PHONY: kills-backup-table
kills-backup-table: ## Put the results of a complete run of `make kills-backup` into docs/internals/backup-kills.md
	@go -C e2e run ./kills/backuptable -from ../out/kills-backup.json -to ../docs/internals/backup-kills.md

.PHONY: test-dashboard
test-dashboard: build ## Watch the dashboard in tmux while a site is lost, on the lab; leaves frames and a recording in out/dashboard (root, Debian)
	@go -C e2e test -tags lab,dashboard -v -count=1 -timeout 30m -run TestDashboard ./suites/

.PHONY: docs-frames
docs-frames: test-dashboard ## Put the frames and the recording of `make test-dashboard` into docs/
	@mkdir -p docs/recordings && install -m 644 out/dashboard/failover.cast docs/recordings/ && install -m 644 out/dashboard/dashboard-failover.md docs/
	@$(MAKE) docs-picture

.PHONY: docs-picture
docs-picture: ## Draw docs/failover.svg, the picture in README.md, out of the frames in docs/dashboard-failover.md
	@go -C e2e run ./picture -from ../docs/dashboard-failover.md -to ../docs/failover.svg

.PHONY: docs-session
docs-session: build ## Run docs/kubectl-mfg-session.md on the lab and put what its commands print into it
	@go -C e2e test -tags lab -v -count=1 -timeout 30m -run 'TestPluginSession$$' ./suites/ && install -m 644 out/dashboard/kubectl-mfg-session.md docs/

.PHONY: bench-failover
bench-failover: build ## Measure failovers, CASE=planned,drain RUNS=5 LEASE=5s (default: all, as often as the targets ask), MERGE=1 keeps other cases; writes out/bench-failover.json
	@bin/bench $(if $(RUNS),-runs $(RUNS)) $(if $(CASE),-case $(CASE)) $(if $(LEASE),-lease $(LEASE)) $(if $(filter-out 0,$(MERGE)),-merge) -out out/bench-failover.json

.PHONY: bench-switchovers
bench-switchovers: build ## Move the role 72 times in a row under load, and see whether anything grows, RUNS=72; writes out/bench-switchovers.json
	@bin/bench -switchovers $(if $(RUNS),-runs $(RUNS)) -out out/bench-switchovers.json

.PHONY: bench-flood
bench-flood: build ## Make failovers for two minutes beside strangers on every listener, and watch memory and refusals; writes out/bench-flood.json
	@bin/bench -flood $(if $(LEASE),-lease $(LEASE)) -out out/bench-flood.json

.PHONY: bench-keyring
bench-keyring: build ## Measure encryption at rest: bring-up, a rotation, throughput and pauses with and without, CASE=round,planned RUNS=10 MERGE=1; writes out/bench-keyring.json
	@bin/bench -keyring $(if $(RUNS),-runs $(RUNS)) $(if $(CASE),-case $(CASE)) $(if $(filter-out 0,$(MERGE)),-merge) -out out/bench-keyring.json

.PHONY: bench-cache
bench-cache: build ## Measure planned failovers with sessions in a cache beside ones without, and emergencies beside caches in every state, CASE=planned,emergency RUNS=10 MERGE=1, RATE=60 loads MySQL less; writes out/bench-cache.json
	@bin/bench -cache $(if $(RATE),-rate $(RATE)) $(if $(RUNS),-runs $(RUNS)) $(if $(CASE),-case $(CASE)) $(if $(LEASE),-lease $(LEASE)) $(if $(filter-out 0,$(MERGE)),-merge) -out out/bench-cache.json

.PHONY: bench-backup
bench-backup: build ## Measure backups and restores of both methods, with age and without, beside mysqldump | zstd and a copy of the directory, SIZE=5GiB RUNS=3 CASE=logical,physical-age MERGE=1; writes out/bench-backup.json
	@command -v zstd >/dev/null || { echo "installing the Debian package zstd"; apt-get -qq update && \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends zstd >/dev/null; }
	@bin/bench -backup $(if $(SIZE),-size $(SIZE)) $(if $(RUNS),-runs $(RUNS)) $(if $(CASE),-case $(CASE)) $(if $(filter-out 0,$(MERGE)),-merge) -out out/bench-backup.json

.PHONY: bench-pitr
bench-pitr: build ## Measure the archive of binary logs: commits with and without, and the age of the recoverable point under load, DURATION=60m RUNS=16 CASE=cost,point MERGE=1; writes out/bench-pitr.json
	@bin/bench -pitr $(if $(DURATION),-duration $(DURATION)) $(if $(RUNS),-runs $(RUNS)) $(if $(CASE),-case $(CASE)) $(if $(filter-out 0,$(MERGE)),-merge) -out out/bench-pitr.json

.PHONY: bench-replay
bench-replay: ## Measure a replay of binary logs on four workers beside mysqlbinlog | mysql, TRANSACTIONS=40000; writes out/bench-replay.json (root, Debian)
	@mkdir -p out
	@MFG_BENCH_REPLAY=$(CURDIR)/out/bench-replay.json MFG_BENCH_TRANSACTIONS=$(TRANSACTIONS) go test -tags mysqld,long -count=1 -v -timeout 60m -run TestReplayBesideAPipe ./backup/replay/

.PHONY: bench-status
bench-status: build ## Measure how long `kubectl mfg status` takes on the lab, RUNS=50; writes out/bench-status.json
	@bin/bench -status $(if $(RUNS),-runs $(RUNS)) -out out/bench-status.json

.PHONY: chaos
chaos: build bin/chaos ## Break a group on the lab in every way, ONLY=name[,name] LIST=1 CONTINUE=1 LEASE=5s REPEAT=20; writes out/chaos.json
	@bin/chaos $(if $(LIST),-list) $(if $(ONLY),-only $(ONLY)) $(if $(CONTINUE),-continue) $(if $(LEASE),-lease $(LEASE)) $(if $(REPEAT),-repeat $(REPEAT)) -out out/chaos.json

.PHONY: chaos-table
chaos-table: bin/chaos ## Put the results of a complete run of `make chaos` into docs/internals/chaos.md
	@bin/chaos -table -out out/chaos.json -docs docs/internals/chaos.md

.PHONY: bench-scale
bench-scale: bin/scale bin/operator ## Measure one operator with 10, 100 and 1,000 groups of fake sites (no root; needs what the lab was made of), POINTS=10x3,1x16; with a cache in every group: CACHES=1; writes out/bench-scale.json, or out/bench-scale-caches.json
	@bin/scale $(if $(POINTS),-points $(POINTS)) -operator bin/operator $(if $(filter-out 0,$(CACHES)),-cache -out out/bench-scale-caches.json,-out out/bench-scale.json)

.PHONY: bench-scale-backups
bench-scale-backups: bin/scale bin/operator ## Measure one operator while 200 groups of fake sites have schedules of the same minute: spread, how many at once, age of decisions, POINTS=200x3; writes out/bench-scale-backups.json
	@bin/scale -backups -points $(or $(POINTS),200x3) -operator bin/operator -out out/bench-scale-backups.json

.PHONY: sim
sim: bin/sim ## Play failovers in simulation, SEEDS=20000; one run with its transcript: SEED=123 (no root, about five minutes)
	@bin/sim $(if $(SEED),-seed $(SEED) -v,-seeds $(or $(SEEDS),20000)) $(SIMFLAGS)

.PHONY: sim-mutants
sim-mutants: bin/mutants ## Falsify every condition of the code that decides, one at a time: a test or the simulation must miss it, ONLY=regexp PACKAGES=regexp CONTINUE=1 SEEDS=400; writes out/sim-mutants.json
	@bin/mutants -root . $(if $(ONLY),-only '$(ONLY)') $(if $(PACKAGES),-packages '$(PACKAGES)') $(if $(SEEDS),-seeds $(SEEDS)) $(if $(filter-out 0,$(CONTINUE)),-continue) -out out/sim-mutants.json

##: daily work

.PHONY: tools
tools: bin/golangci-lint bin/controller-gen bin/helm ## Compile the pinned tools into bin/ (cached)

.PHONY: build
build: bin/lab bin/demo bin/bench bin/mfg-e2e bin/kubectl-mfg ## Compile the programs into bin/

.PHONY: generate
generate: bin/controller-gen ## Write everything that is generated from the API types
	@hack/generate.sh

.PHONY: fmt
fmt: bin/golangci-lint ## Format the code
	@bin/golangci-lint fmt ./... && cd e2e && ../bin/golangci-lint fmt ./...

.PHONY: lint
lint: bin/golangci-lint ## Lint both modules
	@bin/golangci-lint run ./... && cd e2e && ../bin/golangci-lint run ./...

.PHONY: rehearse
rehearse: bin/helm ## Before a tag is pushed: make all files of a release of the newest commit, sign them with a throw-away key, verify and push them to a registry of its own, and install the plugin the way users do; leaves out/release (no root, no network; half an hour the first time)
	@hack/rehearse.sh
	@go -C e2e run ./release rehearse --repo .. --out ../out/release --helm ../bin/helm

##: the lab

.PHONY: lab-up
lab-up: bin/lab ## Start the lab: a real Kubernetes of four nodes on this machine
	@bin/lab up

.PHONY: lab-down
lab-down: bin/lab ## End the lab and remove all traces but the cache
	@bin/lab down

.PHONY: images
images: bin/lab ## Build the project's images and load them into the running lab
	@bin/lab images

.PHONY: clean
clean: ## Remove what was built here (not the cache)
	@rm -rf bin out

# Programs. Go's own cache decides whether there is anything to do.

.PHONY: FORCE
FORCE:

bin/lab bin/demo bin/bench bin/counts bin/chaos bin/scale: bin/%: FORCE
	@$(HUGE) go -C e2e build -o ../$@ ./$*

bin/sim: FORCE
	@$(HUGE) go -C e2e build -o ../$@ ./sim

bin/mutants: FORCE
	@$(HUGE) go -C e2e build -o ../$@ ./sim/mutants

bin/mfg-e2e: FORCE
	@$(HUGE) go -C e2e build -o ../$@ ./writer

bin/kubectl-mfg bin/operator: bin/%: FORCE
	@$(HUGE) go build -o $@ ./$*

bin/golangci-lint bin/controller-gen bin/helm: bin/%: $(TOOLS)/%
	@mkdir -p bin && ln -sfn $< $@

bin/promtool: $(CACHE)/promtool
	@mkdir -p bin && ln -sfn $< $@

$(CACHE)/promtool:
	@echo "taking promtool out of the Debian package prometheus"
	@hack/promtool.sh $@

$(TOOLS)/%:
	@echo "compiling $* (once; later taken from $(TOOLS))"
	@mkdir -p $(TOOLS) && GOWORK=off $(HUGE) go -C tools build -trimpath -o $@ $(TOOL_$*)

# The parts of the tests. Every one leaves its counts in $(OUT), so that a part that fails does not hide the others.

define each
for part in $(1); do \
	case " $(ON_THE_LAB) " in *" $$part "*) huge= ;; *) huge=$(HUGE) ;; esac; \
	$$huge $(MAKE) --no-print-directory part-$$part || true; done;
endef

# Parts beside others: in a session of their own, one package at a time. Their output is shown when the part is done that they are beside.
define beside
echo "beside $(1), shown after it: $(4)"; \
$(2) GOFLAGS="$(GOFLAGS) -p=1" setsid $(3) $(MAKE) --no-print-directory beside PARTS="$(4)" >$(OUT)/beside-$(1).log 2>&1 & beside="$$beside $$!";
endef

define run
rm -rf $(OUT); trap 'exit 130' INT TERM; \
$(call each,$(1)) \
$(COUNT) total -dir $(OUT) $(1)
endef

step = $(COUNT) step -dir $(OUT) -part $(@:part-%=%) --
tests = $(COUNT) go -dir $(OUT) -part $(@:part-%=%)

.PHONY: part-%
part-format: $(COUNT)
	@$(step) bash -c 'bad=$$(git ls-files -co --exclude-standard -- "*.go" | xargs -r ls -d 2>/dev/null | xargs -r gofmt -l); \
		[ -z "$$bad" ] || { echo "not formatted (make fmt):"; echo "$$bad"; exit 1; }'

part-lint: $(COUNT) bin/golangci-lint
	@$(step) $(MAKE) --no-print-directory lint

part-tidy: $(COUNT)
	@$(step) bash -c 'export GOWORK=off; go mod tidy -diff && go -C e2e mod tidy -diff'

part-generated: $(COUNT) bin/controller-gen
	@$(step) bash -c 'sums() { find $(GENERATED) -type f | sort | xargs sha256sum; }; before=$$(sums); hack/generate.sh && \
		diff <(echo "$$before") <(sums) || { echo "generated files were not up to date: commit what make generate wrote"; exit 1; }'

part-unit: $(COUNT)
	@$(tests) -- -timeout 40m ./...

part-unit-e2e: $(COUNT)
	@cd e2e && ../$(COUNT) go -dir ../$(OUT) -part unit-e2e -- -timeout 40m ./...

# Where goroutines meet. The detector of races needs cgo, and so a C compiler.
# `make race` has all: operator/controller, whose tests take six minutes and more under it, and operator/backups, which needs the libraries of
# object storage compiled once more.
RACE := ./sidecar ./sidecar/agent ./operator/cache/engine ./operator/cache/loop ./operator/monitor ./operator/monitor/workers ./operator/server ./api/client ./tui ./tui/feed ./kubectl-mfg/logs
RACE_LONG := ./operator/backups ./operator/controller
part-race: $(COUNT)
	@command -v gcc >/dev/null || { echo "installing the Debian packages gcc and libc6-dev"; apt-get -qq update && \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends gcc libc6-dev >/dev/null; }
	@CGO_ENABLED=1 $(tests) -- -race -timeout 40m $(RACE)

# What needs root: to mount file systems that get full, to make network namespaces and control groups. Without it these tests
# skip themselves in the parts unit and unit-e2e, which name what was skipped.
ROOT := ./sidecar/agent/ ./e2e/lab/relay/ ./e2e/lab/cluster/ ./e2e/s3test/
part-root: $(COUNT)
	@command -v ip >/dev/null && command -v mkfs.ext4 >/dev/null || { echo "installing the Debian packages iproute2, e2fsprogs and mount"; apt-get -qq update && \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends iproute2 e2fsprogs mount >/dev/null; }
	@$(tests) -no-skip -- -count=1 -timeout 40m $(ROOT)

part-helm: $(COUNT) bin/helm bin/promtool
	@$(tests) -no-skip -- -tags helm -count=1 -timeout 40m ./charts/...

# A whole release, but of programs of three lines: `make rehearse` makes that of the real ones.
part-release: $(COUNT) bin/helm
	@cd e2e && ../$(COUNT) go -dir ../$(OUT) -part release -no-skip -- -tags helm -count=1 -timeout 40m -run WholeRelease ./release/

# The servers of the next parts come out of the Debian archive, unpacked by mmdebstrap.
.PHONY: mmdebstrap
mmdebstrap:
	@command -v mmdebstrap >/dev/null || { echo "installing the Debian package mmdebstrap"; apt-get -qq update && \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends mmdebstrap >/dev/null; }

part-mysqld: $(COUNT) mmdebstrap
	@$(tests) -no-skip -- -tags mysqld -count=1 -parallel 4 -timeout 40m ./internal/... ./sidecar/... ./e2e/commits/ ./e2e/demo/stage/ ./operator/render/

# The first of these packages makes Valkey's root file system, so they are tested one after the other.
part-valkey: $(COUNT) mmdebstrap
	@$(tests) -no-skip -- -tags valkey -count=1 -p 1 -timeout 40m ./operator/cache/engine/ ./operator/render/ ./e2e/dragonfly/

# The shortest tests of backups that take in most of it; `make test-backup` runs all.
part-backup: $(COUNT) mmdebstrap
	@$(tests) -no-skip -- -tags mysqld -count=1 -timeout 40m -run 'TestLogicalRoundTrip|TestLoadRefuses|TestPointInTime$$|TestTheArchiveIsTheBinaryLog/plain' ./backup/job/ ./backup/archiver/

part-clone: $(COUNT) mmdebstrap
	@$(tests) -no-skip -- -tags mysqld -count=1 -timeout 40m -run TestOrderedCloneOfARealReplica ./operator/clone/

part-adopt: $(COUNT) mmdebstrap
	@$(tests) -no-skip -- -tags mysqld -count=1 -timeout 40m -run 'TestPlaintextIsListedAndGone|OnARealServer' ./kubectl-mfg/cmd/ ./kubectl-mfg/apppassword/ ./kubectl-mfg/readonly/

# At its usual weight, which the programs of the lab inherit.
part-lab-up: $(COUNT) bin/lab
	@$(step) bash -c 'bin/lab status >/dev/null 2>&1 || bin/lab up'

part-lab: $(COUNT) build
	@cd e2e && ../$(COUNT) go -dir ../$(OUT) -part lab -live -no-skip -- -tags lab -v -count=1 -p 1 -parallel 2 -timeout 75m ./suites/...

# The suites of the lab have installed tmux, without which these tests skip themselves in part unit-e2e.
part-terminal: $(COUNT)
	@cd e2e && ../$(COUNT) go -dir ../$(OUT) -part terminal -no-skip -- -count=1 -timeout 40m ./terminal/

# The API server and the etcd that the lab was made of.
part-apiserver: $(COUNT) bin/lab
	@bin/lab status >/dev/null 2>&1 || bin/lab up
	@KUBEBUILDER_ASSETS="$${MFG_LAB_DIR:-/var/lib/mfg-lab}/bin" KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=120s KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=120s \
		$(tests) -no-skip -- -count=1 -timeout 40m -run '(On|Against)APIServer' $$(grep -rlE '^func Test\w*(On|Against)APIServer' --include=*_test.go . | xargs -n 1 dirname | sort -u)
