"""Communication between replicas that are threads of one process."""
