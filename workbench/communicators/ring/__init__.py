"""Communication between hosts, over a ring of TCP connections."""
