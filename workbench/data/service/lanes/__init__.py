"""The lanes of a data worker: the threads that compute them, and the shelves where elements wait for consumers."""
