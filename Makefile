# Every command of the project. A fresh machine needs Python 3.11 or newer and make; each command that
# needs the environment makes it in .venv, from the hashed files in requirements/, and leaves it alone
# while pyproject.toml and those files are unchanged.

PYTHON ?= python3
PYTEST_WORKERS ?= 2
DATABASE ?= rota.db
HOST ?= 127.0.0.1
PORT ?= 8080

BIN := .venv/bin
STAMP := .venv/.installed
UV := $(BIN)/uv
UV_COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make pins"

.DEFAULT_GOAL := help
.PHONY: help demo up test check fast fix lint types imports bench pins docs

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP) ## run the guided demonstration on a database of its own
	$(BIN)/rota demo

up: $(STAMP) ## serve the API, dispatch and work in one process (DATABASE, HOST, PORT)
	$(BIN)/rota up --database $(DATABASE) --host $(HOST) --port $(PORT)

test: $(STAMP) ## run every test
	$(BIN)/pytest -n $(PYTEST_WORKERS)

fast: $(STAMP) ## run the tests that need no processes and no long searches
	$(BIN)/pytest -n $(PYTEST_WORKERS) -m "not slow"

check: lint types imports test ## lint, types, import rules and every test: what CI runs

lint: $(STAMP) ## report style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP) ## check types
	$(BIN)/mypy

# Its cache does not notice that a module has appeared which an unchanged file imports.
imports: $(STAMP) ## check which room may import which
	$(BIN)/lint-imports --no-logo --no-cache

fix: $(STAMP) ## repair style and formatting where that is safe
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(STAMP) ## measure speed, each figure beside a baseline of the same run
	$(BIN)/python -m bench

docs: $(STAMP) ## write again the pages that are generated: every docs/make_*.py writes its own
	@for script in $(wildcard docs/make_*.py); do echo "$$script"; $(BIN)/python "$$script" || exit 1; done

# UPGRADE=--upgrade takes the newest versions; without it a pin moves only when pyproject.toml demands it.
pins: $(STAMP) ## compile requirements/*.txt from pyproject.toml (UPGRADE=--upgrade for newer versions)
	$(UV_COMPILE) $(UPGRADE) requirements/uv.in --output-file requirements/uv.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml --all-extras --group dev --output-file requirements/dev.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml --constraint requirements/dev.txt \
	  --output-file requirements/runtime.txt

# An environment that lost its interpreter or was cut short is made anew. `uv pip sync` also removes what
# the files do not name, so the project itself is added after it; its build backend is one of the pins.
$(STAMP): pyproject.toml requirements/uv.txt requirements/dev.txt $(BIN)/python
	@$(BIN)/python -c 'import pip' 2>/dev/null || { \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Rota needs Python 3.11 or newer, and $(PYTHON) is not: name one with make PYTHON=python3.12" >&2; \
	    exit 1; }; \
	  echo "making .venv"; \
	  $(PYTHON) -m venv --clear .venv || { \
	    echo "$(PYTHON) cannot make environments: install its venv module (Debian: python3-venv)" >&2; \
	    exit 1; }; }
	@echo "installing the pinned packages into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

$(BIN)/python:
	@rm -f $(STAMP)
