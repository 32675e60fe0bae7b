"""Replicas that are threads of one process."""
