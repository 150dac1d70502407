# The daily tasks of this project; `make` lists them. All other tasks: `cargo xtask --help`.

NAMESPACES ?= 20
# Cargo profile of the demo: it builds in the shortest time.
PROFILE ?= demo
# Minor of the control plane of `demo`, for example 1.33. The default is 1.36.
MINOR ?= $(PALISADE_MINOR)
# Minors of `oracle` and `oracle-check`, for example '1.36 1.37'. The default is all of them.
MINORS ?=
# Parts of `deny`. A change is independent of advisories; .github/workflows/advisories.yaml checks them on a schedule.
DENY ?= bans licenses sources

TARGET := $(or $(CARGO_TARGET_DIR),target)
BIN := $(TARGET)/$(PROFILE:dev=debug)
DEMO_BUILD := cargo build --profile $(PROFILE) -p palisade-controller -p palisade-controlplane -p palisade-demo
# Built with a test, like the whole workspace for the tests: otherwise Cargo would compile libraries once more, for other
# features.
XTASK := cargo build --quiet --workspace --bin xtask --test project && $(TARGET)/debug/xtask
# Hands nothing of make on to Cargo: rustdoc would warn in each crate that it cannot share make's jobs.
ALONE := MAKEFLAGS=
# Outside of the clone, so that a new clone uses it again.
TOOLS := $(or $(PALISADE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/palisade)/tools
CARGO_DENY_VERSION := 0.20.2
# The packages with a file that differs from main.
CHANGED = $(shell git diff --name-only $$(git merge-base HEAD main) | sed -n '\,^crates/xtask/,d; s,^crates/\([^/]*\)/.*,-p palisade-\1,p' | sort -u)

.DEFAULT_GOAL := help
.PHONY: help build demo test test-all check format-check clippy drift deny generate oracle oracle-check bench-smoke install \
	uninstall control-plane programs scenarios others

help: ## List the daily tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'All other tasks: cargo xtask --help'

build: ## Build the controller, the webhook and the command line (target/release)
	cargo build --release -p palisade-controller -p palisade-webhook -p palisade-cli

# Cargo builds the program that builds the control plane first: it must not hold its lock while Go builds.
demo: export PALISADE_MINOR := $(MINOR)
demo: ## Run the demo on a separate control plane: NAMESPACES=20, MINOR=1.33, ONCE=1 to end automatically
	@echo 'Go builds the control plane and Cargo builds Palisade, side by side: some minutes the first time, then seconds.'
	$(DEMO_BUILD) --bin controlplane
	@$(MAKE) --no-print-directory --jobs=2 control-plane programs AT=$(BIN) PROGRAMS='$(DEMO_BUILD) --bins'
	$(BIN)/palisade-demo --namespaces $(NAMESPACES) $(if $(ONCE),--once)

# Programs are built together with the tests of the whole workspace: alone they need fewer features of their dependencies,
# and Cargo would build most crates twice.
test: QUICK := 1
test: ## Run the demo, the tests that need no cluster, and a scenario of each stage on a real API server (needs Rust and Go)
test-all: ## Run the demo and all tests but the largest: cargo xtask large
test test-all:
	cargo build --workspace --bin controlplane --test control_plane
	$(MAKE) --jobs=2 control-plane programs AT=$(TARGET)/debug PROGRAMS='cargo build --workspace --bins --tests'
	$(TARGET)/debug/palisade-demo --once
	@echo 'The scenarios run beside all other tests. The output of each is shown at its end.'
	$(MAKE) --jobs=2 --output-sync=target scenarios others QUICK=$(QUICK)

# The two halves of a build, for `demo`, `test` and `test-all`.
control-plane:
	$(AT)/controlplane build
programs:
	$(PROGRAMS)

# A missing Go module fails a test: the build of the control plane has fetched all modules.
scenarios others: export PALISADE_EXPECT ?= modules
# The programs of the control plane collect garbage less often: a quarter of the CPU time, for memory.
scenarios others: export GOGC ?= 400

# Side by side, one half uses a core while the other waits.
scenarios:
	$(ALONE) $(if $(QUICK),PALISADE_QUICK=1) cargo test --workspace --test apiserver
others:
	$(ALONE) cargo test --workspace --exclude palisade-tests
	$(if $(QUICK),,$(ALONE) cargo test --workspace --test conformance --test redteam)
	$(if $(QUICK),,$(ALONE) $(TARGET)/debug/xtask kstatus)
	$(if $(QUICK),,$(ALONE) $(TARGET)/debug/xtask oracle-check --minor 1.36)

check: format-check clippy ## Check your changes: format, lints, unit tests of the crates that differ from main
	$(if $(CHANGED),cargo test $(CHANGED) --lib --bins)
	cargo test -p xtask --test project -- tidy:: catalogue::

format-check: ## Check the format
	cargo fmt --all -- --check

clippy: ## Check the lints
	$(ALONE) cargo clippy --workspace --all-targets -- -D warnings

drift: ## Check that the generated files are up to date
	$(XTASK) generate --check

# Unoptimized: it runs for a second, and takes minutes to optimize.
deny: ## Check the dependencies: licences, bans, sources (DENY=advisories: known vulnerabilities)
	@$(TOOLS)/bin/cargo-deny --version 2>/dev/null | grep -qxF 'cargo-deny $(CARGO_DENY_VERSION)' \
		|| $(ALONE) cargo install --locked --debug cargo-deny@$(CARGO_DENY_VERSION) --root $(TOOLS)
	$(TOOLS)/bin/cargo-deny check $(DENY)

generate: ## Write the generated files
	cargo xtask generate

oracle: ## Regenerate golden files and schemas with kube-apiserver's code; MINORS='1.36 1.37' selects minors
	$(XTASK) oracle $(MINORS:%=--minor %)

oracle-check: ## Check the golden files against that code; MINORS=1.36 selects one minor
	$(XTASK) oracle-check $(MINORS:%=--minor %)

bench-smoke: ## Run short benchmarks, and fail if a compliant request, palisade eval or CEL exceeds its limit
	$(XTASK) bench-smoke

install: ## Install into the current cluster of kubectl
	kubectl apply --server-side -k crds
	kubectl wait --for=condition=Established --timeout=60s \
		crd/toolsecurityparams.toolsecurity.dev crd/toolsecurityprofiles.toolsecurity.dev
	kubectl apply --server-side -k manifests

uninstall: ## Remove all profiles, then Palisade, from that cluster
	test -z "$$(kubectl get crd toolsecurityprofiles.toolsecurity.dev --ignore-not-found -o name)" \
		|| kubectl delete toolsecurityprofiles.toolsecurity.dev --all --timeout=120s
	kubectl delete --ignore-not-found -k manifests
