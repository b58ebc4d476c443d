# The interpreter to build .venv with; Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := -m pip install --disable-pip-version-check --quiet
INSTALL := $(BIN)/python $(PIP_INSTALL) -c constraints.txt
LOWEST := .venv-lowest
PYTEST := -m pytest --numprocesses=logical --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

SENTENCES := "I am learning to speak French." "Where is the train station?" \
  "She gave me a book that I had never read." "We would like to eat something before we leave."

# How many seeds of each model "make compare" trains; the runs of seed 1 are those of "make demo".
SEEDS ?= 1
SEED_LIST = $(shell seq $(SEEDS))
of_seed = $(if $(filter-out 1,$(1)),-$(1))
comma := ,
empty :=
runs = $(subst $(empty) $(empty),$(comma),$(foreach seed,$(SEED_LIST),runs/$(1)$(call of_seed,$(seed))))

.PHONY: help demo compare test test-all test-lowest faults mutants lint board bench clean

help:
	@echo "make demo    train on English-French sentences, score, and translate a few (about twelve minutes)"
	@echo "make compare train a Transformer and an LSTM on the same batches and report which is better (a quarter of an hour;"
	@echo "             SEEDS=3 trains three of each, for a statement about the models and not only about two runs)"
	@echo "make test    run the test suite but for its slow tests"
	@echo "make test-all       … with them (twice as long)"
	@echo "make test-lowest    … with the lowest versions that pyproject.toml allows, in an environment of their own"
	@echo "make faults  put hundreds of faults into the way of training and translating"
	@echo "make mutants plant some 300 mistakes in mt/, one at a time, and count those that the tests notice (an hour or two)"
	@echo "make lint    check style and types"
	@echo "make board   watch the runs in TensorBoard"
	@echo "make bench   time training and translation against other implementations"
	@echo "make clean   remove .venv, .venv-lowest and caches; runs and corpora stay"
	@echo "Each creates .venv if need be. PYTHON=python3.12 make … chooses the interpreter."

# The stamp stands only if everything was installed; a broken or outdated .venv is built anew.
.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: PYTHON=python3.12 make …" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	@echo "installing (some minutes the first time)"
	$(INSTALL) -e '.[dev,transformers]'
	@touch $@

# torch by itself and first: which of its builds fits the machine is not for the other versions to decide.
$(LOWEST)/installed: pyproject.toml constraints.txt tests/lowest_versions.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python tests/lowest_versions.py > $(LOWEST)/versions.txt
	$(LOWEST)/bin/python $(PIP_INSTALL) -c constraints.txt torch
	$(LOWEST)/bin/python $(PIP_INSTALL) -c $(LOWEST)/versions.txt -e '.[dev]'
	@touch $@

demo: .venv/installed
	$(BIN)/python train.py experiment=demo name=demo
	@printf '%s\n' $(SENTENCES) | $(BIN)/python translate.py run=runs/demo > runs/demo/demo.txt
	@echo; printf '%s\n' $(SENTENCES) | paste -d '\n' - runs/demo/demo.txt | sed 'n; s/^/  → /'

compare: .venv/installed
	$(foreach seed,$(SEED_LIST),\
	  $(BIN)/python train.py experiment=demo name=demo$(call of_seed,$(seed)) seed=$(seed) && \
	  $(BIN)/python train.py experiment=demo name=demo-rnn$(call of_seed,$(seed)) seed=$(seed) model=rnn_attention &&) \
	$(BIN)/python -m mt compare 'first=[$(call runs,demo)]' 'second=[$(call runs,demo-rnn)]'

test: .venv/installed
	$(BIN)/python $(PYTEST) -m "not slow"

test-all: .venv/installed
	$(BIN)/python $(PYTEST) --hypothesis-profile=thorough

test-lowest: $(LOWEST)/installed
	$(LOWEST)/bin/python $(PYTEST)

faults: .venv/installed
	$(BIN)/python -m tests.faults

mutants: .venv/installed
	$(BIN)/python -m tests.mutants

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

board: .venv/installed
	$(BIN)/tensorboard --logdir runs

bench: .venv/installed
	$(BIN)/python -m tests.benchmarks $(if $(CORPUS),corpus=$(CORPUS))

clean:
	rm -rf .venv $(LOWEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
