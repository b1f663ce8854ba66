# Two commands are enough: `make demo` and `make test`. Both do all set-up; a second call is quick.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV    := .venv
BIN     := $(VENV)/bin
# Empty: install a copy, which writes nothing into the folder of the sources.
EDITABLE ?= --editable
CRATES  := $(filter-out fuzz/,$(dir $(wildcard */Cargo.toml)))
RUST    := Cargo.toml Cargo.lock $(shell find $(CRATES) -name '*.rs' -o -name Cargo.toml)
PACK    := PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/build_backend.py
# Processes for tests that run side by side; most of them wait.
JOBS    ?= $(shell echo $$((4 * $$(nproc))))
# Tests of one module that share a laboratory stay in one process; tests/conftest.py says what starts first.
BESIDE   = -n $(JOBS) --dist loadgroup --no-loadscope-reorder
TEST_PACKAGES = $(VENV)/.sdn $(VENV)/.faucet $(VENV)/.notebooks $(VENV)/.browser
OUT     ?= out
BENCH   ?= all
SUITES  ?= bookworm trixie
# Options of tools/screenshots/make.
PICTURES ?=
# The commit since which `make try-tests` looks for changed tests.
SINCE   ?= HEAD

# Without compiled modules every start of the command, and of each process of tests, takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-quick try-tests test-mininet bench lint docs packages
.PHONY: kernel test-kernel screenshots site wheel sdist man try-wheel try-sdist release-check clean

help: ## Show what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(BIN)/airloom-init ## Install everything; leaves the command at .venv/bin/airloom
	@$(BIN)/airloom --version

packages: ## Install the system packages that the build needs and this machine lacks
	@tools/packages setup

$(VENV)/.packages: tools/packages
	@tools/packages setup
	@mkdir -p $(VENV) && touch $@

$(VENV)/.python: requirements.lock $(VENV)/.packages
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $@

$(VENV)/.engine: $(RUST) pyproject.toml $(VENV)/.python
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  --no-build-isolation --config-settings=build-args=--locked $(EDITABLE) .
	@touch $@

$(BIN)/airloom-init: $(VENV)/.engine tools/build_backend.py
	$(PACK) programs $(BIN)

kernel: ## Build the guest kernel for nodes of kind uml, unless it is built already: minutes (docs/guide/kinds.md)
	kernel/build

demo: setup ## A chain of routers with real ping and iperf3, a table, a verdict and an HTML report
	@tools/packages demo
	rm -rf $(OUT)/demo
	$(BIN)/airloom run examples/chain.yaml --out $(OUT)/demo
	$(BIN)/airloom report $(OUT)/demo

# STRICT=1: many flaky or inconclusive tests are a failure, and not only a warning.
test: setup test-kernel $(TEST_PACKAGES) ## Run the whole test suite
	cargo test --workspace --locked --no-run
	@tools/packages test
	$(BIN)/python tools/run-tests --jobs $(JOBS) --log "$(or $(CARGO_TARGET_DIR),target)/tests.log"

# For new tests, before they are committed: each 20 times, 10 of them beside busy loops.
try-tests: setup test-kernel $(TEST_PACKAGES) ## Run each test that changed since a commit (SINCE=...) 20 times
	cargo test --workspace --locked --no-run --quiet
	$(BIN)/python tools/try-tests $(SINCE)

# Exit code 3: something is missing that this user cannot install. Tests that need the kernel say so.
test-kernel:
	@[ -n "$${AIRLOOM_TEST_KERNEL:-}" ] || kernel/build || [ $$? -eq 3 ]

# What tests and examples use beside what the laboratory needs.
$(VENV)/.sdn: sdn.lock $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r sdn.lock oml4py==2.10.4
	@touch $@

$(VENV)/.notebooks: notebooks.lock $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r notebooks.lock
	@touch $@

$(VENV)/.grid: grid.lock $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r grid.lock
	@touch $@

$(VENV)/.web: web.lock $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r web.lock
	@touch $@

# An OpenFlow controller for tests/world/test_faucet.py. It needs another release of os-ken.
$(VENV)/.faucet: faucet.lock $(VENV)/.python
	$(BIN)/python -m venv $(VENV)/faucet
	$(VENV)/faucet/bin/python -m pip install --quiet --disable-pip-version-check -r faucet.lock
	@touch $@

# Playwright drives Debian's Chromium in tests of the web pages.
$(VENV)/.browser: $(VENV)/.grid $(VENV)/.web
	$(BIN)/python -m pip install --quiet --disable-pip-version-check playwright==1.65.2
	@touch $@

# pexpect drives the prompt. Exit code 3 of the tool: there is no network.
test-mininet: setup ## Run Mininet's own tests, from Debian's source package, on Airloom
	@tools/packages test-mininet
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pexpect==4.9.0 ptyprocess==0.7.0
	folder="$$(tools/mininet-tests)"; \
	  AIRLOOM_TEST_MININET="$$folder" $(BIN)/python tools/run-tests -- tests/world/test_mininet_suite.py

# Each process imports all tests, which takes a tenth of the processor time of the quick ones.
test-quick: JOBS := $(shell echo $$((1 + $$(nproc))))
test-quick: setup $(VENV)/.grid $(VENV)/.web ## Run the quick tests, and one of each kind of world: at most a minute
	$(BIN)/python tools/run-tests -- -q $(BESIDE) -m "quick and not measures"

bench: setup ## Run the benchmarks (BENCH=name for one) and print their ratios
	@tools/packages bench
	$(BIN)/airloom bench $(BENCH)

lint: setup $(VENV)/.grid $(VENV)/.web ## Check format, lints and types of all languages
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd python && ../$(BIN)/lint-imports --config ../pyproject.toml

docs: setup ## Write the parts of docs/ that are generated
	$(BIN)/python -m airloom.cli.scenario_reference > docs/guide/scenario.md
	$(BIN)/python -m airloom.cli.kinds_reference docs/guide/kinds.md
	$(BIN)/python -m airloom.cli.api_reference > docs/guide/python.md

$(VENV)/site: site.lock $(VENV)/.packages
	python3 -m venv $@
	$@/bin/python -m pip install --quiet --disable-pip-version-check -r site.lock
	@touch $@

site: $(VENV)/site ## Make the documentation as a site in out/site, and check its links
	NO_MKDOCS_2_WARNING=1 $(VENV)/site/bin/mkdocs build --strict --quiet
	@echo "made out/site; to read and search it: python3 -m http.server --directory out/site"

screenshots: setup ## Make the pictures of reports in docs/pictures from real runs; needs chromium
	@tools/packages screenshots
	$(BIN)/python tools/screenshots/make $(PICTURES)

wheel: $(VENV)/.python ## Pack dist/airloom-*.whl, which needs no compiler where it is installed
	@tools/packages wheel
	@rm -f dist/airloom-*.whl
	$(PACK) wheel dist

sdist: $(VENV)/.python ## Pack the source distribution dist/airloom-*.tar.gz
	@rm -f dist/airloom-*.tar.gz
	$(PACK) sdist dist

man: $(VENV)/.python ## Write the manual page dist/airloom.1
	$(PACK) man dist

try-wheel: wheel ## Install the wheel in Debian systems without a compiler (SUITES=...) and use it there
	tools/try-wheel dist/airloom-*.whl $(SUITES)

# Without optimization: what counts is that nothing is missing.
try-sdist: sdist ## Build a wheel from the source distribution
	rm -rf target/try-sdist
	CARGO_TARGET_DIR="$(CURDIR)/target/sdist" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
	  CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
	  $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir target/try-sdist dist/airloom-*.tar.gz
	@ls target/try-sdist/airloom-*.whl

release-check: ## What a release must pass: all that CI runs, without allowances for a busy machine
	$(MAKE) lint site
	STRICT=1 $(MAKE) test test-mininet
	$(MAKE) screenshots PICTURES="--any-verdict --to out/pictures"
	$(MAKE) try-wheel try-sdist

clean: ## Remove everything that was built
	rm -rf $(VENV) target $(OUT) dist fuzz/target
