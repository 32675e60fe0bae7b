"""The lanes of a data worker: what computes them, and the shelves on which elements wait for consumers."""
