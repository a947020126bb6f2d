# `make` alone prints this help.
.DEFAULT_GOAL := help
SHELL := /bin/bash
TOOLS := $(CURDIR)/.tools
LINT_VERSION := v2.15.0
LINT := $(TOOLS)/golangci-lint-$(LINT_VERSION)
# How often a random suite repeats its budget: 1 in CI, hundreds for a soak.
RUNNEL_SOAK ?= 1
FUZZTIME ?= 10s
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
RELEASE := github.com/runnel-stream/runnel/internal/cli.release=$(VERSION)
export RUNNEL_SOAK

.PHONY: help
help: ## print this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: build
build: ## the static binary, bin/runnel
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w -X $(RELEASE)' -o bin/runnel ./cmd/runnel

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
# Without the variable each command that a test starts would sleep for a second before it exits.
race: ## the tests under the race detector
	GORACE="atexit_sleep_ms=0 $$GORACE" go test -race -timeout 20m ./...

.PHONY: lint
lint: $(LINT) ## go vet, the linters with their reasons in .golangci.yml, and the meter of prose
	go vet ./...
	$(LINT) run ./...
	.ci/prose

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
kills: ## the kill runs: real processes, kill -9, a verdict; one of them wants RUNNEL_DATA
	go test ./internal/cli/processes -run '^Test(|Put|Server|Time|Fleet|Record|Relay)Kills$$' -count=1

.PHONY: interop
interop: ## real clients of other languages against one server; installs them into .tools
	interop/install
	RUNNEL_INTEROP=1 go test ./interop -count=1 -parallel 4
	$(MAKE) s3
	$(MAKE) sql
	$(MAKE) mongo
	$(MAKE) dynamo
	$(MAKE) alerts

.PHONY: alerts
alerts: ## the alerts of deploy/ on real fleets, by promtool, which interop/install has installed
	RUNNEL_PROMTOOL=$(CURDIR)/.tools/interop/promtool/promtool go test ./deploy -count=1

.PHONY: s3
s3: ## the archive on a real server of S3, which interop/install has installed
	RUNNEL_S3_GATEWAY=$(CURDIR)/.tools/interop/versitygw/versitygw go test ./sink/archive/s3store \
		./internal/cli/processes -run '^Test(Conformance|Simulation|Races|S3Kills)$$' -count=1

.PHONY: sql
sql: ## the outbox on the system's PostgreSQL and 18, which interop/install has installed; sinks on 18
	env -u RUNNEL_POSTGRES go test ./outbox -run 'Once|Lost|Reused|Fence' -count=1
	RUNNEL_POSTGRES=$(CURDIR)/.tools/interop/postgres/bin go test ./outbox ./sink/sqlsink \
		./sink/rollup -count=1
	RUNNEL_POSTGRES=$(CURDIR)/.tools/interop/postgres/bin go test ./internal/cli/processes \
		-run '^Test(Relay|Rollup)Kills$$/^postgres' -count=1

.PHONY: mongo
mongo: ## MongoDB's driver and the rows of a rollup on mongo-java-server, which interop/install has installed
	RUNNEL_MONGO=$(CURDIR)/.tools/interop/mongo go test ./internal/mongotest \
		./sink/rollup/mongostore -count=1
	RUNNEL_MONGO=$(CURDIR)/.tools/interop/mongo go test ./internal/cli/processes \
		-run '^TestRollupKills$$/^mongodb' -count=1

.PHONY: dynamo
dynamo: ## rollups killed over the server's DynamoDB and DynamoDB Local, which interop/install has installed
	RUNNEL_DYNAMODB_LOCAL=$(CURDIR)/.tools/interop/dynamodblocal go test \
		./internal/cli/processes -run '^TestRollupKills$$/^dynamo' -count=1

.PHONY: interop-all
interop-all: ## all of its cases, and the table of docs/interop.md from the run
	interop/install
	RUNNEL_INTEROP=all go test ./interop -count=1 -parallel 4 -timeout 30m -update

.PHONY: fidelity
fidelity: ## docs/fidelity.md, from a run of the conformance suite
	go test ./conformance -run TestFidelity -update -count=1

.PHONY: soak
soak: ## the random suites, a hundred times CI's budget (RUNNEL_SOAK=N for another size): bench/soak.md
	go run ./bench/soak

.PHONY: peers
peers: ## the servers that bench/ compares with, pinned, into .tools; wants cargo and npm
	bench/install

.PHONY: bench
bench: ## the benchmarks; figures and their reading are in bench/README.md
	go test -run '^$$' -bench . -benchtime 3s ./bench

.PHONY: bench-peers
bench-peers: build peers ## runnel beside its peers in one run, as tables; RUNNEL_BENCH_SECONDS=1 a row
	go run ./bench/peers

.PHONY: bench-producers
bench-producers: build ## ways of putting beside each other and the KPL, as tables; wants RUNNEL_DATA
	interop/install
	go run ./bench/producers

.PHONY: bench-consumers
bench-consumers: build ## readers of a backlog beside the Java KCL, as tables
	interop/install
	go run ./bench/consumers

.PHONY: bench-attacks
bench-attacks: build ## a server under attack: the calls of others, and its memory, as a table
	go run ./bench/attacks

.PHONY: bench-idle
bench-idle: build ## a server's start, and its memory while it is idle, as a table
	go run ./bench/idle

.PHONY: bench-memory
bench-memory: build ## a server with data in memory up to its limit, as a table
	go run ./bench/memory

.PHONY: bench-items
bench-items: build ## what many items cost a server, as a table; RUNNEL_ITEMS=1000000 times a start alone
	go run ./bench/items
	go test -run '^$$' -bench Start -benchtime 5x -timeout 30m ./server/internal/itemstore

.PHONY: bench-shards
bench-shards: build ## stream puts over 4,000 shards beside 16, as a table
	go run ./bench/shards

.PHONY: bench-log
bench-log: ## the log alone, beside a bare one; RUNNEL_STEADY_SECONDS=60 adds the steady state
	go test -run '^$$' -bench 'Burst|SlowSyncs|Steady' -benchtime 1x -timeout 30m \
		./server/internal/wal ./server/internal/shardlog

.PHONY: check
check: ## what CI runs
	.ci/run

.PHONY: clean
clean: ## remove what the build made
	rm -rf bin $(TOOLS)
