"""Dask: starts, finds, claims and watches the workers in which replicas run."""
