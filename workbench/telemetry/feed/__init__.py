"""On the driver: combines the records of all replicas once, for every view."""
