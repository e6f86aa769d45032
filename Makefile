# Duebook. `make` lists what there is to do; each target says so after its name.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
READY := $(VENV)/.duebook-ready
COMPILE := pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-header --no-emit-index-url

# The time zone data is the pinned package's, on every machine the same; never the system's.
export PYTHONTZPATH :=
# What the caller's shell has set up for another project stays out of ours.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
export PYTHONUTF8 := 1

.PHONY: help
help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- a working environment ------------------------------------------------------------------

.PHONY: setup
setup: $(READY) ## Make .venv with everything the locks name (again only when they changed)

$(READY): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
		echo "Duebook needs Python 3.11, 3.12 or 3.13; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
			"Name another with: make setup PYTHON=python3.12" >&2; exit 2; }
	@echo "Setting up $(VENV) (once; later only when requirements/dev.lock changes)"
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@awk '/^[a-z0-9]/ { wanted = /^uv==/ } wanted' requirements/dev.lock > $(VENV)/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
		--no-deps --require-hashes -r $(VENV)/uv.lock
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.lock
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: lock
lock: $(READY) ## Make requirements/*.lock again from pyproject.toml (UPGRADE=1: newest versions)
	$(UV) $(COMPILE) $(if $(UPGRADE),--upgrade) --group dev --output-file requirements/dev.lock
	$(UV) $(COMPILE) $(if $(UPGRADE),--upgrade) --extra celery --constraint requirements/dev.lock \
		--output-file requirements/runtime.lock

# ---- seeing it work -------------------------------------------------------------------------

.PHONY: demo
demo: $(READY) ## Two nights end to end on the real Airflow, then everything is stopped
	@$(BIN)/duebook demo

.PHONY: drill
drill: $(READY) ## An outage and the way back, in a database of its own; every key is compared
	@$(BIN)/duebook drill

.PHONY: up
up: $(READY) ## Start PostgreSQL and Airflow on loopback; prints the address and the login
	@$(BIN)/duebook up

.PHONY: down
down: $(READY) ## End what `make up` started
	@$(BIN)/duebook down

# ---- checking it ----------------------------------------------------------------------------

# Tests of a whole Airflow want both cores; the others run side by side. The checks run tests/tidy.
ALONE := tests/airflow tests/e2e

.PHONY: test
test: check ## The checks, then every test but the ones that take long
	@$(BIN)/python -m pytest -q -m "not prove" -n 2 --dist loadfile \
		--ignore tests/tidy $(ALONE:%=--ignore %) $(ARGS)
	@$(BIN)/python -m pytest -q -m "not prove" $(ALONE) $(ARGS)

.PHONY: prove
prove: check ## Everything: the checks, every test however long, every benchmark
	@$(BIN)/python -m pytest -q $(ARGS)
	@$(MAKE) bench-full

.PHONY: check
check: $(READY) ## Lint, format, types, layers, SQL, migrations, tidiness; a line each
	@BIN=$(BIN) .ci/check

.PHONY: audit
audit: $(READY) ## Known vulnerabilities of the pinned versions, and dist/sbom.json
	@BIN=$(BIN) .ci/audit

.PHONY: docs-check
docs-check: $(READY) ## Links, named targets, the dependency list and the glossary of the docs
	@$(BIN)/python -m pytest -q tests/tidy/test_docs.py

.PHONY: fmt
fmt: $(READY) ## Format Python and SQL in place
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .
	@$(BIN)/sqlfluff fix --quiet --processes 0 sql bench/sql

# ---- measuring it ---------------------------------------------------------------------------

.PHONY: bench
bench: $(READY) ## Every case at a size that takes minutes, beside its peers
	@$(BIN)/python -m bench $(ARGS)

.PHONY: bench-full
bench-full: $(READY) ## Every case at its stated size; writes bench/results.json
	@$(BIN)/python -m bench --full $(ARGS)

# ---- what is generated and committed --------------------------------------------------------

.PHONY: schema
schema: $(READY) ## Write sql/schema.sql again from the migrations
	@$(BIN)/python -m duebook.db.snapshot

.PHONY: dictionary
dictionary: $(READY) ## Write docs/data-dictionary.md again from the comments of the database
	@$(BIN)/python -m duebook.db.dictionary

.PHONY: examples
examples: $(READY) ## Run sql/examples/*.sql on a demo database and keep their output beside them
	@DUEBOOK_WRITE_EXAMPLES=1 $(BIN)/python -m pytest -q tests/sql/test_examples.py
