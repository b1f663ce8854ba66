# Two commands are enough: `make demo` and `make test`. Both do all set-up; a second call is quick.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV    := .venv
BIN     := $(VENV)/bin
HOST    := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
RUST    := Cargo.toml Cargo.lock $(shell find engine ports netns bridge traffic init -name '*.rs' -o -name Cargo.toml 2>/dev/null)
OUT     ?= out
BENCH   ?= all

.PHONY: help setup demo test test-rust test-python bench lint docs packages kernel clean

help: ## Show what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(BIN)/airloom-init ## Install everything; leaves the command at .venv/bin/airloom
	@$(BIN)/airloom --version

packages: ## Install the system packages that are missing
	@tools/packages setup

$(VENV)/.packages: tools/packages
	@tools/packages setup
	@mkdir -p $(VENV) && touch $@

$(VENV)/.python: requirements.lock $(VENV)/.packages
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $@

$(VENV)/.engine: $(RUST) pyproject.toml $(VENV)/.python
	VIRTUAL_ENV=$(abspath $(VENV)) PIP_QUIET=1 $(BIN)/maturin develop --release --locked --quiet
	@touch $@

# The programs that run inside nodes are static, so that they run under any root file system.
$(BIN)/airloom-init: $(VENV)/.engine
	RUSTFLAGS="-C target-feature=+crt-static -C strip=symbols" cargo build --release --locked --quiet \
	  --target $(HOST) --target-dir target/static -p airloom-init -p airloom-traffic
	install -t $(BIN) target/static/$(HOST)/release/airloom-traffic
	install -t $(BIN) target/static/$(HOST)/release/airloom-init

kernel: ## Build a guest kernel for nodes of kind uml, with more than the distribution's: minutes (docs/kinds.md)
	kernel/build

demo: setup ## A chain of routers with real ping and iperf3, a table, a verdict and an HTML report
	rm -rf $(OUT)/demo
	$(BIN)/airloom run examples/chain.yaml --out $(OUT)/demo
	$(BIN)/airloom report $(OUT)/demo

test: test-rust test-python ## Run the whole test suite

test-rust: setup
	@tools/packages test
	cargo test --workspace --locked

# What tests and examples use beside what the laboratory needs.
$(VENV)/.sdn: sdn.lock $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r sdn.lock
	@touch $@

test-python: setup $(VENV)/.sdn
	@tools/packages test
	@# Tests of the real world share the machine with whatever else it does: one that failed has one more try, alone.
	$(BIN)/python -m pytest || $(BIN)/python -m pytest --last-failed --last-failed-no-failures none

bench: setup ## Run the benchmarks (BENCH=name for one) and print their ratios
	$(BIN)/airloom bench $(BENCH)

lint: setup ## Check format, lints and types of all languages
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd python && ../$(BIN)/lint-imports --config ../pyproject.toml

docs: setup ## Write the parts of docs/ that are generated
	$(BIN)/python -m airloom.cli.scenario_reference > docs/scenario.md
	$(BIN)/python -m airloom.cli.kinds_reference docs/kinds.md
	$(BIN)/python -m airloom.cli.api_reference > docs/guide/python.md

clean: ## Remove everything that was built
	rm -rf $(VENV) target $(OUT) fuzz/target
