"""The workers of a cluster while the driver holds them: links, heartbeats, requests, flight recorders."""
