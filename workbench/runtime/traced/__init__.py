"""Compiled programs: a worker compiles them once and runs them for all of its replicas."""
