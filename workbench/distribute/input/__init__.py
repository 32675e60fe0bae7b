"""Datasets as replicas get them: planned, read, handed out, and repeated after a loss."""
