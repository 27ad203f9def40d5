# SPDX-License-Identifier: BSD-3-Clause
# A thin front for newcomers; everything is CMake underneath (cmake --preset release, see CMakePresets.json).

PRESET ?= release
BUILD := build/$(PRESET)
RUN ?= solve 'gen:diffusion?rows=16000000&number=10&contrast=1e4&seed=1' --repeat 5
CTEST_ARGS ?=
BUNDLE_ARGS ?=
PREFIX ?= /usr/local

export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help run install test bench fuzz device-bundle check-fresh check-arm64 clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do \
	    printf '  make %-14s %s\n' "$$name" "$$what"; done
	@printf '  variables: PRESET=release|ci|dev|asan|tsan, PREFIX=/usr/local, RUN="arguments of trifold", CTEST_ARGS="-R name" BUNDLE_ARGS=--kernels\n'

run: ## install what is missing, build the command, solve a system of 16 million rows, five times
	@scripts/setup run
	@test -f $(BUILD)/build.ninja || cmake --preset $(PRESET) -DTRIFOLD_BUILD_TESTS=OFF -DTRIFOLD_BUILD_BENCH=OFF \
	    -DTRIFOLD_BUILD_EXAMPLES=OFF >&2
	@cmake --build $(BUILD) --target trifold_cli trifold_loadable >&2
	@$(BUILD)/bin/trifold $(RUN)

install: ## build library and command, install them into PREFIX (/usr/local)
	@scripts/setup run
	@test -f $(BUILD)/build.ninja || cmake --preset $(PRESET) -DTRIFOLD_BUILD_TESTS=OFF -DTRIFOLD_BUILD_BENCH=OFF \
	    -DTRIFOLD_BUILD_EXAMPLES=OFF >&2
	@cmake --build $(BUILD) --target trifold trifold_cli trifold_loadable >&2
	@cmake --install $(BUILD) --prefix $(PREFIX)

test: ## build everything and run all tests
	@scripts/setup $(if $(filter asan tsan,$(PRESET)),fuzz,test)
	@cmake --preset $(PRESET) -DTRIFOLD_BUILD_TESTS=ON -DTRIFOLD_BUILD_BENCH=ON -DTRIFOLD_BUILD_EXAMPLES=ON
	@cmake --build $(BUILD)
	@ctest --test-dir $(BUILD) -j2 --output-on-failure --no-label-summary $(CTEST_ARGS)

bench: ## measure everything, into bench/results/<machine>/*.json
	@scripts/setup bench
	@cmake --preset $(PRESET) -DTRIFOLD_BUILD_BENCH=ON
	@cmake --build $(BUILD) --target trifold_bench
	@$(BUILD)/bin/trifold_bench

fuzz: ## feed the readers of files and generator strings with libFuzzer (clang), a short while each
	@scripts/setup fuzz
	@cmake --preset fuzz
	@cmake --build build/fuzz --target tests/fuzz/all
	@ctest --test-dir build/fuzz -j2 -R '^fuzz_' --output-on-failure --no-label-summary

device-bundle: ## pack what tests and measures on a machine with a GPU: build/device-bundle.tar.xz (needs nvcc here)
	@scripts/setup bundle
	@cmake --preset $(PRESET) -DTRIFOLD_CUDA=ON -DTRIFOLD_BUILD_TESTS=ON -DTRIFOLD_BUILD_BENCH=ON
	@cmake --build $(BUILD)
	@scripts/device-bundle $(BUILD) build/device-bundle $(BUNDLE_ARGS)

check-fresh: ## prove make run and make test on a fresh Debian 12, in a chroot (root or sudo)
	@scripts/setup fresh
	@scripts/check-fresh

check-arm64: ## build for 64-bit ARM and run the suites of the cpu under emulation (root or sudo)
	@scripts/check-arm64

clean: ## remove every build tree
	rm -rf build
