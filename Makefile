# make run    environment, install, migrate, serve on http://localhost:8081
# make test   everything that is tested; what a machine lacks is skipped with the reason
# make lint   formatting, rules, types, import contracts, Django's own checks
# make bench  the benchmarks, each against its reference in the same run
# make chaos  200 times kill -9 while 20 sessions stream; nothing may be lost
# make race   100 answers for each of 1,000 prompts; one of them may count
# make lock   pin the requirements anew

PYTHON ?= python3
PORT ?= 8081
# Processes that run tests at a time; a file's tests stay together.
TEST_PROCESSES ?= 2
BIN := .venv/bin

.PHONY: run test lint bench chaos race lock

run: .venv/run.stamp
	@CARDWIRE_DEBUG=1 $(BIN)/python manage.py migrate --verbosity 0
	@CARDWIRE_DEBUG=1 $(BIN)/python -m config.serve --port $(PORT)

test: .venv/test.stamp
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile \
	    --no-loadscope-reorder $(ARGS)

lint: .venv/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	CARDWIRE_DEBUG=1 $(BIN)/mypy
	CARDWIRE_DEBUG=1 $(BIN)/lint-imports
	CARDWIRE_DEBUG=1 $(BIN)/python manage.py makemigrations --check --dry-run
	CARDWIRE_SECRET_KEY=check-only-Yx3vQ9mK2pL7wR5tN8bZ4cJ6hF1dG0sAaEeIiOoUu-91 \
	CARDWIRE_ALLOWED_HOSTS=cards.example \
	    $(BIN)/python manage.py check --deploy --fail-level WARNING

bench: .venv/test.stamp
	$(BIN)/python -m benchmarks $(ARGS)

chaos: .venv/test.stamp
	$(BIN)/python -m tests.acceptance.chaos $(ARGS)

race: .venv/test.stamp
	$(BIN)/python -m tests.acceptance.racing $(ARGS)

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/run.stamp: .venv/bin/python requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --require-hashes -r requirements.txt
	@touch $@

.venv/test.stamp: .venv/bin/python requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --require-hashes -r requirements-dev.txt
	@touch $@ .venv/run.stamp

LOCK = $(BIN)/pip-compile --quiet --generate-hashes --strip-extras \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

lock: .venv/bin/python
	$(BIN)/python -m pip install --quiet pip-tools
	$(LOCK) --output-file requirements.txt requirements.in
	$(LOCK) --output-file requirements-dev.txt requirements-dev.in
