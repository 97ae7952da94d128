# Everything lives in .venv; a target whose stamp under .venv/.stamps is newer than its locks does nothing.
#   make setup | demo | test | pairs | torch-pairs | lint | fix | bench | matrix | lock | clean      TORCH=cpu (default) or TORCH=cuda

PYTHON ?= python3
STAMPS := .venv/.stamps
CHOSEN := $(firstword $(patsubst $(STAMPS)/torch-%,%,$(wildcard $(STAMPS)/torch-*)))
TORCH ?= $(if $(CHOSEN),$(CHOSEN),cpu)
ARGS ?=

BIN := .venv/bin
PY := $(BIN)/python
LOCKED := $(PY) -m pip install --no-deps --require-hashes
export PIP_DISABLE_PIP_VERSION_CHECK := 1

SETUP_LOCKS := torch-$(TORCH) runner monitor build
PAIRS := $(patsubst locks/pair-%.txt,%,$(wildcard locks/pair-*.txt))
OLD_TORCH := 2.6 2.9
PAIR_OF_2.6 := transformers-4.48
PAIR_OF_2.9 := transformers-4.57
PAIR_TESTS := tests/pairs tests/unit/test_sampling_*.py

ifeq ($(filter $(TORCH),cpu cuda),)
$(error TORCH is "$(TORCH)"; say TORCH=cpu or TORCH=cuda)
endif

define NO_TORCH_cpu
driftpin: the installation failed. If pip found no torch +cpu build: it is not on PyPI. Point PIP_EXTRA_INDEX_URL (or
PIP_FIND_LINKS) at the CPU wheel index that PyTorch's installation page names and run make again (Linux x86_64, CPython
3.11 to 3.14), or run `make setup TORCH=cuda`, whose larger build comes from PyPI and runs on CPUs too.
endef
define NO_TORCH_cuda
driftpin: the installation failed. Read pip's message above; check the network and the free disk space (TORCH=cuda needs
about 9 GB), then run make again: what was downloaded is kept in pip's cache.
endef
export REMEDY := $(NO_TORCH_$(TORCH))

.DEFAULT_GOAL := help
.PHONY: help setup demo test pairs torch-pairs lint fix bench matrix lock clean

help:
	@sed -n '2p' Makefile | cut -c3-

setup: $(STAMPS)/setup

demo: $(STAMPS)/demo
	$(BIN)/driftpin demo $(ARGS)

test: $(STAMPS)/dev $(STAMPS)/demo
	$(PY) -m pytest $(ARGS)

pairs: $(PAIRS:%=$(STAMPS)/pair-%)
	@for pair in $(PAIRS); do PYTHONPATH=$(CURDIR)/.venv/pairs/$$pair DRIFTPIN_PAIR=$$pair \
	  $(PY) -m pytest $(PAIR_TESTS) $(ARGS) || exit 1; done

torch-pairs: $(OLD_TORCH:%=$(STAMPS)/old-torch-%)
	@$(foreach old,$(OLD_TORCH),env -u PYTHONPATH DRIFTPIN_PAIR=$(PAIR_OF_$(old)) \
	  .venv/torch/$(old)/bin/python -m pytest $(PAIR_TESTS) $(ARGS) &&) true

lint: $(STAMPS)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy scripts
	$(BIN)/lint-imports
	$(PY) -m pytest tests/unit/test_house.py

fix: $(STAMPS)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMPS)/dev $(STAMPS)/demo
	@for script in $$(grep -l __main__ benchmarks/*.py); do \
	  $(PY) $$script $(ARGS) || exit 1; done

matrix: $(STAMPS)/dev $(STAMPS)/demo $(PAIRS:%=$(STAMPS)/pair-%)
	$(PY) -m benchmarks.planted $(ARGS)

lock: $(STAMPS)/dev
	$(PY) scripts/lock.py

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "driftpin: $(PYTHON) is missing or older than 3.11; run make again with PYTHON=python3.11 (or newer)."; exit 1; }
	@$(PYTHON) -m venv .venv || { \
	  echo "driftpin: $(PYTHON) cannot make .venv; install its venv module (on Debian: python3-venv), run make again."; exit 1; }
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/torch-$(TORCH): $(STAMPS)/venv $(SETUP_LOCKS:%=locks/%.txt)
	@$(PY) scripts/announce.py $(SETUP_LOCKS)
	@$(LOCKED) $(SETUP_LOCKS:%=-r locks/%.txt) || { echo "$$REMEDY"; exit 1; }
	@rm -f $(STAMPS)/torch-* && touch $@

$(STAMPS)/setup: $(STAMPS)/torch-$(TORCH) pyproject.toml
	@$(PY) -m pip install --quiet --no-deps --no-build-isolation --no-index -e .
	@touch $@

$(STAMPS)/demo: $(STAMPS)/setup locks/demo.txt
	@$(PY) scripts/announce.py demo
	@$(LOCKED) -r locks/demo.txt
	@touch $@

$(STAMPS)/dev: $(STAMPS)/setup locks/dev.txt
	@$(PY) scripts/announce.py dev
	@$(LOCKED) -r locks/dev.txt
	@touch $@

$(STAMPS)/pair-%: $(STAMPS)/dev $(STAMPS)/demo locks/pair-%.txt
	@$(PY) scripts/announce.py pair-$*
	@rm -rf .venv/pairs/$*
	@$(LOCKED) --quiet --target .venv/pairs/$* -r locks/pair-$*.txt
	@touch $@

# An environment of its own for each old torch: gigabytes, because PyPI has no CPU build of them.
$(STAMPS)/old-torch-%: $(STAMPS)/venv $(wildcard locks/*.txt) pyproject.toml
	@rm -rf .venv/torch/$* && $(PYTHON) -m venv .venv/torch/$*
	@.venv/torch/$*/bin/python scripts/announce.py torch-$* runner monitor build dev demo pair-$(PAIR_OF_$*)
	@for lock in runner monitor build dev demo torch-$* pair-$(PAIR_OF_$*); do \
	  .venv/torch/$*/bin/python -m pip install --quiet --no-deps --require-hashes -r locks/$$lock.txt || exit 1; done
	@.venv/torch/$*/bin/python -m pip install --quiet --no-deps --no-build-isolation --no-index -e .
	@touch $@
