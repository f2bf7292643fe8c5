# One vocabulary for people, pre-commit and CI. Every target sets up what it needs by itself.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PACKAGES := cli contract engine grammars kernels lsp_server

.PHONY: help demo test fix lint typecheck bench setup clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## create the environment and install Remask into it

$(STAMP): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (torch comes first; this takes minutes) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "Remask needs Python 3.11 or newer with its venv module (Debian: apt install python3-venv)." >&2; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP) ## show a completion of an example file
	@$(BIN)/remask complete examples/geometry.py --at 20:9 --deadline 60000

test: $(STAMP) ## run the tests
	$(BIN)/python -m pytest

fix: $(STAMP) ## format, and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lint: $(STAMP) typecheck ## style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Static checkers follow no import hook: give them the namespace package as a tree of links.
typecheck: $(STAMP) ## mypy in strict mode
	@mkdir -p build/typing/remask
	@for p in $(PACKAGES); do ln -sfn ../../../$$p build/typing/remask/$$p; done
	$(BIN)/mypy $(addprefix -p remask.,$(PACKAGES))

bench: $(STAMP) ## one-token decoding against the default policy
	$(BIN)/remask bench decode

clean: ## remove the environment and what was built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
