"""The methods of a replica function as one of several replicas, and the combination of values."""
