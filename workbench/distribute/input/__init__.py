"""Datasets as replicas get them: planned, read, handed out, and given again after a loss."""
