# `make` alone prints this help.
.DEFAULT_GOAL := help
SHELL := /bin/bash
TOOLS := $(CURDIR)/.tools
LINT_VERSION := v2.15.0
LINT := $(TOOLS)/golangci-lint-$(LINT_VERSION)
# How often a random suite repeats its budget: 1 in CI, hundreds for a soak.
RUNNEL_SOAK ?= 1
FUZZTIME ?= 10s
export RUNNEL_SOAK

.PHONY: help
help: ## print this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: build
build: ## the static binary, bin/runnel
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/runnel ./cmd/runnel

.PHONY: image
image: build ## a container image, runnel:latest, by podman, buildah or docker
	mkdir -p bin/image/data
	cp /etc/ssl/certs/ca-certificates.crt bin/image/
	@if command -v podman >/dev/null; then podman build -t runnel -f Containerfile .; \
	elif command -v buildah >/dev/null; then buildah build -t runnel -f Containerfile .; \
	else docker build -t runnel -f Containerfile .; fi

.PHONY: test
test: ## the tests, as a newcomer runs them
	go test ./...

.PHONY: race
race: ## the tests under the race detector
	go test -race ./...

.PHONY: lint
lint: $(LINT) ## go vet and the linters, each with its reason in .golangci.yml
	go vet ./...
	$(LINT) run ./...

$(LINT):
	mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv $(TOOLS)/golangci-lint $@

.PHONY: fmt
fmt: $(LINT) ## format every file
	$(LINT) fmt ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (10s)
	FUZZTIME=$(FUZZTIME) .ci/fuzz

.PHONY: kills
kills: ## the kill run: real processes, kill -9, a verdict; wants RUNNEL_DATA
	go test ./internal/cli -run 'TestKills' -count=1

.PHONY: interop
interop: ## real clients of other languages against one server; installs them into .tools
	interop/install
	RUNNEL_INTEROP=1 go test ./interop -count=1

.PHONY: fidelity
fidelity: ## docs/fidelity.md, from a run of the conformance suite
	go test ./conformance -run TestFidelity -update -count=1

.PHONY: soak
soak: ## the random suites, a hundred times CI's budget (RUNNEL_SOAK=N for another size)
	RUNNEL_SOAK=$$(( $(RUNNEL_SOAK) > 1 ? $(RUNNEL_SOAK) : 100 )) go test -timeout 10h -count=1 \
		./internal/vfs ./internal/fsck ./internal/wal ./internal/shardlog ./internal/itemstore ./server/... \
		./producer ./consumer ./lease ./sink/...

.PHONY: peers
peers: ## the servers that bench/ compares with, pinned, into .tools; wants cargo
	cargo install --quiet ferrokinesis --version 0.7.0 --root $(TOOLS)/peers

.PHONY: bench
bench: ## the benchmarks; figures and their reading are in bench/README.md
	go test -run '^$$' -bench . -benchtime 3s ./bench

.PHONY: check
check: ## what CI runs
	.ci/run

.PHONY: clean
clean: ## remove what the build made
	rm -rf bin $(TOOLS)
