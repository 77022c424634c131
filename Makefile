# Everything runs inside the project's own .venv, made on first use from pyproject.toml.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint docs bench clean

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

test: lint
	$(BIN)/python -m pytest -n 2

# The site, offline, every example executed, warnings as errors: docs/_build/html/index.html
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	MPLBACKEND=Agg $(BIN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build/html

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet -e ".[peers]"
	$(BIN)/python benchmarks/overhead.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-output docs/_build docs/gallery docs/sg_execution_times.rst
