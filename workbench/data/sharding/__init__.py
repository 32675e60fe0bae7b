"""Who reads what: the part of a dataset that each host and replica gets, and why."""
