"""Runs in files: records them, and opens them again without a cluster."""
