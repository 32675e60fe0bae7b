"""Services: what a worker's process answers besides running replicas, asked by any process of the cluster."""
