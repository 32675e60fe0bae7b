"""Which part of a dataset each host and replica gets, and why."""
