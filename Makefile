# Every target does its own set-up on a fresh machine; PYTHON=python3.12 chooses another interpreter.
SHELL := /bin/bash
PY := .venv/bin/python
READY := .venv/.ready

# `make test TORCH=2.15.0` runs the tests that depend on torch with that version, in an environment of its own.
TORCH :=
OWN := .venv-$(TORCH)

# What `gpu-test` runs with: an interpreter that has torch, triton, pandas and pytest, and nothing else of ours.
GPU_PYTHON ?= python3

# What `soak` runs with. The tools depyf and coverage are skipped where they are not installed.
SOAK_PYTHON ?= $(PY)

# A worker for each core. A file's tests stay together: they share servers, programs and sessions.
PARALLEL := -q -n logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-all test-fast test-libraries gpu-test bench fuzz soak lab docs gallery clean

demo: $(READY)  ## compile a small model, say why it recompiled, write demo.html and demo.cdiag
	$(PY) -m compilediag run --report demo.html --save demo.cdiag notebooks/demo.py

ifneq ($(TORCH),)
test: $(OWN)/.ready
	$(OWN)/bin/python -m pytest $(PARALLEL) tests/unit tests/live
else
test: $(READY)  ## lint, then every test that this machine can run but those marked long; TORCH=2.15.0: with another torch
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m pytest $(PARALLEL)
endif

test-all: $(READY)  ## the same with the tests marked long
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m pytest $(PARALLEL) --long

test-fast: $(READY)  ## the quick ones of the unit tests, in less than a minute
	$(PY) -m pytest $(PARALLEL) -m "not slow" tests/unit

test-libraries: .venv-libraries/.ready  ## programs of real libraries, and whole scripts, in an environment of their own
	.venv-libraries/bin/python -m pytest -q --long tests/libraries tests/scripts

gpu-test:  ## on a machine with a GPU: the tests that need one, and the parity suite; installs nothing
	$(GPU_PYTHON) -m pytest -p tests.scenarios tests/gpu tests/live/parity

bench: $(READY)  ## figures with their bounds: recording, reading logs (against tlparse, if installed), page, JupyterLab
	$(PY) benchmarks/functions.py
	$(PY) benchmarks/page.py --large
	$(PY) benchmarks/lab.py
	$(PY) benchmarks/overhead.py --only compiles
	$(PY) benchmarks/overhead.py --only storms
	$(PY) benchmarks/overhead.py --only calls recording
	$(PY) benchmarks/ingest.py

fuzz: $(READY)  ## every command on spoilt sessions and logs, for ten minutes
	$(PY) -m tests.fuzz --minutes 10

soak: $(READY)  ## attacks on watches, in at most 20 minutes: own failures, missing names of torch, SIGKILL, other tools, ...
	$(SOAK_PYTHON) -m benchmarks.soak

lab: $(READY)  ## JupyterLab on loopback, at the tutorial
	$(PY) -m jupyterlab --ip=127.0.0.1 $(if $(filter 0,$(shell id -u)),--allow-root) notebooks/00_tutorial.ipynb

docs: $(READY)  ## write the generated pages, then build the documentation into site/
	$(PY) docs/make_tables.py > docs/tables.md
	$(PY) docs/make_torch_internals.py > docs/torch_internals.md
	$(PY) docs/make_torch_versions.py > docs/torch_versions.md
	$(PY) docs/make_torch_survey.py > docs/torch_survey.md
	for file in compilediag/schemas/*.json; do $(PY) docs/make_schemas.py $$file > $$file || exit 1; done
	$(PY) docs/make_schemas.py > docs/schemas.md
	$(PY) docs/make_api.py > docs/api.md
	$(PY) docs/make_glossary.py > docs/glossary.md
	$(PY) docs/make_page_types.py > compilediag/views/static/core/page-types.d.ts
	$(PY) docs/make_cookbook.py
	$(PY) docs/make_outputs.py --write README.md $$(grep -lx '```text' docs/*.md)
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

gallery: $(READY)  ## record sessions, take the pictures of docs/gallery.md and those of JupyterLab; needs Chromium, takes minutes
	$(PY) -m tests.browser.gallery
	$(PY) docs/make_capture.py

clean:
	rm -rf .venv .venv-* site demo.html demo.cdiag demo.cdiag-wal demo.cdiag-shm

# A .venv that is a link belongs to another checkout: nothing is installed into it.
$(READY): requirements-dev.txt pyproject.toml .ci/setup
	test -L .venv || .ci/setup

ifneq ($(TORCH),)
$(OWN)/.ready: requirements-dev.txt pyproject.toml .ci/setup
	.ci/setup $(TORCH)
endif

# torch comes first and stays: no library may replace it.
.venv-libraries/.ready: requirements-dev.txt requirements-libraries.txt pyproject.toml
	$${PYTHON:-python3} -m venv .venv-libraries
	.venv-libraries/bin/python -m pip install -q -c requirements-dev.txt "$$(grep '^torch==' requirements-dev.txt)"
	.venv-libraries/bin/python -m pip install -q -c <(grep '^torch==' requirements-dev.txt) -r requirements-libraries.txt \
		$$(grep -E '^(pandas|pytest|hatchling|editables|anywidget|plotly)==' requirements-dev.txt)
	.venv-libraries/bin/python -m pip install -q --no-build-isolation --no-deps -e .
	touch $@
