"""Dask: starting, finding, claiming and watching the workers that replicas run in."""
