# Everything runs in .venv, which the first command makes. Needs Python 3.11-3.13 and make, nothing else.
#   make demo   train a classifier on real data and look at what was compiled
#   make test   the whole test suite
#   make check  ops, graphs, rules and plans alone, in a minute: for the loop of daily work
#   make lint   ruff and mypy
#   make docs   the documents as a site, in build/html: no network, and warnings are errors
PYTHON ?= python3
JOBS ?= auto
TESTS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Many tests start processes: none compiles Python's modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check lint docs clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/demo.stamp
	$(BIN)/python -m examples.mlp_digits --output demo-output

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TESTS)

check: $(VENV)/test.stamp
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not long" tests/ir tests/opt tests/codegen/plan \
		tests/whole/test_layering.py

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx -q -E -W --keep-going docs build/html
	@echo "open build/html/index.html"

clean:
	rm -rf $(VENV) .cache demo-output build .pytest_cache .mypy_cache .ruff_cache

$(VENV)/venv.stamp:
	@$(PYTHON) -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))" \
		|| { echo "symc needs Python 3.11 to 3.13; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# One stamp per extra: a second call only starts pip again when pyproject.toml changed.
$(VENV)/%.stamp: pyproject.toml $(VENV)/venv.stamp
	$(PIP) install --quiet --editable '.[$*]'
	@touch $@
