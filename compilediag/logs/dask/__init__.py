"""Ingestion on a Dask cluster. Optional: it needs the packages of `pip install compilediag[dask]`."""
