# Every command sets up what it needs: a virtual environment in .venv, installed anew when pyproject.toml changes.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The first interpreter that is new enough; `make test PYTHON=python3.12` chooses another one.
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(shell \
	$(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))
GPU := $(shell { nvidia-smi -L || test -e /proc/driver/nvidia/version; } >/dev/null 2>&1 && echo yes)
EXTRAS := dev$(if $(GPU),$(comma)cuda13)
comma := ,

VENV ?= .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))
WORKERS ?= 2
# Tests start many processes, each of which would compile all of Fuseline's sources again
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(PY) -m pytest -q -n $(WORKERS) --dist worksteal --timeout 300 --timeout-method thread
SUITE ?= tpch
SF ?= 1
ENGINES ?= fuseline,duckdb
REPEAT ?= 3
OUT ?= out

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Python compiles what is imported: all 15,000 files of the libraries would take a minute.
$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Fuseline needs Python 3.11 or newer; none was found." >&2; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[$(EXTRAS)]'
	@touch $@

.PHONY: install
install: $(READY) ## the virtual environment, with the cuda13 extra where there is a GPU

.PHONY: test
test: $(READY) ## all tests
	$(PYTEST) $(ARGS)

.PHONY: nightly
nightly: $(READY) ## tests that take minutes, draw new seeds, or measure time
	$(PYTEST) -m nightly --timeout 3600 $(ARGS)
	$(MAKE) lowest

# Another package may pin any version of a library that pyproject.toml allows, so the oldest of all are tried at once, on the oldest
# Python.  What they warn of, beside newer libraries that they bring, is not for us to mend.
LOWEST := $(VENV)/lowest
LOWEST_TESTS := $(addprefix tests/,$(addprefix test_,cli.py db_api.py docs.py doctests.py first_steps.py formats.py random_cases.py requirements.py) \
	file_tables interop lakes operators/test_nested_values.py operators/test_map_entries.py plan/test_nested_buffers.py storage/remote types)
$(LOWEST)/.installed: pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check uv
	$(PY) -m uv venv --quiet --clear --python 3.11 $(LOWEST)
	$(PY) -m uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[dev]'
	@touch $@

.PHONY: lowest
lowest: $(READY) $(LOWEST)/.installed ## tests with the oldest version of each library that pyproject.toml allows, in an environment of their own
	$(LOWEST)/bin/python -m pytest -q -n $(WORKERS) --dist worksteal --timeout 300 --timeout-method thread \
		-W ignore::DeprecationWarning $(LOWEST_TESTS) $(ARGS)

.PHONY: foreign
foreign: $(READY) ## the tests of Narwhals or Ibis, in a checkout or sdist of it, with Fuseline as the backend: DIR=... (TESTS="a file of it")
	$(PY) -m tests.foreign $(DIR) $(TESTS)

.PHONY: bench
bench: $(READY) ## a suite on Fuseline and DuckDB, the 22 TPC-H queries: SUITE=tpch (or tpcds, ssb, adhoc, random, clickbench, h2o) SF=1 ENGINES=fuseline,duckdb REPEAT=3 OUT=out
	$(PY) -m benchmarks.run $(SUITE) --sf $(SF) --engines $(ENGINES) --repeat $(REPEAT) \
		--json $(OUT)/$(SUITE)-sf$(SF).json --chart $(OUT)/$(SUITE)-sf$(SF).png

.PHONY: check
check: lint types layout test-wheel ## what CI runs besides the tests

.PHONY: lint
lint: $(READY) ## ruff: rules and format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

.PHONY: format
format: $(READY) ## let ruff mend what it can
	$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .

# The folders are not called as the packages are, so type checkers look at a folder of links.
.PHONY: links
links:
	@rm -rf .typing && mkdir -p .typing/fuseline
	@for entry in engine/*; do ln -s "../../$$entry" .typing/fuseline/; done
	@ln -s ../../sql .typing/fuseline/sql

.PHONY: types
types: $(READY) links ## mypy --strict
	$(PY) -m mypy

.PHONY: layout
layout: $(READY) ## the floors, sizes and names that the house rules ask for
	$(PY) -m pytest -q tests/test_layout.py

.PHONY: goldens
goldens: $(READY) ## write the golden files anew; read the difference before committing it
	$(PYTEST) --rewrite-goldens $(ARGS)

.PHONY: kernels
kernels: $(READY) ## how generated kernels differ from those that are stored; then `make kernels ARGS=--accept`
	$(PY) -m tests.kernel_replay --diff 5 $(ARGS)

.PHONY: wheel
wheel: $(READY) ## the wheel and the source archive, in dist/
	rm -rf build dist
	$(PY) -m build --quiet

# Python looks along PYTHONPATH before it asks an editable install, so the tests meet the wheel.  Its files are compared with the
# tree's one by one; beyond that a query of each feature, the examples and the command line are enough to find one that is amiss.
WHEEL_TESTS := $(addprefix tests/test_,layout.py doctests.py cli.py frame.py statements.py reading.py tpch.py)
.PHONY: test-wheel
test-wheel: wheel ## the installed wheel: all files there, and the tests of what users see
	$(PY) -m pip install --quiet --no-deps --target build/installed dist/*.whl
	PYTHONPATH=build/installed FUSELINE_TEST_INSTALLED=build/installed \
		$(PYTEST) $(WHEEL_TESTS) $(ARGS)

.PHONY: test-both
test-both: test-wheel ## all tests once: those of test-wheel on the wheel, the others on the tree
	$(PYTEST) $(addprefix --ignore=,$(WHEEL_TESTS)) $(ARGS)

.PHONY: docs
docs: $(READY) ## the documentation as a site, in build/site; a link that leads nowhere is an error
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(PY) -m mkdocs build --quiet

.PHONY: release
release: test-wheel ## wheel and source archive, checked and tested, for `twine upload`, which this does not call
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	$(PY) -m twine check --strict dist/*
	$(PY) -m release.check_release

.PHONY: clean
clean: ## remove what was built; keeps .venv and data
	rm -rf build dist out .typing .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
