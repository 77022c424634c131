# Everything runs inside the project's own .venv, made on first use from pyproject.toml.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint compiled coverage wheel docs bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e ".[test]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/pzos demo --out demo-output

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Kernels once, ahead of the tests and beside the linters, and not by both processes of the tests.
compiled: $(STAMP)
	$(BIN)/pzos doctor --compile > /dev/null

test: $(STAMP)
	$(MAKE) --jobs=2 --output-sync lint compiled
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Line and branch coverage by room; compiled kernels count where tests run them with NUMBA_DISABLE_JIT=1.
coverage: $(STAMP)
	rm -rf build/coverage && mkdir -p build/coverage
	COVERAGE_FILE=$(CURDIR)/build/coverage/data $(BIN)/python -m pytest -n 2 --cov --cov-report=
	COVERAGE_FILE=$(CURDIR)/build/coverage/data $(BIN)/python -m coverage json -q -o build/coverage/report.json
	$(BIN)/python tests/coverage_by_room.py build/coverage/report.json

# The wheel, built, installed into an empty environment, and tried there on the quick tests.
QUICK := tests/test_import.py tests/base tests/problem tests/study tests/methods/test_smoothing.py tests/cli/test_main.py
wheel: $(STAMP)
	rm -rf dist build/wheel
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --quiet --outdir dist
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet dist/*.whl pytest hypothesis
	build/wheel/bin/python -m pytest -p no:cacheprovider $(QUICK)
	build/wheel/bin/pzos --version

# The site, offline, every example executed, warnings as errors: docs/_build/html/index.html
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	MPLBACKEND=Agg $(BIN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build/html

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet -e ".[peers]"
	$(BIN)/python benchmarks/overhead.py

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-output docs/_build docs/gallery docs/sg_execution_times.rst
