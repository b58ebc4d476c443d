# The interpreter to build .venv with; Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := -m pip install --disable-pip-version-check --quiet
INSTALL := $(BIN)/python $(PIP_INSTALL) -c constraints.txt
LOWEST := .venv-lowest
PYTEST := -m pytest --numprocesses=logical --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

# How many seeds of each model "make compare" trains; the runs of seed 1 are those of "make demo".
SEEDS ?= 1
SEED_LIST = $(shell seq $(SEEDS))
of_seed = $(if $(filter-out 1,$(1)),-$(1))
comma := ,
empty :=
runs = $(subst $(empty) $(empty),$(comma),$(foreach seed,$(SEED_LIST),runs/$(1)$(call of_seed,$(seed))))

.PHONY: help demo compare test test-all test-lowest faults mutants lint board bench clean

help:
	@echo "make demo    train on English-French sentences, score, and show translations (about twelve minutes)"
	@echo "make compare train a Transformer and an LSTM on the same batches and report which is better (a quarter of an hour;"
	@echo "             SEEDS=3 trains three of each, for a statement about the models and not only about two runs)"
	@echo "make test    run the test suite but for its slow tests"
	@echo "make test-all       … with them (twice as long)"
	@echo "make test-lowest    … with the lowest versions that pyproject.toml allows, in an environment of their own"
	@echo "make faults  inject hundreds of faults into training and translation"
	@echo "make mutants plant 300 bugs in mt/, one at a time, and count those that the tests notice (an hour or two)"
	@echo "make lint    check style, types and vocabulary"
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
	@echo; echo "Every 400th test sentence, its translation (→) and its reference (=). The model is small and was trained for"
	@echo "minutes on everyday sentences: it translates short ones well, and makes errors in long or unusual ones."
	@cd runs/demo/scored && paste -d '\n' test.source test.hypothesis test.reference \
	  | awk 'int((NR - 1) / 3) % 400 == 399 { print (NR % 3 == 1 ? "\n" : NR % 3 == 2 ? "  → " : "  = ") $$0 }'
	@echo; echo "Next, translate text of your own:"
	@echo "  source .venv/bin/activate"
	@echo "  python translate.py run=runs/demo < my.en > my.fr"

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
	$(BIN)/python -m tests.vocabulary

board: .venv/installed
	$(BIN)/tensorboard --logdir runs

bench: .venv/installed
	$(BIN)/python -m tests.benchmarks $(if $(CORPUS),corpus=$(CORPUS))

clean:
	rm -rf .venv $(LOWEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
