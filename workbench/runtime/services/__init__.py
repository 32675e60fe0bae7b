"""Services that a worker's process provides besides replicas, to any process of the cluster."""
