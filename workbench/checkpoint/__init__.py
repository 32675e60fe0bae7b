"""Checkpoints: variables, positions in datasets and plain Python state, in files from which training goes on."""
