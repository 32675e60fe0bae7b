"""Arrays that are not distributed: what users write, rows of them, reductions on the host."""
