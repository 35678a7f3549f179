# `make` prints what there is. Everything below sets itself up: Python 3.11+ and Java 17 or 21 are all it takes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test lint types docs bench drill-all clean

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F '\t' '{printf "  make %-10s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "penstock needs Python 3.11 or later: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY) ## a real job, a real SIGKILL in mid-batch, every record counted
	$(BIN)/penstock demo

test: $(READY) lint ## all checks and tests
	$(BIN)/pytest

lint: $(READY) ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY) ## write the generated pages anew
	$(BIN)/python scripts/make_docs.py

bench: $(READY) ## ratios against hand-written PySpark, interleaved
	$(BIN)/python -m bench

drill-all: $(READY) ## only the drills: real processes, real signals
	$(BIN)/pytest -m drill tests

clean: ## remove the environment and everything that was made
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
