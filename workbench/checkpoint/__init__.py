"""Checkpoints: files with variables, positions in datasets and plain Python state, from which training continues."""
