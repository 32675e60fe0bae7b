"""Stages that combine and split elements: batches, windows, groups."""
