# Everything a person or CI does, by name. `make help` lists it.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CLIP   ?= tests/data/clips/demo.mp4
BENCH  ?= overhead

.DEFAULT_GOAL := help
.PHONY: help setup demo test slow check format bench up down clean

help:  ## Show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(STAMP)  ## Make .venv and install the pinned packages

$(STAMP): pyproject.toml constraints.txt
	@echo "==> environment: $(VENV) (Python 3.11; a few minutes the first time)"
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed; name another with PYTHON=..."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "==> packages: pinned by constraints.txt"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip setuptools
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[dev]' 2>&1 | { grep -v 'neither a file nor a directory' || true; }
	@$(BIN)/python -c 'import importlib.metadata as m; m.version("reelgraph"); m.version("ruff")'
	@touch $@

demo: setup  ## Start the embedded stack, process a real clip, show facts, a causal chain and SQL
	@echo "==> stack"
	@$(BIN)/reelgraph up
	@echo "==> process $(CLIP) by the real flow"
	@$(BIN)/reelgraph run $(CLIP)
	@echo "==> what is known of it"
	@$(BIN)/reelgraph show $(CLIP)
	@echo "==> ask by SQL"
	@$(BIN)/reelgraph sql --echo "select start_s::numeric(8,2) as at_s, text from reel.utterances order by start_s limit 5"
	@echo "==> where things are"
	@$(BIN)/reelgraph status
	@echo "Stop it with: make down"

test: setup  ## Run the tests: unit, integration, acceptance
	@echo "==> tests (unit, integration on a real Postgres and object store, acceptance on the whole stack)"
	@$(BIN)/python -m pytest -m "not slow"

slow: setup  ## Run the tests that take long: the whole corpus, 2,000 mutated files, killed services
	@$(BIN)/python -m pytest -m slow

check: setup  ## Lint, types, import contracts, dead code, dependencies, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/deptry .
	$(BIN)/codespell

format: setup  ## Format and mend what can be mended by rule
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## Measure: make bench BENCH=media|overhead|...
	@$(BIN)/reelgraph bench $(BENCH)

up: setup  ## Start the embedded stack
	@$(BIN)/reelgraph up

down: setup  ## Stop it; data stays
	@$(BIN)/reelgraph down

clean: down  ## Stop the stack and remove the environment; data stays
	rm -rf $(VENV)
