# SPDX-License-Identifier: Apache-2.0
# A short way to what Meson, Ninja and the tools do. `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
SEEDS ?= 10000
SEED ?=
MINUTES ?= 10
SKIP_DEPS ?=
VERSIONS ?=
# Words for bench/run: --scale 0.1, --repeats 9, a group ...
BENCH ?=
PGMQ ?=

# What is run and installed: no test programs, so that building needs no test library.
RELEASE := build/release
# What is tested. The other folders below build/ belong to tools/run-tests.
CHECKED := build/gcc

ifeq ($(SKIP_DEPS),)
deps = tools/install-deps $(1)
else
deps = @:
endif
setup = test -f $(1)/build.ninja || meson setup $(1) $(2)

.PHONY: help run test test-matrix bench bench-long bench-peers bench-more sim chaos install deb clean
.DEFAULT_GOAL := help

help: ## show this list
	@echo 'make TARGET, where TARGET is'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile
	@echo 'SKIP_DEPS=1 leaves the packages of the system alone.'

run: ## install what is missing, build, and start the engine on the embedded store
	$(call deps,build)
	$(call setup,$(RELEASE),--buildtype=release -Dtests=false)
	ninja -C $(RELEASE) --quiet
	@tools/start $(RELEASE)/src/pawl

test: ## install what is missing, build, and run every test
	$(call deps,build test)
	tools/run-tests

test-matrix: ## install PostgreSQL 13, 14, 16, 17 and 18 from npm, and run the tests of its store on each
	$(call deps,build test)
	tools/test-matrix $(VERSIONS)

bench: ## build for release, and measure Pawl against bare statements: one table, and bench/results/*.json; then what bench-more does
	$(call deps,build test)
	$(call setup,$(RELEASE),--buildtype=release -Dtests=false)
	ninja -C $(RELEASE) --quiet bench/bench-turn src/pawl
	bench/run $(BENCH)
	$(if $(BENCH),,$(MAKE) --no-print-directory bench-more)

bench-long: ## the same for a backlog of 10,000,000 jobs
	$(call deps,build test)
	$(call setup,$(RELEASE),--buildtype=release -Dtests=false)
	ninja -C $(RELEASE) --quiet bench/bench-turn src/pawl
	bench/run --long $(BENCH)

bench-peers: ## install peers from Debian and npm, and compare with them; PGMQ=FILE names the SQL of pgmq
	$(call deps,build test peers)
	$(call setup,$(RELEASE),--buildtype=release -Dtests=false)
	ninja -C $(RELEASE) --quiet bench/bench-turn src/pawl
	npm install --prefix bench/peers --no-package-lock --no-audit --no-fund
	bench/run --peers $(if $(PGMQ),--pgmq $(PGMQ)) $(BENCH)

bench-more: ## measure ordering keys on SQLite, work leases, deliveries of webhooks, and the HTTP interface
	$(call deps,build test)
	$(call setup,$(RELEASE),--buildtype=release -Dtests=false)
	ninja -C $(RELEASE) --quiet bench/deliver-bench bench/memory-bench bench/sqlite-bench bench/worklease-bench src/pawl
	$(RELEASE)/bench/memory-bench
	$(RELEASE)/bench/sqlite-bench
	$(RELEASE)/bench/worklease-bench
	$(RELEASE)/bench/deliver-bench
	bench/http_bench.py $(abspath $(RELEASE))/src/pawl

sim: ## simulate SEEDS=10000 (or SEEDS=5..90), or replay one seed with its trace: SEED=7
	$(if $(SEED)$(SEEDS),,$(error SEEDS is empty: give a number of seeds (SEEDS=200), a range (SEEDS=5..90), or one seed (SEED=7)))
	$(call deps,build test)
	$(call setup,$(CHECKED),)
	ninja -C $(CHECKED) --quiet test/sim/pawl-sim
	$(CHECKED)/test/sim/pawl-sim $(if $(SEED),--seed $(SEED) --print,--seeds $(if $(findstring ..,$(SEEDS)),,1..)$(SEEDS))

chaos: ## let everything fail under load for MINUTES=10 on each store; SEED=7 for the same times
	$(call deps,build test)
	$(call setup,$(CHECKED),)
	ninja -C $(CHECKED) --quiet src/pawl test/chaos/test-chaos test/chaos/chaos-preload.so
	for store in postgres sqlite; do \
		$(CHECKED)/test/chaos/test-chaos $$store --pawl $(abspath $(CHECKED))/src/pawl \
			--preload $(abspath $(CHECKED))/test/chaos/chaos-preload.so \
			--minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) || exit; done
	for store in postgres sqlite; do \
		/usr/bin/python3 test/chaos/deliver_chaos.py $$store --seconds $$(($(MINUTES) * 60)) \
			$(if $(SEED),--seed $(SEED)) $(abspath $(CHECKED))/src/pawl || exit; done

install: ## install under PREFIX (/usr/local), staged below DESTDIR where it is set
	$(call deps,--check build)
	$(call setup,$(RELEASE),--buildtype=release -Dtests=false)
	meson configure $(RELEASE) --prefix=$(PREFIX)
	ninja -C $(RELEASE) --quiet
	meson install -C $(RELEASE) --no-rebuild $(if $(DESTDIR),--destdir=$(abspath $(DESTDIR)))

deb: ## build the Debian packages, into build/deb
	$(call deps,build test)
	tools/make-deb build/deb

clean: ## remove everything that was built
	rm -rf build
