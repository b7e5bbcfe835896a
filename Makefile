# Everything a person or CI does with this repository. `make help` lists it.
# What is slow to make lives outside the checkout, in ALINEOD_CACHE (default: alineod in your cache directory).

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export ALINEOD_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/alineod
# dev (the cluster of this checkout), kind (KIND_CLUSTER names it) or current (your kubeconfig's current context)
export CLUSTER ?= dev
# Empty: buildah, which needs neither a daemon nor a registry. Or docker, or podman.
export CONTAINER_TOOL ?=
export PYTHONPATH := operator
# Programs of the toolchain come before those of the machine.
export PATH := $(ALINEOD_CACHE)/bin:$(PATH)

TOOLCHAIN := python3 hack/toolchain/toolchain.py
VENV := $(ALINEOD_CACHE)/venv/bin
PYTHON := $(VENV)/python
PYTEST := $(PYTHON) -m pytest $(PYTEST_ARGS)
CLUSTER_PROGRAM := $(ALINEOD_CACHE)/bin/devcluster
SOURCES := operator hack tests
# Tests that mostly wait for a real partner: so many at a time.
WAITING := $(shell expr 2 '*' $$(nproc))
# A cluster of your own needs none of ours; an engine of your own builds images without our packages.
TOOLS := $(if $(filter dev,$(CLUSTER)),all,venv pi helm $(if $(CONTAINER_TOOL),,packages))
INSTEAD := This machine cannot hold the development cluster. Use one of your own: CLUSTER=kind make demo, or CLUSTER=current make demo \
  with its context chosen. Or run the tests that need none: make test.

##@ Try it

.PHONY: demo
demo: able bootstrap ## Cluster, images, chart, a swarm at work, and proof that a deleted pod loses nothing
	@$(PYTHON) -m hack.demo up

.PHONY: demo-down
demo-down: ## Remove what the demo installed; the cluster stays
	@$(PYTHON) -m hack.demo down

.PHONY: env
env: ## Lines for your shell, so that kubectl and helm mean the development cluster: eval "$$(make -s env)"
	@$(CLUSTER_PROGRAM) env
	@echo 'export PATH="$(CURDIR)/hack/bin:$$PATH"'

.PHONY: doctor
doctor: ## What this machine lacks, and what to do about it
	@$(TOOLCHAIN) doctor

##@ Tests

.PHONY: test
test: venv ## All tests, fast tiers first, end to end last
	@$(PYTHON) -m hack.tiers

.PHONY: test-unit
test-unit: venv ## Tables and properties: no network, no other process
	@$(PYTEST) -n auto tests/unit

.PHONY: test-contract
test-contract: venv ## One suite per port, run for every implementation of it
	@$(PYTEST) -n $(WAITING) tests/contract

.PHONY: test-component
test-component: venv pi ## One process with its real partner: Pi, SeaweedFS, Litestream, an API server
	@$(PYTEST) -n $(WAITING) tests/component

.PHONY: test-e2e
test-e2e: bootstrap ## Everything, on the cluster that CLUSTER names
	@$(PYTEST) tests/e2e

.PHONY: test-nodes
test-nodes: bootstrap ## A node is cut off for good in the middle of a turn (two minutes)
	@$(PYTEST) tests/e2e/test_node_lost.py -m long

.PHONY: scene-hundred
scene-hundred: bootstrap ## A hundred agents on two nodes, one of which is lost: all of them come back (half an hour on two cores)
	@$(PYTEST) tests/e2e/test_hundred.py -m long

.PHONY: chaos-ledger
chaos-ledger: bootstrap ## Kill leaders for an hour while clients write: nothing acknowledged may be lost
	@$(PYTHON) -m hack.chaos $(CHAOS_ARGS)

.PHONY: fault-matrix
fault-matrix: bootstrap ## Every fault against an agent in every state, into docs/fault-matrix.json (FAULT_ARGS="--resume"; two hours)
	@$(PYTHON) -m hack.faults $(FAULT_ARGS)
	@$(PYTHON) -m hack.faults.page

.PHONY: bench-ledger
bench-ledger: venv ## Figures: what a confirmed acknowledgement takes, beside plain Litestream, and for six minutes (eleven in all)
	@$(PYTHON) -m hack.bench.ledger $(BENCH_ARGS)

.PHONY: bench-failover
bench-failover: bootstrap ## Figures: how long nobody leads after the leader stopped, crashed or is gone, by step
	@$(PYTHON) -m hack.bench.failover $(BENCH_ARGS)

.PHONY: bench-loop
bench-loop: venv ## Figures: how late the operator's event loop is while 1,000 agents report (four minutes)
	@$(PYTHON) -m hack.bench.loop $(BENCH_ARGS)

.PHONY: bench-recovery
bench-recovery: bootstrap ## Figures: a pod is lost until its agent answers, beside plain pods; an operator is restarted over 500 agents (half an hour)
	@$(PYTHON) -m hack.bench.recovery $(BENCH_ARGS)

.PHONY: bench-skeleton
bench-skeleton: bootstrap ## Figures: starts, first turns, restores, idle memory and CPU
	@$(PYTHON) -m hack.bench

##@ Code

.PHONY: lint
lint: venv ## ruff: rules and format
	@$(VENV)/ruff check $(SOURCES)
	@$(VENV)/ruff format --check $(SOURCES)

.PHONY: format
format: venv ## Let ruff mend what it can
	@$(VENV)/ruff check --fix $(SOURCES)
	@$(VENV)/ruff format $(SOURCES)

.PHONY: types
types: venv ## mypy, strict
	@$(VENV)/mypy
	@$(VENV)/mypy $(patsubst hack/%/__init__.py,-p hack.%,$(wildcard hack/*/__init__.py)) $(patsubst hack/%.py,-m hack.%,$(wildcard hack/*.py))
	@MYPYPATH=hack/model $(VENV)/mypy hack/model/scripted_model.py

.PHONY: imports
imports: venv ## import-linter: imports point down
	@$(VENV)/lint-imports --no-logo

.PHONY: generate
generate: venv helm ## Write what follows from the sources: CRDs, the chart's copy, roles, references, manifests, the durability contract
	@$(PYTHON) -m alineod.generate
	@$(PYTHON) -m hack.faults.page

.PHONY: verify
verify: venv helm ## Fail if a generated file differs from its sources or a promise from its tests; say what is owed
	@$(PYTHON) -m alineod.generate --check
	@$(PYTHON) -m hack.faults.page --check
	@python3 hack/behaviour.py

.PHONY: lock
lock: uv ## Pin the newest allowed versions of every dependency, by hash
	@python3 -m hack.lock $(ALINEOD_CACHE)/uv/bin/uv

##@ Cluster and images

.PHONY: images
images: $(if $(CONTAINER_TOOL),,buildah) ## Build the images into archives; unchanged ones are not built again
	@python3 -m hack.images build

.PHONY: cluster-up
cluster-up: cluster-tools ## Start the development cluster, or mend it
	@$(CLUSTER_PROGRAM) up

.PHONY: cluster-down
cluster-down: ## Stop the development cluster; its data and images stay
	@$(CLUSTER_PROGRAM) down

.PHONY: load
load: images cluster-up ## Build the images and put them into the cluster's nodes
	@$(CLUSTER_PROGRAM) load $$(python3 -m hack.images refs | python3 -c 'import json, sys; print(*json.load(sys.stdin)["archives"])')

##@ Set-up

.PHONY: bootstrap
bootstrap: ## Every tool that is needed, built or installed once: the first time takes a quarter of an hour
	@$(TOOLCHAIN) $(TOOLS)

# Asked before the long builds: can this machine hold the cluster at all?
.PHONY: able
able:
ifeq ($(CLUSTER),dev)
	@{ $(TOOLCHAIN) packages devcluster && $(CLUSTER_PROGRAM) doctor > /dev/null; } || \
	  { [ $$? -ne 3 ] || echo "$(INSTEAD)" >&2; exit 1; }
endif

.PHONY: venv uv pi helm cluster-tools buildah
venv:
	@$(TOOLCHAIN) venv
uv:
	@$(TOOLCHAIN) uv
pi:
	@$(TOOLCHAIN) pi
helm:
	@$(TOOLCHAIN) helm
cluster-tools:
	@$(TOOLCHAIN) packages kube devcluster
buildah:
	@$(TOOLCHAIN) packages

.PHONY: clean
clean: ## Destroy this checkout's cluster and the built images, which all checkouts share; the toolchain stays
	@[ ! -x $(CLUSTER_PROGRAM) ] || $(CLUSTER_PROGRAM) destroy
	@rm -rf $(ALINEOD_CACHE)/images

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {gsub(/\$$\$$/, "$$", $$2); printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
