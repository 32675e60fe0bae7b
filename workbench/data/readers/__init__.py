"""Datasets that read files and databases, under the names of the reference."""
