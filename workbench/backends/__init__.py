"""One file per array library: reading, combining, summarising and handing back its arrays."""
