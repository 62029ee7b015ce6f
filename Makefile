# Everything runs inside .venv; `make setup` builds it and is a prerequisite of the rest. Needs Debian/Ubuntu's or any Python >= 3.10.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PY ?= $(shell command -v /usr/bin/python3 || command -v python3)
BIN := .venv/bin
LOCK := -q --upgrade --universal --python-version 3.10 --no-header --no-annotate --generate-hashes --no-emit-package ofan-p4
SUM := $(shell cat pyproject.toml p4tools/pyproject.toml setup.sh requirements/*.lock 2>/dev/null | cksum | cut -d' ' -f1)
# What runs Ofan is installed, and all else, too.
READY := .venv/.ready-$(SUM)
STAMP := .venv/.installed-$(SUM)
TYPED := ofan.py fattree controller emulation hostagent sim reproduction p4src p4tools tests benchmarks pages
export PYTHONPATH :=
# Containers often set it; then each process compiles all modules and tests again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup lock demo test test-near test-times test-root test-slow test-all test-bmv2 check types drills soak mutants format bench report beyond fresh pictures tables p4info clean support reference site sample licences sbom audit

help:  ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(STAMP)  ## install everything into .venv and .venv-shell (and Mininet, with root and apt)
$(STAMP): $(READY) requirements/all.lock requirements/shell.lock
	@PY="$(PY)" bash setup.sh tools
	@touch $@

$(READY): pyproject.toml p4tools/pyproject.toml setup.sh requirements/run.lock
	@PY="$(PY)" GOALS="$(MAKECMDGOALS)" bash setup.sh run
	@touch $@

lock: setup  ## write requirements/*.lock again: the newest versions that pyproject.toml allows
	@$(BIN)/pip install -q uv
	@$(BIN)/uv pip compile $(LOCK) --extra dev --extra docs pyproject.toml -o requirements/all.lock
	@# The part of it that runs Ofan, and what installs it.
	@printf 'setuptools\n' | $(BIN)/uv pip compile $(LOCK) -c requirements/all.lock pyproject.toml - -o requirements/run.lock
	@printf 'p4runtime-shell>=0.0.6\nsetuptools<81\n' | $(BIN)/uv pip compile $(LOCK) - -o requirements/shell.lock

demo: $(READY)  ## a collective on three load balancers, a link failure, a table and a picture
	@$(BIN)/ofan demo
	@bash setup.sh kernels

test: setup  ## all tests but the slow ones (root tests too, where root and Mininet allow)
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not root"
	@bash setup.sh can-mininet && $(BIN)/python -m pytest -q -m "root and not slow" tests/emulation/mininet || bash setup.sh why-not-mininet

test-near: setup  ## the tests near to changes since the last commit (SINCE=main~3: from another one)
	@near=$$($(BIN)/python -m tests.near $(SINCE)) && if [ -z "$$near" ]; then echo "no test is near: nothing but words has changed"; \
	else $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not root" $$near; fi

test-times: setup  ## all tests but the slow ones, and their seconds by folder and file
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not root" --junitxml=build/test-times.xml; \
	$(BIN)/python -m tests.times build/test-times.xml

test-root: setup  ## the tests that need root and Mininet (ten minutes; ARGS as for test-slow)
	@$(BIN)/python -m pytest -q -m root tests/emulation/mininet $(ARGS)

# Three workers on two cores: some of these tests wait for a clock.
test-slow: setup  ## the slow tests (twenty minutes; ARGS="--slice 3/16" runs a sixteenth)
	@$(BIN)/python -m pytest -q -n 3 --dist worksteal -m "slow and not root" $(ARGS)

drills: setup  ## 200 seeded faults on Mininet: frozen, killed, flapping, deleted (root; ARGS="--count 20 --seed 2")
	@$(BIN)/python -m tests.drills $(ARGS)

soak: setup  ## an hour of traffic, flaps and a browser on a held Mininet network (root; ARGS="--minutes 5")
	@$(BIN)/python -m tests.drills.soak $(ARGS)

mutants: setup  ## small faults in a seeded sample of places: are they noticed? (hours; ARGS="--json FILE" goes on from FILE)
	@$(BIN)/python -m tests.mutants $(ARGS)

# A slice of few tests may be empty, which pytest calls an error (5).
test-bmv2: setup  ## the dataplane and Mininet tests on BMv2 (simple_switch_grpc on the PATH, root; ARGS as for test-slow)
	@command -v simple_switch_grpc >/dev/null || echo "simple_switch_grpc is not on PATH: every test is skipped (docs/bmv2.md)"
	@# A red half does not hide the other; a half of which a slice takes nothing (5) is green.
	@export OFAN_TEST_SWITCH=bmv2; rc=0; \
	$(BIN)/python -m pytest -q tests/dataplane -m "not slow" $(ARGS) || [ $$? = 5 ] || rc=1; \
	$(BIN)/python -m pytest -q tests/emulation/mininet/test_bmv2.py $(ARGS) || [ $$? = 5 ] || rc=1; \
	exit $$rc

test-all: test test-slow test-root  ## every test

check: setup  ## format, lint, words, types, import directions
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/python -m tests.words
	@$(BIN)/lint-imports
	@$(BIN)/mypy $(TYPED)

types: setup  ## types alone
	@$(BIN)/mypy $(TYPED)

format: setup  ## format and fix what can be fixed
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

p4info: setup  ## write p4src/p4info/ again after a change of a program's API
	@for p in p4src/*.p4; do $(BIN)/ofan p4 compile $$p -o /dev/null --p4runtime-files p4src/p4info/$$(basename $$p .p4).txtpb; done

support: setup  ## write docs/p4-support.md again after a change of the language cases
	@$(BIN)/python tests/emulation/compiler/support.py

reference: setup  ## write docs/experiments.md, columns.md, the sentences in load-balancers.md and the fields in workloads.md again
	@$(BIN)/python -m pages.reference docs/experiments.md
	@$(BIN)/python -m pages.columns docs/columns.md
	@$(BIN)/python -m pages.balancers docs/load-balancers.md
	@$(BIN)/python -m pages.readers docs/workloads.md

site: export NO_MKDOCS_2_WARNING := 1
site: setup  ## the documentation as a site: build/site/index.html
	@$(BIN)/mkdocs build -q
	@echo "build/site/index.html"

sample: setup  ## write docs/generated-ofan.py.txt again after a change of the program or generator
	@$(BIN)/python tests/emulation/softswitch/sample.py

bench: setup  ## the benchmarks (minutes)
	@for b in benchmarks/*.py; do $(BIN)/python -m benchmarks.$$(basename $$b .py); done

report: setup  ## the paper's figures and claims: build/report/index.html (40 CPU minutes; resumable)
	@$(BIN)/ofan report

beyond: setup  ## what the paper does not have: build/beyond/index.html (twenty minutes; resumable)
	@$(BIN)/ofan report --beyond

fresh: setup  ## are the committed reports what the model gives today? (ARGS="--runs 100 --seed 2")
	@$(BIN)/python -m pages.fresh docs/report/data docs/beyond/data $(ARGS)

# What a quiet machine, root or a browser is needed for is not among them (docs say how each is made).
pictures: setup  ## the pictures of README and pages that come from simulated runs, from these runs and the kept reports
	@$(BIN)/python -m benchmarks.pictures $(ARGS)

tables: setup  ## the tables of README and pages that come from simulated runs, from these runs (ten minutes; ARGS=contenders)
	@$(BIN)/python -m benchmarks.tables $(ARGS)

licences: setup  ## write docs/licences.md again after a change of requirements/all.lock
	@$(BIN)/python -m tests.supply licences

sbom: setup  ## a CycloneDX bill of materials for a release: build/ofan.cdx.json
	@$(BIN)/python -m tests.supply sbom build/ofan.cdx.json

audit: setup  ## known vulnerabilities of what is locked (asks PyPI; installs pip-audit apart)
	@$(PY) -m venv build/audit && build/audit/bin/pip install -q pip-audit
	@# One by one: pip-audit refuses a package that two files name. Strict: unknown is not audited.
	@# requirements/run.lock is a part of the first.
	@for lock in requirements/all.lock requirements/shell.lock; do \
		echo "$$lock:"; build/audit/bin/pip-audit --strict --require-hashes --disable-pip -r $$lock || exit 1; done

clean:  ## remove what setup and runs made
	rm -rf .venv .venv-shell build results .mypy_cache .ruff_cache .pytest_cache .hypothesis {.,p4tools}/*.egg-info p4tools/build
