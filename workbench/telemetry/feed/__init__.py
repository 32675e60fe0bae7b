"""On the driver: records of all replicas, folded once into what every view draws."""
