"""Hosts, in a ring of TCP connections."""
