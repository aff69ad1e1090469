# SPDX-License-Identifier: Apache-2.0
# A short way to what Meson, Ninja and the tools do. `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
SEEDS ?= 10000
SEED ?=
SKIP_DEPS ?=

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

.PHONY: help run test bench sim install clean
.DEFAULT_GOAL := help

help: ## show this list
	@echo 'make TARGET, where TARGET is'
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' Makefile
	@echo 'SKIP_DEPS=1 leaves the packages of the system alone.'

run: ## install what is missing, build, and show what Pawl does
	$(call deps,build)
	$(call setup,$(RELEASE),--buildtype=release -Dtests=false)
	ninja -C $(RELEASE) --quiet
	$(RELEASE)/src/pawl demo

test: ## install what is missing, build, and run every test
	$(call deps,build test)
	tools/run-tests

bench: ## build, and measure the memory store against a raw baseline
	$(call deps,build)
	$(call setup,$(RELEASE),--buildtype=release -Dtests=false)
	ninja -C $(RELEASE) --quiet bench/memory-bench
	$(RELEASE)/bench/memory-bench

sim: ## simulate SEEDS=10000 (or SEEDS=5..90), or replay one seed with its trace: SEED=7
	$(if $(SEED)$(SEEDS),,$(error SEEDS is empty: give a number of seeds (SEEDS=200), a range (SEEDS=5..90), or one seed (SEED=7)))
	$(call deps,build test)
	$(call setup,$(CHECKED),)
	ninja -C $(CHECKED) --quiet test/sim/pawl-sim
	$(CHECKED)/test/sim/pawl-sim $(if $(SEED),--seed $(SEED) --print,--seeds $(if $(findstring ..,$(SEEDS)),,1..)$(SEEDS))

install: ## install under PREFIX (/usr/local), staged below DESTDIR where it is set
	$(call deps,--check build)
	$(call setup,$(RELEASE),--buildtype=release -Dtests=false)
	meson configure $(RELEASE) --prefix=$(PREFIX)
	ninja -C $(RELEASE) --quiet
	meson install -C $(RELEASE) --no-rebuild $(if $(DESTDIR),--destdir=$(abspath $(DESTDIR)))

clean: ## remove everything that was built
	rm -rf build
