"""Transformations of a pipeline, one subject per file. Each is a frozen description that can be opened."""
