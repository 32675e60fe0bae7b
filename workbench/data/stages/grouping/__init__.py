"""Stages that put elements together and take them apart: batches, windows, groups."""
