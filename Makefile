PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PEERS := build/peers
RESULT := $(if $(QUICK),build/bench.json,benchmarks/results/bench_cpu.json)
unexport PYTHONDONTWRITEBYTECODE  # the many processes of a check would each compile every module anew
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

.PHONY: install demo docs static check test tests test-all bench format lock clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "aetdice needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: install
	$(BIN)/aetdice demo --out demo

docs: install  # the site, in build/docs/index.html; a warning, such as a lost link, is an error
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs 2 --quiet docs build/docs

static: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

check: static
	HYPOTHESIS_PROFILE=check $(PYTEST) -m "not slow and not trains" tests/contracts

test: install  # the static checks run beside the tests' imports, on a core that would wait
	@$(MAKE) --no-print-directory --jobs 2 static tests

tests: install
	$(PYTEST) -m "not slow"

test-all: static
	$(PYTEST)

bench: install  # QUICK=1: two minutes. d3rlpy is measured beside us where it installs
	-test -e $(PEERS)/.installed || { $(PYTHON) -m venv $(PEERS) && $(PEERS)/bin/python -m pip install --quiet \
		--extra-index-url https://download.pytorch.org/whl/cpu d3rlpy && touch $(PEERS)/.installed; }
	$(BIN)/python benchmarks/bench.py --peer $(PEERS)/bin/python $(if $(QUICK),--quick) --out $(RESULT)
	$(if $(QUICK),,$(BIN)/python docs/figures/speed.py)

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: install
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 --extra dev \
		--no-header --no-annotate --no-emit-index-url --output-file constraints.txt pyproject.toml

clean:
	rm -rf .venv demo
