# Tasks of this project. `make` lists them.

NAMESPACES ?= 20
# The Cargo profile of the demo: what builds soonest.
PROFILE ?= demo
# As the control plane is built (tests/controlplane/src/build.rs), whose compiled packages are used again then.
GO_BUILD := -trimpath -gcflags=all=-dwarf=false

TARGET := $(or $(CARGO_TARGET_DIR),target)
BIN = $(TARGET)/$(PROFILE:dev=debug)
CACHE := $(or $(PALISADE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/palisade)
# Kept outside of the clone, so that a fresh one need not build it again.
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := $(CACHE)/tools/bin/cargo-deny
CARGO_MUTANTS_VERSION := 27.1.0
CARGO_MUTANTS := $(CACHE)/tools/bin/cargo-mutants
MDBOOK_VERSION := 0.5.4
MDBOOK := $(CACHE)/tools/bin/mdbook
CARGO_FUZZ_VERSION := 0.13.2
CARGO_FUZZ := $(CACHE)/tools/bin/cargo-fuzz
CARGO_CYCLONEDX_VERSION := 0.5.9
CARGO_CYCLONEDX := $(CACHE)/tools/bin/cargo-cyclonedx
CARGO_AUDITABLE_VERSION := 0.7.7
CARGO_AUDITABLE := $(CACHE)/tools/bin/cargo-auditable

.DEFAULT_GOAL := help

.PHONY: help
help: ## List all tasks
	@awk -F ':.*## ' '/^##@ / { print substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-14s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Build

.PHONY: build
build: ## Build the controller, the webhook and the command line (target/release)
	cargo build --release -p palisade-controller -p palisade-webhook -p palisade-cli

.PHONY: generate
generate: ## Write the generated files
	cargo xtask generate

##@ Check

.PHONY: lint
lint: format-check clippy ## Check format and lints

# The packages with a file that differs from main.
CHANGED = $(shell git diff --name-only $$(git merge-base HEAD main) | sed -n '\,^crates/xtask/,d; s,^crates/\([^/]*\)/.*,-p palisade-\1,p' | sort -u)

.PHONY: check
check: format-check clippy ## Check your changes: format, lints, unit tests of the crates that differ from main
	$(if $(CHANGED),cargo test $(CHANGED) --lib --bins)
	cargo test -p xtask --test project -- tidy:: catalogue::

.PHONY: format-check
format-check:
	cargo fmt --all -- --check

.PHONY: clippy
clippy:
	cargo clippy --workspace --all-targets -- -D warnings

.PHONY: drift
# Built with a test, as all of the workspace is for the tests: else libraries would be compiled once more, for other
# features.
drift: ## Check that the generated files are up to date
	cargo build --quiet --workspace --bin xtask --test project
	$(TARGET)/debug/xtask generate --check

.PHONY: book
book: ## Build the documentation as a book (target/book), and check its links
	@$(MDBOOK) --version 2>/dev/null | grep -qxF 'mdbook v$(MDBOOK_VERSION)' \
		|| cargo install --locked --debug --no-default-features --features search mdbook@$(MDBOOK_VERSION) --root $(CACHE)/tools
	cargo build --quiet --workspace --bin xtask --test project
	MDBOOK_PREPROCESSOR__OUTWARD__COMMAND='$(abspath $(TARGET))/debug/xtask book-links' $(MDBOOK) build --dest-dir $(abspath $(TARGET))/book
	$(TARGET)/debug/xtask book-check $(TARGET)/book

.PHONY: deny
# Unoptimized: it runs for a second, and takes minutes to optimize.
deny: ## Check the dependencies: licences, bans, sources
	@$(CARGO_DENY) --version 2>/dev/null | grep -qxF 'cargo-deny $(CARGO_DENY_VERSION)' \
		|| cargo install --locked --debug cargo-deny@$(CARGO_DENY_VERSION) --root $(CACHE)/tools
	$(CARGO_DENY) check bans licenses sources

.PHONY: test
test: ## Run the demo and all tests, on a real API server (needs Rust and Go)
	$(MAKE) --jobs=2 test-control-plane test-binaries
	$(TARGET)/debug/palisade-demo --once
	@echo 'The scenarios run beside all other tests. What each prints is shown when it has ended.'
	$(MAKE) --jobs=2 --output-sync=target test-scenarios test-others

# Programs are built together with the tests of the whole workspace: alone they need fewer features of their
# dependencies, and Cargo would build most crates twice.
.PHONY: test-binaries
test-binaries: test-control-plane-program
	cargo build --workspace --bins --tests

.PHONY: test-control-plane
test-control-plane: test-control-plane-program
	$(TARGET)/debug/controlplane build

# By itself: it must not hold Cargo's lock while Go builds.
.PHONY: test-control-plane-program
test-control-plane-program:
	cargo build --workspace --bin controlplane --test control_plane

# A test is not passed by for want of the Go modules that are fetched above.
test-scenarios test-others: export PALISADE_EXPECT ?= modules
# The programs of the control plane collect garbage less often: a quarter of the time of the processor, for memory.
test-scenarios: export GOGC ?= 400

# Nothing of make's own is handed on: rustdoc would warn in each crate that it cannot share make's jobs.
ALONE := MAKEFLAGS=

# What runs on a real API server mostly waits for it, and runs beside what keeps a processor busy.
.PHONY: test-scenarios
test-scenarios:
	$(ALONE) cargo test --workspace --test apiserver
	$(ALONE) cargo test --workspace --test conformance --test redteam

.PHONY: test-others
test-others:
	$(ALONE) cargo test --workspace --exclude palisade-tests
	$(MAKE) kstatus oracle-check MINORS=1.36

.PHONY: kstatus
kstatus: export CGO_ENABLED = 0
kstatus: export GOFLAGS += $(GO_BUILD)
# It reads files of the project, of which Go's cache of results knows nothing.
kstatus: ## Check that Flux and Argo CD read the conditions of profiles correctly
	cd tests/kstatus && go vet . && go test -count=1 .

# What can be used without the operator, as crates of their own.
TOOLKIT := objects cel apiserver manifest lint suite
# What `cargo install palisade-cli` is built from besides.
OF_CLI := checks api compiler mutation gate migrate profiles process cli

.PHONY: package
package: ## Package the crates of the toolkit and the command line, and build each package
	cargo package --locked $(TOOLKIT:%=-p palisade-%) $(OF_CLI:%=-p palisade-%)

##@ Release

VERSION ?= $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
ARTIFACTS := $(TARGET)/release-artifacts

# What a release is made with, besides Rust and GNU tools.
release release-check sbom: export CARGO_CYCLONEDX := $(abspath $(CARGO_CYCLONEDX))
release release-check: export CARGO_AUDITABLE := $(abspath $(CARGO_AUDITABLE))

.PHONY: cyclonedx
cyclonedx:
	@$(CARGO_CYCLONEDX) cyclonedx --version 2>/dev/null | grep -qxF 'cargo-cyclonedx-cyclonedx $(CARGO_CYCLONEDX_VERSION)' \
		|| cargo install --locked --debug cargo-cyclonedx@$(CARGO_CYCLONEDX_VERSION) --root $(CACHE)/tools

# It does not say its own version.
.PHONY: auditable
auditable:
	@cargo install --list --root $(CACHE)/tools | grep -qxF 'cargo-auditable v$(CARGO_AUDITABLE_VERSION):' \
		|| cargo install --locked --debug cargo-auditable@$(CARGO_AUDITABLE_VERSION) --root $(CACHE)/tools

.PHONY: release
release: auditable sbom ## Build all release artefacts in target/release-artifacts: VERSION=0.1.0
	packaging/release.sh $(VERSION) $(ARTIFACTS)

.PHONY: sbom
sbom: cyclonedx sbom-program ## Write the SBOM of each program as CycloneDX (target/sbom), and compare it with Cargo.lock
	packaging/sbom.sh $(TARGET)/sbom
	$(TARGET)/debug/xtask sbom-check $(TARGET)/sbom

# Built with a test, as for `drift`.
.PHONY: sbom-program
sbom-program:
	cargo build --quiet --workspace --bin xtask --test project

.PHONY: release-check
release-check: auditable cyclonedx ## Rebuild the release in another directory, and compare the bytes
	packaging/reproduce.sh $(VERSION) $(ARTIFACTS)

.PHONY: release-smoke
release-smoke: sbom-program ## Install from the release artefacts in an empty directory, and evaluate a first pod
	$(TARGET)/debug/xtask sbom-check $(ARTIFACTS)
	packaging/smoke.sh $(ARTIFACTS) $(HELM)

.PHONY: release-smoke-cluster
release-smoke-cluster: controlplane helm-program ## Install chart, image and palisade from the release artefacts, and follow the tutorial
	PALISADE_ARTIFACTS=$(abspath $(ARTIFACTS)) PALISADE_HELM=$(HELM) \
		cargo test --workspace --test apiserver -- tutorial::the_artifacts --nocapture

.PHONY: release-registry
release-registry: ## Push the release image to a local registry, and pull it by its digest
	packaging/registry.sh $(ARTIFACTS)

##@ Check

.PHONY: pressure
pressure: controlplane ## Measure repair with 50 profiles, half of them failing, and 3,500 namespaces
	PALISADE_PRESSURE_NAMESPACES=3500 PALISADE_PRESSURE_ROUNDS=200 cargo test --workspace --test apiserver -- pressure --nocapture

.PHONY: rollout
rollout: controlplane ## Roll a profile out to 1,000 namespaces, 32 with violations, while the controller is killed 20 times
	PALISADE_ROLLOUT_NAMESPACES=1000 PALISADE_ROLLOUT_KILLS=20 \
		cargo test --workspace --test apiserver -- a_rollout_promotes --nocapture

.PHONY: fixtures
fixtures: controlplane ## Write the objects of this version in an API server, for upgrade tests (tests/apiserver/fixtures)
	PALISADE_FIXTURES=1 cargo test --workspace --test apiserver -- what_this_version_makes --nocapture

.PHONY: ha
ha: SECONDS := 300
ha: controlplane ## Kill, pause and end the leader of two controllers for five minutes (SECONDS=300)
	PALISADE_HA_SECONDS=$(SECONDS) cargo test --workspace --test apiserver -- a_replica_takes_over --nocapture

.PHONY: chaos
chaos: SECONDS := 600
chaos: controlplane ## Run chaos tests on etcd, API server, controllers, webhook, connections and objects, and check invariants: SECONDS=600 SEED=1
	cargo build --workspace --bins --tests
	$(TARGET)/debug/palisade-chaos --seconds $(SECONDS) --seed $(SEED) --directory $(TARGET)/chaos

HELM_VERSION = $(shell sed -n "s,^.*helm.sh/helm/v4 \(v[^ ]*\).*,\1,p" tests/helm/go.mod)
HELM = $(abspath $(CACHE)/helm/$(HELM_VERSION)/helm)

.PHONY: helm-program
helm-program: export CGO_ENABLED = 0
helm-program: export GOFLAGS += $(GO_BUILD)
helm-program: ## Build helm from its module
	cd tests/helm && go build -ldflags '-s -w -X helm.sh/helm/v4/internal/version.version=$(HELM_VERSION)' -o $(HELM) helm.sh/helm/v4/cmd/helm

.PHONY: manifests
manifests: helm-program ## Render the chart into manifests/
	UPDATE_GOLDEN=1 PALISADE_EXPECT=helm cargo test -p palisade-helm --test chart -- manifests

.PHONY: helm
helm: controlplane helm-program ## Render the chart with many values; install, upgrade, roll back and uninstall it (NAMESPACES_INSTALLED=500)
	PALISADE_EXPECT=helm cargo test -p palisade-helm
	PALISADE_HELM=$(HELM) PALISADE_HELM_NAMESPACES=$(or $(NAMESPACES_INSTALLED),500) \
		cargo test --workspace --test apiserver -- helm:: --nocapture

PROMTOOL ?= $(shell command -v promtool)

.PHONY: alerts
alerts: ## Test each alert of the chart with series that fire it and series that do not (needs promtool)
	@test -n '$(PROMTOOL)' || echo 'skipped: there is no promtool; Debian has it in the package prometheus, and PROMTOOL names one'
	$(if $(PROMTOOL),$(PROMTOOL) check rules charts/palisade/files/alerts.yaml && $(PROMTOOL) test rules tests/alerts/alerts.test.yaml)

PROMETHEUS ?= $(shell command -v prometheus)

.PHONY: dashboards
dashboards: controlplane ## Run all queries of the dashboard and all alerts in a real Prometheus (needs prometheus)
	@test -n '$(PROMETHEUS)' || echo 'skipped: there is no prometheus; Debian has it in the package prometheus (apt-get update && apt-get install -y prometheus), and PROMETHEUS names one'
	$(if $(PROMETHEUS),PALISADE_PROMETHEUS='$(PROMETHEUS)' cargo test --workspace --test apiserver -- dashboards:: --nocapture)

.PHONY: scan
scan: controlplane ## Scan 3,500 namespaces with 20,000 pods in the background, and compare with the API server's answers
	cargo build --release -p palisade-controller
	PALISADE_SCAN_CONTROLLER=$(abspath $(TARGET))/release/palisade-controller \
		cargo test --workspace --test apiserver -- twenty_thousand_pods --nocapture

CHROMIUM ?= $(shell command -v chromium-headless-shell || command -v chromium)

.PHONY: report-screens
report-screens: ## Check the page of palisade report in a headless Chromium, light and dark, wide and narrow
	@test -n '$(CHROMIUM)' || echo 'skipped: there is no chromium-headless-shell and no chromium; CHROMIUM names one'
	$(if $(CHROMIUM),PALISADE_CHROMIUM='$(CHROMIUM)' PALISADE_SCREENS=$(abspath $(TARGET))/report-screens \
		cargo test --workspace --test screens -- --nocapture)

CASES ?= 3000

.PHONY: mutants
mutants: FILES := crates/compiler/src/fast/**/*.rs
mutants: ## Run mutation tests of the fast path: a test must fail for each mutant. FILES='**/simplify/*.rs' selects a part
	@$(CARGO_MUTANTS) mutants --version 2>/dev/null | grep -qxF 'cargo-mutants $(CARGO_MUTANTS_VERSION)' \
		|| cargo install --locked --debug cargo-mutants@$(CARGO_MUTANTS_VERSION) --root $(CACHE)/tools
	rm -rf $(TARGET)/mutants
	@echo 'First by the tests of the compiler, which take seconds. What survives them is tried by those of the gate.'
	$(CARGO_MUTANTS) mutants --jobs 2 --file '$(FILES)' --output $(TARGET)/mutants -- --lib --test=compiler || case $$? in 2 | 3) ;; *) exit 1 ;; esac
	$(CARGO_MUTANTS) mutants --iterate --file '$(FILES)' --output $(TARGET)/mutants \
		--test-package palisade-gate -- --test=gate catalogue::

.PHONY: properties
properties: ## Evaluate random pods against random profiles: CASES=3000, different in each run; ONLY=early selects a module
	PROPTEST_CASES=$(CASES) cargo test --workspace --test gate -- properties::$(ONLY) --nocapture

WITH ?= $(error WITH names the palisade of another version)
# Settings that it does not know, as scheduling.schedulers,images.redirect.
WITHOUT ?=

# Unoptimized: it takes ten minutes of a processor, as long as it would take to optimize all of it.
.PHONY: compare
compare: CASES := 10000
compare: ## Compare the answers of another version's policies: WITH=path/of/its/palisade CASES=10000 SEED=1 WITHOUT=settings
	PALISADE_COMPARE_WITH='$(abspath $(WITH))' PALISADE_COMPARE_WITHOUT='$(WITHOUT)' \
		PALISADE_COMPARE_CASES=$(CASES) PALISADE_COMPARE_SEED=$(SEED) \
		cargo test --workspace --test gate -- --ignored of_another_version --nocapture

# 1.36 comes first: the golden files of the others are what differs from it.
MINORS ?= 1.36 1.33 1.34 1.35 1.37
oracle oracle-check: export CGO_ENABLED = 0
oracle oracle-check: export GOFLAGS += $(GO_BUILD)
# $(1) a minor, $(2) where golden/ is written, $(3) where the schemas are written, $(4) the types, $(5) the objects,
# $(6) what is said of definitions and their rules, $(7) the admission plugins, $(8) what is said of objects with one change
# each, $(9) what is said of custom resources, $(10) what is said of definitions with one change each; in $(2) is also yaml/, of
# one minor, for kubectl is of none, and in $(9) the texts with formats
oracle_build = go build $(if $(filter-out 1.36,$(1)),-modfile=minors/$(1).mod) -o $(CACHE)/oracle/$(1) .
oracle_run = $(CACHE)/oracle/$(1) golden $(2)/golden/$(1) $(if $(filter-out 1.36,$(1)),golden/1.36) \
	&& $(CACHE)/oracle/$(1) openapi $(3)/$(1).json.gz \
	&& $(CACHE)/oracle/$(1) types $(call oracle_discovery,$(1)) $(4)/$(1).json.gz \
	&& $(CACHE)/oracle/$(1) objects $(call oracle_discovery,$(1)) objects 1 5 $(5)/$(1).jsonl.gz \
	&& $(CACHE)/oracle/$(1) rules rules $(6)/$(1).jsonl.gz \
	&& $(CACHE)/oracle/$(1) definitions definitions $(10)/$(1).jsonl.gz $(if $(filter-out 1.36,$(1)),definitions/golden/1.36.jsonl.gz) \
	&& $(CACHE)/oracle/$(1) plugins $(call oracle_module,$(1),kubernetes) $(call oracle_module,$(1),apiserver) $(7)/$(1).json \
	&& $(CACHE)/oracle/$(1) mutants $(call oracle_discovery,$(1)) mutants $(8)/$(1).jsonl.gz $(if $(filter-out 1.36,$(1)),mutants/golden/1.36.jsonl.gz) \
	&& $(CACHE)/oracle/$(1) custom 1 160 $(9)/golden/$(1).jsonl.gz $(if $(filter-out 1.36,$(1)),custom/golden/1.36.jsonl.gz) \
	$(if $(filter 1.36,$(1)),&& $(CACHE)/oracle/$(1) formats 1 150 $(9)/formats.jsonl.gz \
	&& $(CACHE)/oracle/$(1) texts $(2)/yaml/golden.jsonl.gz yaml/cases.jsonl yaml/spellings.jsonl)
# The lists of resources that Kubernetes keeps beside its sources.
oracle_discovery = $(call oracle_module,$(1),kubernetes)/api/discovery
oracle_module = "$$(go list $(if $(filter-out 1.36,$(1)),-modfile=minors/$(1).mod) -m -f '{{.Dir}}' k8s.io/$(2))"

.PHONY: oracle
oracle: ## Regenerate golden files and schemas of all minors with kube-apiserver's CEL code
	cd tests/oracle && $(foreach minor,$(MINORS),$(call oracle_build,$(minor)) && $(call oracle_run,$(minor),.,../../crates/cel/openapi,../../crates/apiserver/types,objects/golden,rules/golden,plugins,mutants/golden,custom,definitions/golden) &&) :

.PHONY: oracle-check
oracle-check: ## Check the golden files against that code; MINORS=1.36 selects one minor
	cd tests/oracle && go vet . && go test . && at=$$(mktemp -d) && trap 'rm -rf "$$at"' EXIT \
		&& cp -r ../../crates/cel/openapi "$$at/openapi" && cp -r ../../crates/apiserver/types "$$at/types" && cp -r objects/golden "$$at/objects" \
		&& cp -r rules/golden "$$at/rules" && cp -r plugins "$$at/plugins" && cp -r mutants/golden "$$at/mutants" && cp -r yaml "$$at/yaml" && cp -r custom "$$at/custom" && cp -r definitions/golden "$$at/definitions" \
		&& $(foreach minor,$(MINORS),$(call oracle_build,$(minor)) && $(call oracle_run,$(minor),"$$at","$$at/openapi","$$at/types","$$at/objects","$$at/rules","$$at/plugins","$$at/mutants","$$at/custom","$$at/definitions") \
		&& diff -r golden/$(minor) "$$at/golden/$(minor)" >&2 &&) diff -r ../../crates/cel/openapi "$$at/openapi" >&2 \
		&& diff -r ../../crates/apiserver/types "$$at/types" >&2 && diff -r objects/golden "$$at/objects" >&2 && diff -r rules/golden "$$at/rules" >&2 \
		&& diff -r plugins "$$at/plugins" >&2 && diff -r yaml "$$at/yaml" >&2 && diff -r mutants/golden "$$at/mutants" >&2 \
		&& diff -r custom "$$at/custom" >&2 && diff -r definitions/golden "$$at/definitions" >&2

.PHONY: standards
standards: ## Regenerate the verdicts of k8s.io/pod-security-admission on the pods of the catalogue's fixtures
	cargo xtask pods | cat tests/conformance/texts/pods.jsonl - \
		| (cd tests/conformance && go run ./texts) | gzip -n -9 > tests/conformance/texts/golden.jsonl.gz

COUNT ?= 5000
SEED ?= 1
OBJECTS ?=

.PHONY: agreement
agreement: ## Report the agreement of Palisade's CEL with the API server's, from the golden files
	cargo xtask agreement

.PHONY: spellings
spellings: oracle-program ## Compare with kubectl how objects in all spellings are read: COUNT=5000 SEED=1, OBJECTS=files and directories
	mkdir -p $(TARGET)/spellings
	cargo xtask spell --count $(COUNT) --seed $(SEED) $(OBJECTS) > $(TARGET)/spellings/texts.jsonl
	$(CACHE)/oracle/1.36 read < $(TARGET)/spellings/texts.jsonl > $(TARGET)/spellings/read.jsonl
	cargo xtask texts $(TARGET)/spellings/read.jsonl

# Ten thousand at a time, which bounds memory, and two of these at once.
.PHONY: fuzz-cel
fuzz-cel: oracle-program ## Compare both CEL implementations with random expressions: COUNT=5000 SEED=1
	rm -rf $(TARGET)/fuzz-cel && mkdir -p $(TARGET)/fuzz-cel
	$(CACHE)/oracle/1.36 -root tests/oracle generate $(SEED) $(COUNT) > $(TARGET)/fuzz-cel/requests.jsonl
	cd $(TARGET)/fuzz-cel && split --lines=10000 --numeric-suffixes requests.jsonl requests-
	ls $(TARGET)/fuzz-cel/requests-* | xargs -P 2 -I PART sh -c '$(CACHE)/oracle/1.36 -root tests/oracle answer < PART > PART.answered'
	cargo xtask agreement $(TARGET)/fuzz-cel/requests-*.answered

# Twenty objects of each of so many definitions.
.PHONY: fuzz-custom
fuzz-custom: oracle-program ## Compare both CEL implementations with random custom resources: COUNT=5000 definitions, SEED=1
	mkdir -p $(TARGET)/fuzz-custom
	$(CACHE)/oracle/1.36 custom $(SEED) $(COUNT) $(TARGET)/fuzz-custom/lines.jsonl.gz
	CUSTOM_RESOURCES=$(abspath $(TARGET))/fuzz-custom/lines.jsonl.gz cargo test -p palisade-apiserver --test offline -- customs::random --nocapture

SECONDS ?= 60
FUZZ_TARGETS ?= check evaluate schema review commands
# Where it begins: reviews of the webhook, or else expressions.
fuzz_words = $(TARGET)/fuzz-seeds/$$(test $$target = review && echo reviews || echo expressions)
# A command takes so long that reading thousands of seeds would leave no time to change them; its inputs are the seeds.
fuzz_seeds = $$(test $$target = commands || echo $(fuzz_words))
# What one input may take: a command compiles and checks a profile within it, and is too slow for inputs to grow bit by bit.
fuzz_limits = $$(test $$target = commands && echo -timeout=5 -rss_limit_mb=1024 -len_control=0 || echo -timeout=10 -rss_limit_mb=2048 -len_control=10)

# libFuzzer stops at a panic, at an input that takes longer than 10 seconds (5, of commands), and beyond 2 GiB (1). A find is kept in
# fuzz/artifacts; `make fuzz` again tries it first.
.PHONY: fuzz
fuzz: ## Run fuzz tests of parser, checker, evaluator, schemas, webhook and commands (needs nightly Rust): SECONDS=60 each
	@$(CARGO_FUZZ) --version 2>/dev/null | grep -qxF 'cargo-fuzz $(CARGO_FUZZ_VERSION)' \
		|| cargo install --locked cargo-fuzz@$(CARGO_FUZZ_VERSION) --root $(CACHE)/tools
	rm -rf $(TARGET)/fuzz-seeds && cargo xtask fuzz-seeds $(TARGET)/fuzz-seeds
	for target in $(FUZZ_TARGETS); do mkdir -p fuzz/corpus/$$target fuzz/artifacts/$$target \
		&& RUSTUP_TOOLCHAIN=nightly $(CARGO_FUZZ) fuzz run --sanitizer none --target-dir $(abspath $(TARGET))/fuzz $$target \
			fuzz/corpus/$$target $(fuzz_seeds) fuzz/artifacts/$$target -- -max_total_time=$(SECONDS) -max_len=10000 \
			$(fuzz_limits) -dict=$(fuzz_words).dict -print_final_stats=1 || exit 1; done

.PHONY: spec-cel
spec-cel: oracle-program ## Compare both CEL implementations with the tests of the CEL specification
	cd tests/oracle && $(CACHE)/oracle/1.36 celspec $(abspath $(TARGET))/celspec.jsonl
	cargo xtask agreement --specification $(TARGET)/celspec.jsonl

.PHONY: bench-cel
bench-cel: oracle-program ## Measure both CEL implementations with the same expressions
	cargo run --release --quiet -p xtask -- bench-cel --oracle $(CACHE)/oracle/1.36

.PHONY: oracle-program
oracle-program: export CGO_ENABLED = 0
oracle-program: export GOFLAGS += $(GO_BUILD)
oracle-program:
	cd tests/oracle && $(call oracle_build,1.36)

.PHONY: conformance
conformance: controlplane ## Run the suite of the Pod Security Standards (also part of `test`)
	cargo test --workspace --test conformance

.PHONY: bounds
bounds: controlplane ## Measure the cost of requests with the longest lists for the API server, with and without evaluation
	PALISADE_BOUNDS=all cargo test --workspace --test apiserver -- bounds:: --nocapture

.PHONY: redteam
redteam: controlplane ## Run all attacks of the tests on a real API server, and print the results; EMULATED=1.33 emulates an older one
	$(if $(EMULATED),PALISADE_REDTEAM_EMULATED=$(EMULATED)) PALISADE_REDTEAM=full cargo test --workspace --test redteam -- --nocapture

##@ Run

.PHONY: controlplane
controlplane: controlplane-program ## Build the control plane for tests and the demo
	$(TARGET)/debug/controlplane build

# By itself: it must not hold Cargo's lock while Go builds.
.PHONY: controlplane-program
controlplane-program:
	cargo build --quiet -p palisade-controlplane

.PHONY: demo
demo: ## Run the demo on a separate control plane: NAMESPACES=20, ONCE=1 to end automatically
	@echo 'Go builds the control plane and Cargo builds Palisade, side by side: some minutes the first time, then seconds.'
	@$(MAKE) --no-print-directory --jobs=2 demo-control-plane demo-binaries
	$(BIN)/palisade-demo --namespaces $(NAMESPACES) $(if $(ONCE),--once)

DEMO_BUILD = cargo build --profile $(PROFILE) -p palisade-controller -p palisade-controlplane -p palisade-demo

.PHONY: demo-control-plane
demo-control-plane: demo-control-plane-program
	$(BIN)/controlplane build

# First, and by itself: Go needs it, and it must not hold Cargo's lock while Go builds.
.PHONY: demo-control-plane-program
demo-control-plane-program:
	$(DEMO_BUILD) --bin controlplane

.PHONY: demo-binaries
demo-binaries: demo-control-plane-program
	$(DEMO_BUILD) --bins

.PHONY: bench
bench: controlplane peers ## Measure the cost of a request for the API server, with Palisade in several configurations and with other engines
	cargo build -p palisade-bench
	cargo build --release -p palisade-webhook
	$(TARGET)/debug/palisade-bench --webhook $(TARGET)/release/palisade-webhook --peers $(PEERS) --json docs/benchmarks.json --plot docs/benchmarks.svg

PEERS := $(CACHE)/peers

# What cannot be built here, the benchmark passes by and says so.
.PHONY: peers
peers: export CGO_ENABLED = 0
peers: export GOFLAGS += $(GO_BUILD)
peers: ## Build the other engines for `bench` from their modules
	@for peer in kyverno gatekeeper; do \
		$(MAKE) --no-print-directory peer-$$peer || echo "$$peer could not be built, and is not measured" >&2; done

# Beside the program are the definitions of its kinds, which are in its module.
.PHONY: peer-kyverno
peer-kyverno:
	cd tests/peers/kyverno && go build -ldflags '-s -w' -o $(PEERS)/kyverno/kyverno github.com/kyverno/kyverno/cmd/kyverno
	rm -rf $(PEERS)/kyverno/crds
	cp -r "$$(cd tests/peers/kyverno && go list -m -f '{{.Dir}}' github.com/kyverno/kyverno)/config/crds" $(PEERS)/kyverno/crds
	chmod -R u+w $(PEERS)/kyverno/crds

.PHONY: peer-gatekeeper
peer-gatekeeper:
	cd tests/peers/gatekeeper && go build -ldflags '-s -w' -o $(PEERS)/gatekeeper/gatekeeper github.com/open-policy-agent/gatekeeper/v3
	rm -rf $(PEERS)/gatekeeper/crds
	cp -r "$$(cd tests/peers/gatekeeper && go list -m -f '{{.Dir}}' github.com/open-policy-agent/gatekeeper/v3)/charts/gatekeeper/crds" $(PEERS)/gatekeeper/crds
	chmod -R u+w $(PEERS)/gatekeeper/crds

.PHONY: bench-smoke
# Of the programs and with the oracle that the tests have built.
bench-smoke: controlplane oracle-program ## Run short benchmarks, and fail if a compliant request, palisade eval or CEL exceeds its limit
	cargo build --workspace --bins --tests
	$(TARGET)/debug/palisade-bench --rounds 8 --requests 150 --only palisade,psa --check
	$(TARGET)/debug/palisade-demo --once --bench-eval $(TARGET)/debug/palisade
	$(TARGET)/debug/xtask bench-cel --oracle $(CACHE)/oracle/1.36

NAMESPACES_MEASURED ?= 10,100,1000,3500

.PHONY: bench-namespaces
bench-namespaces: controlplane ## Measure the cost of namespaces, with one profile and with one policy for each: NAMESPACES_MEASURED=10,100,1000,3500
	cargo build -p palisade-bench
	$(TARGET)/debug/palisade-bench --namespaces $(NAMESPACES_MEASURED)

.PHONY: bench-curves
bench-curves: controlplane ## Measure the cost of containers, profiles and edits
	cargo build -p palisade-bench
	$(TARGET)/debug/palisade-bench --containers 1,2,5,10,16,20 --profiles 1,2,5,10 --edits 10,1000,3500

.PHONY: bench-eval
bench-eval: PROFILE := release
bench-eval: ## Compare palisade eval with a control plane that is started for the requests
	cargo build --profile $(PROFILE) -p palisade-cli -p palisade-controller -p palisade-demo
	$(BIN)/palisade-demo --once --bench-eval $(BIN)/palisade

.PHONY: bench-webhook
bench-webhook: export CGO_ENABLED = 0
bench-webhook: export GOFLAGS += $(GO_BUILD)
bench-webhook: ## Compare the webhook with one on controller-runtime and with Kyverno, at 500 requests per second
	cargo build --release -p palisade-controller -p palisade-webhook -p palisade-demo
	cd tests/webhook-bench && go vet . && go build -o $(CACHE)/webhook-bench .
	cd tests/webhook-bench/kyverno && go vet . && go build -o $(CACHE)/webhook-bench-kyverno .
	$(TARGET)/release/palisade-demo --namespaces 3500 --once \
		--bench-webhook $(CACHE)/webhook-bench --bench-kyverno $(CACHE)/webhook-bench-kyverno

.PHONY: install
install: ## Install into the current cluster of kubectl
	kubectl apply --server-side -k crds
	kubectl wait --for=condition=Established --timeout=60s \
		crd/toolsecurityparams.toolsecurity.dev crd/toolsecurityprofiles.toolsecurity.dev
	kubectl apply --server-side -k manifests

.PHONY: uninstall
uninstall: ## Remove all profiles, then Palisade, from that cluster
	test -z "$$(kubectl get crd toolsecurityprofiles.toolsecurity.dev --ignore-not-found -o name)" \
		|| kubectl delete toolsecurityprofiles.toolsecurity.dev --all --timeout=120s
	kubectl delete --ignore-not-found -k manifests
