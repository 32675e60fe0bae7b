"""One file per array library: reads, combines, summarises and converts its arrays."""
