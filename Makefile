# setup · demo · test · gpu · lint. Each does the set-up first, once, and again when pyproject.toml changes.
# Variables: PYTHON (3.11 or newer), PIP_FLAGS (added to every pip install), TESTS (what to test),
# JOBS (test files at a time, one for each core: each has a judge and an evaluator of its own).

PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3,$(shell command -v $(p))))
PIP_FLAGS ?=
TESTS ?= tests
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PREPARED := $(VENV)/.prepared
BUILT := $(VENV)/.built
# The one list is pyproject.toml's.
LIST_BUILD_REQUIREMENTS := 'import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")'
# What has to be compiled or generated; Python files are used where they are.
COMPILED := CMakeLists.txt $(shell find native protos -name '*.cpp' -o -name '*.hpp' -o -name '*.inc' \
	-o -name '*.proto' -o -name CMakeLists.txt)
# The prelude is device code in an order of its own.
CPP := $(wildcard native/src/*.[ch]pp native/bindings/*.[ch]pp kernel_foundry/sdk/export/cpp/*.hpp \
         native/python/kernel_foundry_native/include/*/kf/*.hpp)

# A line for each package as it comes, with its size; the rest of what pip says is for whoever asks.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
SHOW := sed -u -n -e 's/^ *\(Downloading .*\)/      \1/p' -e 's/^ *\(Building .*\)/      \1/p' \
	-e 's/^ *\(Installing [^:]*\).*/      \1/p' -e '/ERROR/p'
TOOK = echo "      done in $$((SECONDS / 60)) min $$((SECONDS % 60)) s, $$(du -sh $(VENV) | cut -f1) in $(VENV)"

.PHONY: help setup demo test gpu lint format clean
.DEFAULT_GOAL := help

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

setup: $(BUILT) ## Create .venv, install everything, build the native code

$(PREPARED): pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=...")'
	@test -x $(BIN)/python || { echo "[1/3] virtual environment in $(VENV)"; "$(PYTHON)" -m venv $(VENV); }
	@echo "[2/3] what the build needs (about 0.3 GB)"
	@$(BIN)/python -c $(LIST_BUILD_REQUIREMENTS) > $(VENV)/build-requirements.txt
	@$(PIP) install $(PIP_FLAGS) "cmake>=3.25" ninja -r $(VENV)/build-requirements.txt | $(SHOW) && $(TOOK)
	@touch $@

# pip finds what is there already in a few seconds, and ninja compiles only what changed.
$(BUILT): $(PREPARED) $(COMPILED)
	@echo "[3/3] Kernel Foundry and what it needs (the first time a few minutes; see README for sizes)"
	@$(PIP) install $(PIP_FLAGS) --no-build-isolation -e '.[sycl,cuda,dev]' | $(SHOW) && $(TOOK)
	@# Processes start often, and locked ones may write nothing: pip does this for what it copies.
	@$(BIN)/python -m compileall -q archive_svc evaluator_svc generator_svc kernel_foundry \
		native/python/kernel_foundry_native
	@touch $@

# The three services run in processes of their own here, as they do on several machines.
demo: $(BUILT) ## Optimise a real operator on this machine's CPU, through the three services
	@echo "24 evaluations or five minutes of search; starting services and timing PyTorch come before that"
	$(BIN)/kfoundry optimize examples/demo.py --evaluations 24 --minutes 5 \
		--evaluator spawn --archive spawn --generator spawn

# Bytecode is kept whatever the environment says: some hundred processes read it. And threads of
# OpenMP that wait for each other sleep, as they share the cores with those of other tests.
test: $(BUILT) ## Run the tests (TESTS=tests/native for a part of them)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/python -m pytest --numprocesses=$(JOBS) --dist=loadfile --no-loadscope-reorder $(TESTS)

gpu: $(BUILT) ## Run the tests that need an NVIDIA GPU; fails where there is none
	$(BIN)/python -m pytest -m gpu --require-gpu $(TESTS)

lint: $(BUILT) ## Check format, style, types, imports, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/codespell

format: $(BUILT) ## Format Python and C++
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

clean: ## Remove what was built (not .venv)
	rm -rf build dist kernel_foundry/*/v1/*_pb2*.py kernel_foundry/*/v1/*_pb2*.pyi
