"""What a replica function can do as one of several replicas, and how values are combined for it."""
