# The commands of everyday work; `make help` lists them. Each one installs what
# it needs first and says so. Where things are kept: scripts/env.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Arguments for the program that is run: make serve ARGS="--listen 0.0.0.0:8000"
ARGS ?=

# Where `make install` puts the program: make install PREFIX=/usr/local
PREFIX ?= $(HOME)/.local

# Names of ours that are no settings of the server.
AS_USER := env -u WEIR_PYTHON -u WEIR_SITE -u WEIR_TOOLS

.PHONY: help
help: ## This list
	@sed -n 's/^\([a-z-]*\):[ a-z]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

# What `serve` and `install` need.
.PHONY: release
release:
	@scripts/setup build
	@scripts/xtask build --release

.PHONY: serve
serve: release ## Build the release and run it at http://127.0.0.1:8000, data in ./data
	@source scripts/env; exec $(AS_USER) "$$CARGO_TARGET_DIR/release/weir" serve $(ARGS)

# The command of the program that is tried, and whether the release is built afterwards:
# make try RUN=demo RELEASE=yes
RUN ?= serve
RELEASE ?=

.PHONY: try
try: ## Run a program that is built quickly at http://127.0.0.1:8000, data in ./data
	@scripts/setup try
	@exec scripts/xtask try $(if $(RELEASE),--release) -- $(RUN) $(ARGS)

.PHONY: install
install: release ## Build the release and copy the program to PREFIX/bin (~/.local/bin)
	@source scripts/env; install -D -m 755 "$$CARGO_TARGET_DIR/release/weir" "$(PREFIX)/bin/weir"
	@echo "installed $(PREFIX)/bin/weir"

.PHONY: package
package: release ## Build the release, and make packages, an image and their checksums in dist
	@scripts/setup package
	@rm -rf dist
	@source scripts/env; scripts/package "$$CARGO_TARGET_DIR/release/weir" dist
	@echo "the files of the release are in dist"

.PHONY: dev
dev: ## Run a debug build; rebuild, restart and reload on every change
	@scripts/setup build
	@exec scripts/xtask dev -- $(ARGS)

.PHONY: test
test: ## Everything the project is checked with
	@exec scripts/test

.PHONY: check
check: ## The part without browsers and clients: format, lints, rules, Rust tests
	@exec scripts/test check

.PHONY: quick
quick: ## The same for the crates that do not need SurrealDB: two minutes
	@exec scripts/test quick

.PHONY: fuzz-api
fuzz-api: ## Many made-up requests to the API: make fuzz-api ARGS="--max-examples 500"
	@scripts/setup test
	@source scripts/env; cargo build --workspace --bin weir --locked
	@exec scripts/test-api fuzz $(or $(ARGS),--max-examples 200)

.PHONY: fmt
fmt: ## Format the Rust code
	@scripts/setup build
	@source scripts/env; cargo fmt --all

.PHONY: bench
bench: ## Measure the release build
	@exec scripts/bench $(ARGS)
