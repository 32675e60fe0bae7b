"""Datasets for replicas: planned, read, distributed, and repeated after a loss."""
