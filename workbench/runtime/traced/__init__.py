"""Compiled programs, which a worker compiles once and runs once for all of its replicas."""
