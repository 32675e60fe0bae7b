"""Runs in files: recorded, and opened again without a cluster."""
