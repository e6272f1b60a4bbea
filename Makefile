# One command for each thing. Everything is installed in .venv; only Chromium comes from the system.
#
#   make train    set up, then train with the defaults (ARGS="..." is handed to `visenv train`)
#   make test     set up, then all checks
#   make          what there is

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH_INDEX ?=
ARGS ?=

# Paths below are relative, so a clone may lie in a folder with spaces in its name.
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq --constraint constraints/cpu.txt
CODE := visenv envs policies algos tests examples benchmarks

.PHONY: help .venv train test checks lint imports type pytest coverage format bench chromium hooks clean distclean

help:
	@echo 'make train      set up, then train with the defaults; ARGS="..." is handed to visenv train'
	@echo 'make test       set up (Chromium too), then lint, types, imports and tests'
	@echo 'make .venv      set up only; TORCH_INDEX=<address> names another index for PyTorch'
	@echo 'make lint       ruff: rules and format'
	@echo 'make type       mypy'
	@echo 'make imports    import-linter: who may import whom'
	@echo 'make pytest     the tests; ARGS="..." is handed to pytest'
	@echo 'make coverage   the tests, with a table of the lines they miss'
	@echo 'make format     mend what ruff can mend'
	@echo 'make bench      run every file of benchmarks/'
	@echo 'make hooks      run lint, types and imports before each commit'
	@echo 'make clean      remove caches and build results; distclean removes .venv too'

# ---------------------------------------------------------------------------------------------------- set-up
# Each step leaves a stamp in .venv and runs again only when what it depends on has changed.

.venv: .venv/.packages

.venv/.python:
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	    echo 'visenv needs Python 3.11 or newer; found: "$(PYTHON)". Name one: make .venv PYTHON=/path/to/python3.11' >&2; exit 1; fi
	@if ! "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo '"$(PYTHON)" cannot make virtual environments: on Debian install python3.11-venv, or name another: make .venv PYTHON=...' >&2; exit 1; fi
	@if [ ! -x $(BIN)/python ]; then echo 'making .venv'; "$(PYTHON)" -m venv .venv; fi
	@touch $@

# PyTorch comes alone, so that the index it is taken from serves nothing else; the next step brings what it needs.
.venv/.torch: constraints/cpu.txt | .venv/.python
	@echo 'installing PyTorch'
	@$(PIP) --no-deps $(if $(TORCH_INDEX),--index-url "$(TORCH_INDEX)") torch
	@touch $@

.venv/.packages: .venv/.torch pyproject.toml
	@echo 'installing visenv and what it is tested with'
	@$(PIP) --editable '.[train,data,documents,dev]'
	@touch $@

# The one thing outside .venv. conftest.py looks for the same names.
chromium:
	@if command -v chromium google-chrome >/dev/null; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then sudo=none; \
	elif [ "$$(id -u)" = 0 ]; then sudo=; \
	elif sudo -n true 2>/dev/null; then sudo='sudo -n'; \
	else sudo=none; fi; \
	if [ "$$sudo" != none ]; then \
	    echo 'installing Chromium'; export DEBIAN_FRONTEND=noninteractive; \
	    if $$sudo apt-get update -qq && $$sudo apt-get install -y -qq --no-install-recommends chromium; then exit 0; fi; fi; \
	echo 'Chromium is missing and could not be installed: the tests of pages will be skipped, and fail where CI=true.' >&2; \
	echo 'Install it with the package manager of your system (Debian: sudo apt-get install chromium).' >&2

# ------------------------------------------------------------------------------------------------ the main job

train: .venv
	$(BIN)/visenv train $(ARGS)

# ------------------------------------------------------------------------------------------------------ checks
# In this order: what is quick and what is most often wrong comes first.

test: .venv chromium
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory type
	@$(MAKE) --no-print-directory imports
	@$(MAKE) --no-print-directory pytest

lint: .venv
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

type: .venv
	$(BIN)/mypy

imports: .venv
	$(BIN)/lint-imports

pytest: .venv
	$(BIN)/python -m pytest $(ARGS)

coverage: .venv
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage report

format: .venv
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: .venv
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

hooks: .venv
	$(BIN)/pre-commit install

clean:
	rm -rf build dist htmlcov .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv
