# make demo, test, test-all, check, serve, bench, clean. Every target sets up what it needs in .venv, from nothing.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.dev-ready

ifndef PYTHON
PYTHON := $(shell for name in python3.11 python3; do \
	$$name -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; \
	done)
endif

.PHONY: help demo test test-all check serve bench screenshots clean

help:
	@echo "make demo      plan two GPTs through the service, one of them captured from PyTorch, and print the plans"
	@echo "make serve     start the service on this machine"
	@echo "make test      run the tests; make test-all: the slow ones too"
	@echo "make check     run the linters and the type checker"
	@echo "make bench     measure how fast plans are proven"
	@echo "make screenshots  take those of the README from the running page"
	@echo "make clean     remove .venv and all caches"

demo: $(READY)
	@$(BIN)/python -m partita.service.demo

serve: $(READY)
	@$(BIN)/partita serve

test: $(DEV_READY)
	@$(BIN)/pytest -q -n auto --dist worksteal

test-all: $(DEV_READY)
	@$(BIN)/pytest -q -n auto --dist worksteal -m ""

check: $(DEV_READY)
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy --strict
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/codespell
	@if command -v tsc >/dev/null; then tsc --project tsconfig.json; \
		else echo "The scripts of the page are not checked: there is no tsc (on Debian: node-typescript)" >&2; fi

bench: $(READY)
	@$(BIN)/python benchmarks/run.py

screenshots: $(DEV_READY)
	@$(BIN)/python examples/make_screenshots.py

$(READY): pyproject.toml hatch_build.py
	@test -n "$(PYTHON)" || { echo "Partita needs Python 3.11 or newer with its venv module, as python3.11 or python3" \
		"(on Debian: apt-get install python3 python3-venv). Another name: make PYTHON=..." >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) (about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(DEV_READY): $(READY)
	@echo "Adding the tools for tests and checks ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	@rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .schemathesis \
		build dist htmlcov .coverage .coverage.* service/page/vega.js
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
