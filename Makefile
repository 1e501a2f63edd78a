# Two commands matter: `make serve` and `make test`. Both install what they need first, into .venv.
PYTHON ?= python3
VENV ?= .venv
# What to add to the command: make serve ARGS="--port 9000", make test ARGS="-k recall".
ARGS ?=
# Test processes at once; each starts its own servers and waits for them, so there may be more than cores.
JOBS ?= 3
BIN := $(VENV)/bin

.PHONY: help serve test check bench bench-quality soak clients docs plugin picture lock clean

help:
	@echo "make serve          install and serve on http://127.0.0.1:8888   (ARGS=\"--port 9000\")"
	@echo "make test           install what tests need and run everything    (ARGS=\"-k recall\", JOBS=3)"
	@echo "make check          linter, formatter and type checker only"
	@echo "make bench          measure speed; make bench-quality measures how good recall is"
	@echo "make soak           the full counts of crashes and races on both stores (about an hour)"
	@echo "make clients        connect real MCP clients and print a table"
	@echo "make docs           write docs/reference from the declarations"
	@echo "make picture        draw the README's pictures: of a first success, and of the console"
	@echo "make plugin         write the plugin for Claude Code from the table of clients"
	@echo "make lock           write the lock files                          (ARGS=--upgrade)"
	@echo "make clean          remove .venv, .cache and whatever else was made here"

serve: $(VENV)/.installed
	@$(BIN)/keepsake serve $(ARGS) || test $$? -eq 130

test: check
	@scripts/system
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

bench: $(VENV)/.installed-test
	$(BIN)/python -m bench $(ARGS)

bench-quality: $(VENV)/.installed-test
	$(BIN)/python -m bench.quality $(ARGS)

soak: $(VENV)/.installed-test
	KEEPSAKE_SOAK=1 $(BIN)/python -m pytest -v tests/stories/test_crash.py tests/stories/test_many_processes.py \
		tests/stories/test_workers.py tests/stories/test_gate.py tests/stories/test_exec_crash.py \
		tests/auth/test_oauth_rotation.py $(ARGS)

clients: $(VENV)/.installed-test
	$(BIN)/python scripts/clients.py $(ARGS)

docs: $(VENV)/.installed-test
	$(BIN)/python -m keepsake.surfaces.docs docs/reference

plugin: $(VENV)/.installed-test
	$(BIN)/python -m keepsake.surfaces.connect.plugin .

picture: $(VENV)/.installed-test
	$(BIN)/python scripts/picture.py docs/images/first-success.svg
	PYTHONPATH=. $(BIN)/python scripts/screens.py docs/images

lock:
	scripts/lock $(ARGS)

clean:
	rm -rf $(VENV) .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist

$(VENV)/.installed: requirements.lock pyproject.toml scripts/install
	@PYTHON=$(PYTHON) scripts/install $(VENV) requirements.lock
	@touch $@

$(VENV)/.installed-test: requirements-test.lock pyproject.toml scripts/install
	@PYTHON=$(PYTHON) scripts/install $(VENV) requirements-test.lock
	@touch $@
