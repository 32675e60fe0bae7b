"""Zarr: stores on this machine and behind URLs, and the datasets."""
