"""Datasets as files: blocks of elements in checked records, and a manifest that makes them valid."""
