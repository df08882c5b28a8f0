# These two commands need only Python 3.11 or newer, make and a package index:
#   make demo    the whole service on this machine, with a chain to play with; Ctrl-C ends it
#   make test    every check, and every test but the long campaigns
# They install into .venv and nowhere else.

PYTHON_IN_VENV := .venv/bin/python

.PHONY: demo test check format generated setup lock clean

demo: setup
	@$(PYTHON_IN_VENV) -m devnet.demo

# The tests run even if a check fails, and their summary comes last. The target fails if either fails. Files are tested
# in the order of tests/conftest.py.
test: setup
	@$(MAKE) --no-print-directory check; checks=$$?; $(PYTHON_IN_VENV) -m pytest -n 4 --dist loadfile --no-loadscope-reorder && exit $$checks

check: setup
	@$(PYTHON_IN_VENV) -m ruff check .
	@$(PYTHON_IN_VENV) -m ruff format --check .
	@$(PYTHON_IN_VENV) -m mypy
	@.venv/bin/lint-imports

format: setup
	@$(PYTHON_IN_VENV) -m ruff check --fix .
	@$(PYTHON_IN_VENV) -m ruff format .

# Run it after a change of routes, answers, parameters, refusals or their descriptions.
generated: setup
	@$(PYTHON_IN_VENV) -m tests.api.asking > /dev/null
	@$(PYTHON_IN_VENV) -m clients.generate

setup:
	@scripts/setup.sh

# Run it after changing dependencies in pyproject.toml; it needs uv. Both lock files pin the same, tested versions.
COMPILE := uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header pyproject.toml
lock:
	$(COMPILE) --extra dev -o requirements-dev.lock
	$(COMPILE) -c requirements-dev.lock -o requirements.lock

clean:
	rm -rf .venv tests/blockfrost_clients/node_modules tests/blockfrost_clients/.venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
