# SPDX-License-Identifier: Apache-2.0
#
# `make help` lists the targets. The two that matter: `make demo` and `make test`.

SHELL := /bin/bash
.DEFAULT_GOAL := help
export CGO_ENABLED ?= 0

CACHE := $(or $(MFG_CACHE),$(or $(HOME),/root)/.cache/mfg)
export MFG_CACHE := $(CACHE)

# Tools are compiled once for each content of tools/go.sum and each Go.
TOOLS := $(CACHE)/tools-$(shell { go version; cat tools/go.sum; } | sha256sum | cut -c1-12)
TOOL_golangci-lint := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
TOOL_controller-gen := sigs.k8s.io/controller-tools/cmd/controller-gen
TOOL_helm := helm.sh/helm/v4/cmd/helm

# The parts of `make check` and of `make test`, in the order in which they run.
CHECKS := format vet lint tidy generated unit unit-e2e
TESTS := $(CHECKS) helm mysqld lab apiserver

COUNT := bin/counts
OUT := out/test
GENERATED := config/crd charts/mfg/templates/crds docs/reference api/v1alpha1

RUNS ?= 10
CASE ?=

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

##: the main job

.PHONY: demo
demo: build ## Fail over on a real cluster on this machine and prove it (root, Debian; the first time compiles Kubernetes)
	@bin/demo

.PHONY: test
test: $(COUNT) ## Everything: check, helm, mysqld and the lab suites (root, Debian); ends with a count
	@$(call run,$(TESTS))

.PHONY: check
check: $(COUNT) ## Format, vet, lint, tidy, generated files, unit tests (no root, under two minutes warm)
	@$(call run,$(CHECKS))

.PHONY: bench-failover
bench-failover: build ## Measure failovers, RUNS=10 CASE=node-kill|node-cut|pod-force-delete|mysqld-kill; writes out/bench-failover.json
	@bin/bench -runs $(RUNS) $(if $(CASE),-case $(CASE)) -out out/bench-failover.json

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

bin/lab bin/demo bin/bench bin/counts: bin/%: FORCE
	@go -C e2e build -o ../$@ ./$*

bin/mfg-e2e: FORCE
	@go -C e2e build -o ../$@ ./writer

bin/kubectl-mfg: FORCE
	@go build -o $@ ./kubectl-mfg

bin/golangci-lint bin/controller-gen bin/helm: bin/%: $(TOOLS)/%
	@mkdir -p bin && ln -sfn $< $@

$(TOOLS)/%:
	@echo "compiling $* (once; later taken from $(TOOLS))"
	@mkdir -p $(TOOLS) && GOWORK=off go -C tools build -trimpath -o $@ $(TOOL_$*)

# The parts of the tests. Every one leaves its counts in $(OUT), so that a part that fails does not hide the others.

define run
rm -rf $(OUT); trap 'exit 130' INT TERM; \
for part in $(1); do $(MAKE) --no-print-directory part-$$part || true; done; \
$(COUNT) total -dir $(OUT) $(1)
endef

step = $(COUNT) step -dir $(OUT) -part $(@:part-%=%) --
tests = $(COUNT) go -dir $(OUT) -part $(@:part-%=%)

.PHONY: part-%
part-format: $(COUNT)
	@$(step) bash -c 'bad=$$(git ls-files -co --exclude-standard -- "*.go" | xargs -r ls -d 2>/dev/null | xargs -r gofmt -l); \
		[ -z "$$bad" ] || { echo "not formatted (make fmt):"; echo "$$bad"; exit 1; }'

part-vet: $(COUNT)
	@$(step) bash -c 'go vet -tags helm,mysqld ./... && go -C e2e vet -tags lab ./...'

part-lint: $(COUNT) bin/golangci-lint
	@$(step) $(MAKE) --no-print-directory lint

part-tidy: $(COUNT)
	@$(step) bash -c 'export GOWORK=off; go mod tidy -diff && go -C e2e mod tidy -diff'

part-generated: $(COUNT) bin/controller-gen
	@$(step) bash -c 'sums() { find $(GENERATED) -type f | sort | xargs sha256sum; }; before=$$(sums); hack/generate.sh && \
		diff <(echo "$$before") <(sums) || { echo "generated files were not up to date: commit what make generate wrote"; exit 1; }'

part-unit: $(COUNT)
	@$(tests) -- ./...

part-unit-e2e: $(COUNT)
	@cd e2e && ../$(COUNT) go -dir ../$(OUT) -part unit-e2e -- ./...

part-helm: $(COUNT) bin/helm
	@$(tests) -no-skip -- -tags helm -count=1 ./charts/...

# The server comes out of the Debian archive, unpacked by mmdebstrap.
part-mysqld: $(COUNT)
	@command -v mmdebstrap >/dev/null || { echo "installing the Debian package mmdebstrap"; apt-get -qq update && \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends mmdebstrap >/dev/null; }
	@$(tests) -no-skip -- -tags mysqld -count=1 ./internal/... ./sidecar/...

part-lab: $(COUNT) build
	@cd e2e && ../$(COUNT) go -dir ../$(OUT) -part lab -live -no-skip -- -tags lab -v -count=1 -p 1 -timeout 50m ./suites/...

# The API server and the etcd that the lab was made of.
part-apiserver: $(COUNT) bin/lab
	@bin/lab status >/dev/null 2>&1 || bin/lab up
	@KUBEBUILDER_ASSETS="$${MFG_LAB_DIR:-/var/lib/mfg-lab}/bin" KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=120s \
		$(tests) -no-skip -- -count=1 -run APIServer ./operator/...
