# make run   installs and starts the proxy with the built-in demo upstream
# make test  installs what the tests need and runs lint, types and all tests
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: help run test lint types pytest lock clean

help:
	@sed -n 's/^# //p' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "mcpproxy needs Python 3.11 or later; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python requirements.txt pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

run: $(VENV)/.installed
	@$(BIN)/mcpproxy serve --demo

test: lint types pytest

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

pytest: $(VENV)/.installed-dev
	$(BIN)/pytest -n $(JOBS)

# Pin every dependency again (needs uv on the PATH or in the environment).
lock: $(BIN)/python
	uv pip compile --quiet --universal --no-header --no-emit-index-url --python-version 3.11 pyproject.toml -o requirements.txt
	uv pip compile --quiet --universal --no-header --no-emit-index-url --python-version 3.11 --extra dev -c requirements.txt pyproject.toml -o requirements-dev.txt

clean:
	rm -rf $(VENV) .node .mypy_cache .ruff_cache .pytest_cache
