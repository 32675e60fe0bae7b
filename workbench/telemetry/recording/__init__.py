"""On a replica: the ring of records, and the batches in which they are sent."""
