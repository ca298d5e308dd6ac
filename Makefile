# Every target works with Go, make and git alone. GNU make 3.81 (macOS) or newer.
# Modules are found in go.work: adding one needs no edit here.

# The folder of everything that the targets make; ignored by git.
CACHE := .cache

# Built, then run: a program of its own gets the signals and gives its exit code straight to make.
TOOLS = cd tools && GOWORK=off go build -buildvcs=false -o ../$(CACHE)/bin/ . && cd .. && exec $(CACHE)/bin/tools

.DEFAULT_GOAL := help
.PHONY: help run test check fmt lint soak conformance bench-pool bench-http clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

# At a terminal, 'set -m' puts the demo into a process group of its own: Ctrl-C then reaches the demo and not make,
# which would otherwise report the demo's clean end as an error.
run: ## start the demo site behind fastcache and print its address (ARGS are passed on); Ctrl-C stops it
	@mkdir -p $(CACHE)/bin
	@cd fastcache && GOWORK=off go build -buildvcs=false -o ../$(CACHE)/bin/fastcache-demo ./cmd/demo
	@if [ -t 0 ] && [ -t 2 ]; then set -m; $(CACHE)/bin/fastcache-demo $(ARGS); else exec $(CACHE)/bin/fastcache-demo $(ARGS); fi

test: ## everything that must pass: vet, tests with -race, tidy, format, lint (ARGS=fastcache: one module)
	@$(TOOLS) test $(ARGS)

check: ## the quick subset for everyday use: vet, build, format, short tests
	@$(TOOLS) check $(ARGS)

fmt: ## format the Go files
	@$(TOOLS) fmt $(ARGS)

lint: ## format check and linters only
	@$(TOOLS) lint $(ARGS)

conformance: ## the public HTTP cache test suite against fastcache; needs node 20 and npm (ARGS are passed on)
	@mkdir -p $(CACHE)/bin
	@cd fastcache && GOWORK=off go build -buildvcs=false -o ../$(CACHE)/bin/conformance ./conformance && exec ../$(CACHE)/bin/conformance $(ARGS)

bench-pool: ## bytebufferpool against other pools, and its goals (ARGS=-quick: a minute instead of six)
	@mkdir -p $(CACHE)/bin
	@cd compare && GOWORK=off go build -buildvcs=false -o ../$(CACHE)/bin/bench-pool ./cmd/bench-pool
	@exec $(CACHE)/bin/bench-pool $(ARGS)

ROUNDS ?= 5
SECONDS ?= 2
OUT ?= $(CACHE)/bench/results

bench-http: ## fastcache against nginx, Varnish and file_server; Linux (ROUNDS=1 SECONDS=2: a quick look; OUT=folder)
	@mkdir -p $(CACHE)/bin
	@cd fastcache/bench && GOWORK=off go build -buildvcs=false -o ../../$(CACHE)/bin/bench-http .
	@exec $(CACHE)/bin/bench-http -rounds $(ROUNDS) -seconds $(SECONDS) -out $(OUT) $(ARGS)

# The race detector needs a C compiler.
RACE := $(shell command -v cc >/dev/null 2>&1 && echo -race)
SOAK ?= 10m

soak: ## fastcache under everything at once, every byte checked (SOAK=2m: shorter than the ten minutes it takes)
	@cd fastcache/e2e && FASTCACHE_SOAK=$(SOAK) GOWORK=off go test $(RACE) -count=1 -timeout 2h -run '^TestSoak$$' -v .

clean: ## remove what the targets built
	rm -rf $(CACHE)
