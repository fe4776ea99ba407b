# Every target does its own set-up on a fresh machine; PYTHON=python3.12 chooses another interpreter.
SHELL := /bin/bash
PY := .venv/bin/python
READY := .venv/.ready

# What `gpu-test` runs with: an interpreter that has torch, triton, pandas and pytest, and nothing else of ours.
GPU_PYTHON ?= python3

.PHONY: demo test gpu-test bench lab docs clean

demo: $(READY)  ## compile a small model, say why it recompiled, write demo.html and demo.cdiag
	$(PY) -m compilediag run --report demo.html --save demo.cdiag notebooks/demo.py

test: $(READY)  ## lint, then every test that this machine can run
	$(PY) -m ruff check .
	$(PY) -m pytest

gpu-test:  ## on a machine with a GPU: the tests that need one, and the parity suite; installs nothing
	$(GPU_PYTHON) -m pytest -p tests.scenarios tests/gpu tests/live/parity

bench: $(READY)  ## what watching costs, and what reading logs costs against tlparse, if that is installed, and opening a report
	$(PY) benchmarks/overhead.py
	$(PY) benchmarks/ingest.py
	$(PY) benchmarks/page.py

lab: $(READY)  ## JupyterLab on loopback, at the quickstart
	$(PY) -m jupyterlab --ip=127.0.0.1 $(if $(filter 0,$(shell id -u)),--allow-root) notebooks/01_quickstart.ipynb

docs: $(READY)  ## write the generated pages, then build the documentation into site/
	$(PY) docs/make_tables.py > docs/tables.md
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

clean:
	rm -rf .venv site demo.html demo.cdiag demo.cdiag-wal demo.cdiag-shm

$(READY): requirements-dev.txt pyproject.toml .ci/setup
	.ci/setup
