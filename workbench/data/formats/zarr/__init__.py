"""Zarr: stores of this machine and behind URLs, and the datasets."""
