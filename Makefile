# make run   installs and starts the proxy with the built-in demo upstream
# make test  installs what the tests need and runs lint, types and all tests
# make bench  measures it beside other gateways, about 20 minutes; bench-quick takes 3
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --omit-lockfile-registry-resolved --ignore-scripts \
	--no-audit --no-fund --no-update-notifier --loglevel=error

export CHROMIUM ?= /usr/bin/chromium
APT := DEBIAN_FRONTEND=noninteractive apt-get --quiet=2 --yes

.PHONY: help shells run test lint types pytest bench bench-quick lock clean

help:
	@sed -n 's/^# make/make/p' $(MAKEFILE_LIST)

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

# Node comes from PyPI with the development requirements; the npm programs that tests run are installed once.
# Not `npm ci`: it refuses a lock that was made where a registry serves the packages of one platform only.
.node/.installed: $(VENV)/.installed-dev tests/npm/package.json tests/npm/package-lock.json
	@mkdir -p .node
	@cp tests/npm/package.json tests/npm/package-lock.json .node/
	cd .node && $(NPM) install
	@touch $@

# The dashboard is tested in the browser that Debian has; set CHROMIUM to use another.
$(CHROMIUM):
	@command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] || { echo "The tests of the dashboard need $(CHROMIUM). Install it, such as with: sudo apt-get install chromium" >&2; exit 1; }
	$(APT) install --no-install-recommends chromium || { $(APT) update && $(APT) install --no-install-recommends chromium; }

# Completion is tested in the shells that are there, so these are fetched where that can be done without asking.
shells:
	@for shell in zsh fish; do command -v $$shell >/dev/null || [ "$$(id -u)" != 0 ] || { $(APT) install --no-install-recommends $$shell || { $(APT) update && $(APT) install --no-install-recommends $$shell; }; } || echo "$$shell could not be installed; its completion is not tested"; done

run: $(VENV)/.installed
	@$(BIN)/mcpproxy serve --demo

test: lint types pytest

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# Real processes, browsers and databases run side by side here: what fails in the crowd is asked once more, alone.
pytest: $(VENV)/.installed-dev .node/.installed $(CHROMIUM) shells
	$(BIN)/pytest -n $(JOBS) --dist loadgroup || $(BIN)/pytest --last-failed --last-failed-no-failures none

# The other gateways are installed below .bench, each into an environment of its own.
bench bench-quick: $(VENV)/.installed-dev
	$(BIN)/python -m bench.calls $(if $(findstring quick,$@),--quick)

# Pin every dependency again (needs uv on the PATH or in the environment).
lock: $(VENV)/.installed-dev
	uv pip compile --quiet --universal --no-header --no-emit-index-url --python-version 3.11 pyproject.toml -o requirements.txt
	uv pip compile --quiet --universal --no-header --no-emit-index-url --python-version 3.11 --extra dev -c requirements.txt pyproject.toml -o requirements-dev.txt
	cd tests/npm && $(NPM) install --package-lock-only

clean:
	rm -rf $(VENV) .node .bench .mypy_cache .ruff_cache .pytest_cache
